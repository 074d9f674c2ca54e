"""All settings of a model in seven groups, with defaults and ranges. `presets.toml` lists the presets."""

import tomllib
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from bgcl.augmentation.language import check_mask, parse_mask
from bgcl.augmentation.masks import Mask
from bgcl.errors import BGCLError, nearest
from bgcl.validation import CheckedSettings, Number, Whole, Width

Positive = Annotated[Number, Field(gt=0, le=1e6)]
SomeNodes = Annotated[Whole, Field(ge=2, le=10**12)]

AUTO = "auto"  # the preset that depends on the size of the graph, see `bgcl.auto_preset`
Default = Literal["default"]
DEFAULT: Default = "default"  # the value of an argument of `BGCL` that was not given


class AugmentationSettings(CheckedSettings):
    """What each view drops, and how its drop rates are learned."""

    drop: tuple[str, ...] = Field(
        default=("edges", "entries"), min_length=1, description="what a view drops: one sentence for each mask"
    )
    normalize: Literal["after", "before"] = Field(
        default="after", description="normalize the adjacency matrix after or before it is masked"
    )
    mask_values: Literal["relaxed", "hard"] = Field(
        default="hard", description="masks between 0 and 1, or masks of 0 and 1 with the gradient of the relaxed mask"
    )
    mask_temperature: Number = Field(default=0.3, ge=0.01, le=10, description="temperature of the relaxed masks")
    rate_draw: Literal["sample", "median"] = Field(
        default="median",
        description="the drop rate of a mask: a draw from its posterior, or the median of the posterior",
    )
    rate_start: tuple[Positive, Positive] = Field(
        default=(1.0, 1.0), description="a and b of the Kumaraswamy posterior at the start"
    )
    prior: tuple[Positive, Positive] | Positive = Field(
        default=(1.0, 1.0),
        description="alpha and beta of the Beta prior of the drop rates; one number c stands for "
        "Beta(c/L, c(L-1)/L) in a model of L layers",
    )


class EncoderSettings(CheckedSettings):
    """The encoder and the scale of its input."""

    widths: tuple[Width, ...] = Field(
        default=(256, 128), min_length=1, max_length=16, description="the output width of each layer"
    )
    activation: Literal["relu", "prelu"] = Field(default="relu", description="activation function after each layer")
    row_norm: Literal["length", "sum", "none"] = Field(
        default="length", description="divide each node's attributes by their length, by their sum, or by nothing"
    )


class ObjectiveSettings(CheckedSettings):
    """What the encoder minimizes and the augmentation maximizes."""

    tau: Number = Field(default=0.4, ge=0.02, le=100, description="temperature of the contrastive loss")
    shared_information: Number = Field(
        default=0.3, ge=0, lt=1,
        description="share of the possible information that the views must still have in common; 0: no limit",
    )  # fmt: skip
    kl_weight: Number = Field(default=1.0, ge=0, le=1e6, description="weight of the KL divergence of the drop rates")
    weight_decay: Number = Field(
        default=5e-9, ge=0, le=1, description="lambda, weight of the KL divergence of the weights"
    )


class OptimizationSettings(CheckedSettings):
    """How long and how fast to train."""

    epochs: Whole = Field(default=300, ge=1, le=1_000_000, description="number of epochs")
    lr_weights: Number = Field(default=0.001, gt=0, le=1, description="learning rate of the encoder")
    lr_rates: Number = Field(default=0.01, gt=0, le=1, description="learning rate of the drop rates")


class BatchingSettings(CheckedSettings):
    """How much of the graph a step uses."""

    batches: Whole = Field(
        default=1, ge=1, le=100_000, description="batches in an epoch, each of several METIS clusters"
    )
    clusters_per_batch: Whole = Field(default=20, ge=1, le=10_000, description="clusters in a batch")
    loss_nodes: SomeNodes | None = Field(
        default=None, description="nodes in the loss of an encoder step, chosen at random; None: all nodes"
    )
    rate_nodes: SomeNodes | None = Field(
        default=1024, description="nodes in the loss of a drop-rate step, chosen at random; None: all nodes"
    )


class SamplingSettings(CheckedSettings):
    """How embeddings are drawn from the trained model. `BGCL.sample` can use another value in one call."""

    draw_scale: Number = Field(
        default=0.4, gt=0, le=1, description="embeddings are drawn at this fraction of the drop rates"
    )


