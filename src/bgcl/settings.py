"""All settings of a model in seven groups, with defaults and ranges. `presets.toml` lists the presets."""

import tomllib
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from bgcl.augmentation.language import check_mask, parse_mask
from bgcl.augmentation.masks import Mask
from bgcl.combined_settings import check_combination
from bgcl.defaults import fill
from bgcl.errors import BGCLError, nearest
from bgcl.validation import CheckedSettings, Number, Whole, Width

Positive = Annotated[Number, Field(ge=1e-3, le=1e3)]
SomeNodes = Annotated[Whole, Field(ge=2, le=10**12)]
Default = Literal["default"]
DEFAULT: Default = "default"  # the value of an argument of `BGCL` that was not given


class AugmentationSettings(CheckedSettings):
    """What each view drops, and how its drop rates are learned."""

    drop: tuple[str, ...] = Field(
        default=("entries", "neighbors"), min_length=1,
        description="what a view drops: one sentence for each mask",
    )  # fmt: skip
    normalize: Literal["after", "before"] = Field(
        default="after", description="normalize the adjacency matrix after or before it is masked"
    )
    mask_values: Literal["relaxed", "hard"] = Field(
        default="hard", description="masks between 0 and 1, or masks of 0 and 1 with the gradient of the relaxed mask"
    )
    mask_temperature: Number = Field(default=0.3, ge=0.01, le=10, description="temperature of the relaxed masks")
    rate_rule: Literal["evidence", "adversary"] = Field(
        default="evidence",
        description="how drop rates are learned: before training, from how well the graph explains its own edges and "
        "attributes, or in training, by the paper's adversary of the encoder",
    )
    rate_draw: Literal["sample", "median"] = Field(
        default="sample",
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
    """The encoder, the scale of its input, and the parts of the embedding."""

    encoder: str = Field(
        default="mlp",
        description="mlp, gcn, hops, sage, gin or gat; pyg:NAME for a convolution of PyTorch Geometric; module for a "
        "module of your own",
    )
    widths: tuple[Width, ...] = Field(
        default=(512, 256), min_length=1, max_length=16, description="the output width of each layer"
    )
    activation: Literal["relu", "prelu"] = Field(default="relu", description="activation function after each layer")
    norm: Literal["none", "layer", "batch"] = Field(
        default="layer", description="normalization before each activation: none, LayerNorm or BatchNorm"
    )
    skip: bool = Field(default=False, description="add the input of a layer to its output, from the second layer on")
    jump: Literal["last", "concatenate", "max"] = Field(
        default="last",
        description="what is handed on: the last layer's output, or those of all layers (jumping knowledge)",
    )
    hops: Annotated[Whole, Field(ge=1, le=64)] | None = Field(
        default=None, description="K, how many hops the encoder 'hops' keeps"
    )
    heads: Annotated[Whole, Field(ge=1, le=256)] | None = Field(
        default=None, description="attention heads of the encoder 'gat'"
    )
    members: Annotated[Whole, Field(ge=1, le=64)] = Field(
        default=2, description="encoders that are trained side by side, each from a start of its own"
    )
    row_norm: Literal["auto", "length", "sum", "none"] = Field(
        default="auto",
        description="divide each node's attributes by their length, by their sum, or by nothing; auto also weighs "
        "columns, and takes ranks of dense numbers",
    )
    parts: tuple[str, ...] = Field(
        default=(
            "attributes", "attributes hop 1", "attributes hop 2", "structure hop 1", "encoder", "encoder diffused",
            "encoder diffused among alike", "encoder diffused among alike and neighbors",
            "encoder diffused among alike neighborhoods",
        ),
        min_length=1, description="the parts of the embedding: one sentence for each",
    )  # fmt: skip
    part_width: Width = Field(default=256, description="width of the parts that are not trained")


class ObjectiveSettings(CheckedSettings):
    """What the encoder minimizes and the augmentation maximizes."""

    objective: str = Field(default="infonce", description="infonce, decorrelation, bootstrap or infomax")
    tau: Annotated[Number, Field(ge=0.02, le=100)] | None = Field(
        default=0.15, description="temperature of the objective 'infonce'"
    )
    projection: bool | None = Field(default=False, description="whether the objective 'infonce' has a projection head")
    negatives: Literal["both views", "other view"] | None = Field(
        default="other view",
        description="the nodes that 'infonce' tells a node from: of both views, or only of the other view",
    )
    decorrelation_weight: Annotated[Number, Field(ge=0, le=1e6)] | None = Field(
        default=None, description="weight of the decorrelation in the objective 'decorrelation'"
    )
    momentum: Annotated[Number, Field(ge=0, lt=1)] | None = Field(
        default=None, description="how slowly the copy of the encoder follows in the objective 'bootstrap'"
    )
    shared_information: Annotated[Number, Field(ge=0, lt=1)] | None = Field(
        default=None,
        description="share of the possible information that the views must still have in common; 0: no limit",
    )
    kl_weight: Annotated[Number, Field(ge=0, le=1e6)] | None = Field(
        default=None, description="weight of the KL divergence of the drop rates"
    )
    weight_decay: Number = Field(
        default=0.0, ge=0, le=1, description="lambda, weight of the KL divergence of the weights"
    )


class OptimizationSettings(CheckedSettings):
    """How long and how fast to train."""

    epochs: Annotated[Whole, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="the greatest number of epochs; None: as many as make 300 steps"
    )
    until_settled: bool = Field(
        default=True,
        description="whether training ends before, as soon as twice the training would gain little; by default if "
        "'epochs' is None, with batches of random nodes",
    )
    lr_weights: Number = Field(default=0.01, gt=0, le=1, description="learning rate of the encoder")
    lr_rates: Annotated[Number, Field(gt=0, le=1)] | None = Field(
        default=None, description="learning rate of the drop rates"
    )


class BatchingSettings(CheckedSettings):
    """How much of the graph a step uses."""

    batch: Literal["auto", "full", "clusters", "neighbors"] | None = Field(
        default=None,
        description="what a batch is: the whole graph, clusters, or random nodes with sampled neighbors; auto chooses "
        "by encoder, objective, graph and free memory; None: what the other settings say",
    )
    batches: Whole = Field(
        default=1, ge=1, le=100_000, description="batches in an epoch, each of several METIS clusters"
    )
    clusters_per_batch: Whole = Field(default=20, ge=1, le=10_000, description="clusters in a batch")
    batch_nodes: SomeNodes | None = Field(
        default=512,
        description="nodes in a batch of random nodes, each with a random neighbor, for encoders that look at one node "
        "at a time; None: no such batches",
    )
    neighbors: tuple[Annotated[Whole, Field(ge=1, le=10_000)], ...] | None = Field(
        default=None, min_length=1, max_length=64,
        description="neighbors of a node that are drawn for each layer of the encoder, in batches of 'batch_nodes' "
        "seeds; None: no such batches",
    )  # fmt: skip
    batches_per_step: Annotated[Whole, Field(ge=1, le=100_000)] | None = Field(
        default=None,
        description="W, batches in a step: their gradients are averaged, and several processes share them; None: one",
    )
    rate_every: Annotated[Whole, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="a drop-rate step follows every n-th encoder step"
    )
    loss_nodes: SomeNodes | None = Field(
        default=None, description="nodes in the loss of an encoder step, chosen at random; None: all nodes"
    )
    rate_nodes: SomeNodes | None = Field(
        default=None, description="nodes in the loss of a drop-rate step, chosen at random; None: all nodes"
    )


class SamplingSettings(CheckedSettings):
    """How embeddings are drawn from the trained model. `BGCL.sample` can use another value in one call."""

    draw_scale: Annotated[Number, Field(gt=0, le=1)] | None = Field(
        default=None,
        description="embeddings are drawn at this fraction of the drop rates; None: at rates of their own, which are "
        "inferred from the graph",
    )


class RuntimeSettings(CheckedSettings):
    """The seed, the device and the memory."""

    seed: Whole = Field(default=0, ge=0, lt=2**63, description="seed of every random number")
    device: str = Field(default="cpu", pattern="^(cpu|cuda|mps|xpu)(:[0-9]+)?$", description="cpu, cuda, mps or xpu")
    precision: Literal["bfloat16"] | None = Field(
        default=None,
        description="numbers in which a training step multiplies matrices: bfloat16 is faster where the processor has "
        "it, and has 8 bits of precision; None: float32",
    )
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
    >>> bgcl.Settings(tau=0.5).tau, bgcl.Settings().encoder
    (0.5, 'mlp')
    >>> bgcl.Settings(encoder="gcn").drop  # what is not given depends on encoder and objective
    ('edges', 'entries')
    """

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, values: Any) -> Any:
        return fill(values) if isinstance(values, dict) else values

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
        check_combination(self)
        blocks = {mask.blocks for mask in self.masks() if mask.blocks > 1}
        if len(blocks) > 1:
            raise BGCLError(f"All masks with blocks must have the same number of blocks. Got {sorted(blocks)}.")
        if max(blocks, default=1) > 1024:
            raise BGCLError(f"A mask must have at most 1,024 blocks. Got {max(blocks):,} blocks instead.")
        for mask in self.masks():
            if mask.layer is not None and mask.layer > self.layers:
                raise BGCLError(
                    f"The mask '{mask}' names layer {mask.layer}, but the model has only {self.layers}. "
                    "Change the mask or 'widths'."
                )
        self.beta_prior()
        return self

    @property
    def layers(self) -> int:
        """The number of layers that masks reach."""
        if self.encoder == "module":
            return 1
        return len(self.widths) if self.hops is None else len(self.widths) - 1 + self.hops

    def masks(self) -> list[Mask]:
        """The masks that `drop` describes."""
        return [parse_mask(sentence) for sentence in self.drop]

    def beta_prior(self) -> tuple[float, float]:
        """`(alpha, beta)` of the prior: the given pair, or `(c/L, c(L-1)/L)` for one number c and L layers."""
        if isinstance(self.prior, tuple):
            return self.prior
        layers = self.layers
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
    >>> "paper-cora" in bgcl.presets()
    True
    """
    return tomllib.loads((resources.files("bgcl") / "presets.toml").read_text("utf-8"))


def make_settings(preset: str | None = None, **given: Any) -> Settings:
    """The settings of a preset, or the defaults, with the `given` values instead of theirs."""
    values: dict[str, Any] = {}
    if preset is not None:
        if not isinstance(preset, str) or preset not in presets():
            raise BGCLError(f"Unknown preset '{preset}'. {nearest(preset, presets())}")
        values |= presets()[preset]
    return Settings(**values | given)
