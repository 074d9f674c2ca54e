"""Every setting of a model in one object, with its range; presets from one data file."""

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from bgcl.augmentation.language import check_mask, parse_mask
from bgcl.augmentation.masks import Mask
from bgcl.errors import BGCLError, nearest

Width = Annotated[int, Field(ge=1, le=65536)]
Positive = Annotated[float, Field(gt=0, le=1e6)]


AUTO = "auto"  # the preset that is picked for a graph when it is at hand, see `bgcl.automatic`


class Settings(BaseModel):
    """What a model is and how it is trained. The defaults are this library's; `presets.toml` has what differs for a
    data set of the paper.

    >>> import bgcl
    >>> bgcl.Settings(tau=0.5).tau, bgcl.Settings().drop
    (0.5, ('edges', 'entries'))
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    drop: tuple[str, ...] = Field(
        ("edges", "entries"), min_length=1, description="what a view drops, a sentence for each mask"
    )
    normalise: Literal["after", "before"] = Field(
        "after", description="normalise the adjacency after or before masking"
    )
    mask_values: Literal["relaxed", "hard"] = Field(
        "hard", description="relaxed keep values in (0, 1), or 0 and 1 with the gradient of the relaxed ones"
    )
    temperature: float = Field(0.3, ge=0.01, le=10, description="of the concrete relaxation of the masks")
    rate_draw: Literal["sample", "median"] = Field(
        "median", description="the rate that masks are drawn at: a draw from its posterior, or the median"
    )
    draw_scale: float = Field(
        0.4, gt=0, le=1, description="embeddings are drawn with masks at this share of the rates of training"
    )
    rate_start: tuple[Positive, Positive] = Field(
        (1.0, 1.0), description="a, b of the Kumaraswamy posterior at the start"
    )
    prior: tuple[Positive, Positive] = Field((1.0, 1.0), description="alpha, beta of the Beta prior of the drop rates")
    prior_c: Positive | None = Field(
        None, description="c of the prior Beta(c/L, c(L-1)/L) for L layers, instead of prior"
    )
    kl_weight: float = Field(1.0, ge=0, le=1e6, description="weight of the KL of the drop rates against the loss")
    keep: float = Field(
        0.3,
        ge=0,
        lt=1,
        description="share of the information that the views must still share; 0 lets rates rise freely",
    )
    widths: tuple[Width, ...] = Field((256, 128), min_length=1, max_length=16, description="output width of each layer")
    activation: Literal["relu", "prelu"] = Field("relu", description="behind each layer")
    tau: float = Field(0.4, ge=0.02, le=100, description="temperature of the contrastive loss")
    weight_decay: float = Field(5e-9, ge=0, le=1, description="lambda, the weight of the KL of the weights")
    lr_weights: float = Field(0.001, gt=0, le=1, description="learning rate of the encoder")
    lr_rates: float = Field(0.01, gt=0, le=1, description="learning rate of the drop rates")
    loss_nodes: int = Field(
        1 << 30, ge=2, le=1 << 30, description="nodes whose loss the encoder's step looks at, at most"
    )
    rate_nodes: int = Field(1024, ge=2, le=1 << 30, description="nodes whose loss the rates' step looks at, at most")
    epochs: int = Field(300, ge=1, le=1_000_000, description="number of epochs")
    batches: int = Field(1, ge=1, le=100_000, description="number of batches of an epoch, made of METIS clusters")
    clusters_per_batch: int = Field(20, ge=1, le=10_000, description="number of clusters that make a batch")
    normalise_rows: bool = Field(True, description="divide each node's attributes by their length or sum")
    row_norm: Literal["length", "sum"] = Field("length", description="which of the two")
    memory_budget: int = Field(1024, ge=0, le=1 << 20, description="MiB of similarities that a step may keep")
    seed: int = Field(0, ge=0, lt=2**63, description="of every random number")
    device: str = Field("cpu", description="where to compute, such as cpu or cuda")

    @field_validator("drop", mode="before")
    @classmethod
    def _sentences(cls, drop: Any) -> Any:
        if isinstance(drop, str | Mask):
            drop = (drop,)
        if not isinstance(drop, list | tuple):
            return drop
        for mask in drop:
            if isinstance(mask, Mask) and parse_mask(str(check_mask(mask))) != mask:
                raise BGCLError(
                    f"The mask {type(mask).__name__} cannot be told by its sentence, '{mask}': give its class a 'kind' "
                    "of its own, and no fields beside those of Mask."
                )
        return tuple(str(mask) if isinstance(mask, Mask) else mask for mask in drop)

    @model_validator(mode="after")
    def _fits_together(self) -> "Settings":
        blocks = {mask.blocks for mask in self.masks() if mask.blocks > 1}
        if len(blocks) > 1:
            raise BGCLError(f"All masks must come in the same number of blocks, or in one. Got {sorted(blocks)}.")
        for mask in self.masks():
            if mask.layer is not None and mask.layer > len(self.widths):
                raise BGCLError(f"The mask '{mask}' is of a layer that a model of {len(self.widths)} layers lacks.")
        self.beta_prior()
        return self

    def masks(self) -> list[Mask]:
        return [parse_mask(sentence) for sentence in self.drop]

    def beta_prior(self) -> tuple[float, float]:
        """`(alpha, beta)`: as given, or `Beta(c/L, c(L-1)/L)`."""
        if self.prior_c is None:
            return self.prior
        layers = len(self.widths)
        if layers == 1:
            raise BGCLError("The setting 'prior_c' needs two layers or more: with one, Beta(c, 0) is no prior.")
        return self.prior_c / layers, self.prior_c * (layers - 1) / layers


@cache
def presets() -> dict[str, dict[str, Any]]:
    """The settings of each preset, as the data file has them.

    >>> "cora" in presets()
    True
    """
    return tomllib.loads((resources.files("bgcl") / "presets.toml").read_text("utf-8"))


def make_settings(preset: str | None = None, **given: Any) -> Settings:
    """A preset's settings, or the defaults, with what is `given` in their place; errors name setting and range."""
    values: dict[str, Any] = {}
    if preset is not None and preset != AUTO:
        if preset not in presets():
            raise BGCLError(f"Unknown preset '{preset}'. {nearest(preset, [*presets(), AUTO])}")
        values |= presets()[preset]
    try:
        return Settings(**values | given)
    except ValidationError as error:
        raise BGCLError(_one_line(error.errors()[0])) from None