class RuntimeSettings(CheckedSettings):
    """The seed, the device and the memory."""

    seed: Whole = Field(default=0, ge=0, lt=2**63, description="seed of every random number")
    device: str = Field(default="cpu", description="device to compute on, such as cpu or cuda")
    memory_budget: Whole = Field(default=1024, ge=0, le=1 << 20, description="MiB of similarities that a step may keep")


GROUPS: dict[str, type[CheckedSettings]] = {
    "augmentation": AugmentationSettings,
    "encoder": EncoderSettings,
    "objective": ObjectiveSettings,
    "optimization": OptimizationSettings,
    "batching": BatchingSettings,
    "sampling": SamplingSettings,
    "runtime": RuntimeSettings,
}


class Settings(
    RuntimeSettings, SamplingSettings, BatchingSettings, OptimizationSettings, ObjectiveSettings, EncoderSettings,
    AugmentationSettings,
):  # fmt: skip
    """All settings of a model. A preset in `presets.toml` replaces some of the defaults.

    Raises:
        BGCLError: a setting is unknown or not allowed, or two settings contradict each other.

    >>> import bgcl
    >>> bgcl.Settings(tau=0.5).tau, bgcl.Settings().drop
    (0.5, ('edges', 'entries'))
    """

    @field_validator("drop", mode="before")
    @classmethod
    def _as_sentences(cls, drop: Any) -> Any:
        if isinstance(drop, str | Mask):
            drop = (drop,)
        if not isinstance(drop, list | tuple):
            return drop
        for mask in drop:
            if isinstance(mask, Mask) and parse_mask(str(check_mask(mask))) != mask:
                raise BGCLError(
                    f"The mask {type(mask).__name__} cannot be written as a sentence: '{mask}' is another mask. Give "
                    "its class a new 'kind', and no fields that Mask does not have."
                )
        return tuple(str(mask) if isinstance(mask, Mask) else mask for mask in drop)

    @model_validator(mode="after")
    def _fits_together(self) -> "Settings":
        blocks = {mask.blocks for mask in self.masks() if mask.blocks > 1}
        if len(blocks) > 1:
            raise BGCLError(f"All masks with blocks must have the same number of blocks. Got {sorted(blocks)}.")
        for mask in self.masks():
            if mask.layer is not None and mask.layer > len(self.widths):
                raise BGCLError(
                    f"The mask '{mask}' names layer {mask.layer}, but the model has only {len(self.widths)}. "
                    "Change the mask or 'widths'."
                )
        self.beta_prior()
        return self

    def masks(self) -> list[Mask]:
        """The masks that `drop` describes."""
        return [parse_mask(sentence) for sentence in self.drop]

    def beta_prior(self) -> tuple[float, float]:
        """`(alpha, beta)` of the prior: the given pair, or `(c/L, c(L-1)/L)` for one number c and L layers."""
        if isinstance(self.prior, tuple):
            return self.prior
        layers = len(self.widths)
        if layers == 1:
            raise BGCLError(
                "The setting 'prior' is one number, which needs two layers or more. Give a pair (alpha, beta) instead."
            )
        return self.prior / layers, self.prior * (layers - 1) / layers


def is_default(value: Any) -> bool:
    """Whether an argument of `BGCL` was not given."""
    return isinstance(value, str) and value == DEFAULT


@cache
def presets() -> dict[str, dict[str, Any]]:
    """The settings of each preset, by name.

    Returns:
        A dictionary of the settings that each preset changes, as `presets.toml` lists them.

    >>> import bgcl
    >>> "cora" in bgcl.presets()
    True
    """
    return tomllib.loads((resources.files("bgcl") / "presets.toml").read_text("utf-8"))


def make_settings(preset: str | None = None, **given: Any) -> Settings:
    """The settings of a preset, or the defaults, with the `given` values instead of theirs."""
    values: dict[str, Any] = {}
    if preset is not None and preset != AUTO:
        if preset not in presets():
            raise BGCLError(f"Unknown preset '{preset}'. {nearest(str(preset), [*presets(), AUTO])}")
        values |= presets()[preset]
    return Settings(**values | given)