def _one_line(problem: Any) -> str:
    inner = problem.get("ctx", {}).get("error")
    if isinstance(inner, BGCLError):
        return str(inner)
    name = str(problem["loc"][0]) if problem["loc"] else "?"
    if problem["type"] == "extra_forbidden":
        return f"Unknown setting '{name}'. {nearest(name, Settings.model_fields)}"
    return f"The setting '{name}' must be {_range(name)}. Got {problem['input']!r} instead."


def _range(name: str) -> str:
    """What a setting may be, in words."""
    field = Settings.model_json_schema()["properties"][name]
    options: Sequence[Any] = field.get("anyOf", [field])
    words = []
    for option in options:
        if "enum" in option:
            words.append(" or ".join(repr(value) for value in option["enum"]))
        elif option.get("type") in ("integer", "number"):
            low = option.get("minimum", option.get("exclusiveMinimum"))
            high = option.get("maximum", option.get("exclusiveMaximum"))
            kind = "a whole number" if option["type"] == "integer" else "a number"
            if "exclusiveMinimum" in option:
                words.append(f"{kind} above {low:g} and at most {high:g}")
            elif "exclusiveMaximum" in option:
                words.append(f"{kind} from {low:g} to below {high:g}")
            else:
                words.append(f"{kind} between {low:g} and {high:g}")
        elif option.get("type") == "null":
            words.append("nothing")
        elif option.get("type") == "boolean":
            words.append("true or false")
        else:
            words.append(f"{field['description']}, such as {Settings.model_fields[name].default!r}")
    return ", or ".join(words)
