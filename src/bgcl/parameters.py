"""The parameters of `BGCL`: one for each setting."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from sklearn.base import BaseEstimator
from torch_geometric.data import Data

from bgcl import graph_settings
from bgcl.augmentation.masks import Mask
from bgcl.data.pyg import check_graph
from bgcl.errors import BGCLError
from bgcl.settings import DEFAULT, Default, Settings, is_default, make_settings
from bgcl.unused_settings import check_used

if TYPE_CHECKING:
    from torch import nn

    from bgcl.model.objectives.base import Objective

MODULE = "module"  # the name of an encoder or an objective of the user in the settings


class BGCLParameters(BaseEstimator):  # type: ignore[misc]
    """The constructor of `BGCL`, which scikit-learn reads the names of the parameters from."""

    def __init__(
        self, preset: str | None = None, *,
        drop: str | Mask | Sequence[str | Mask] = DEFAULT,
        normalize: Literal["after", "before"] | Default = DEFAULT,
        mask_values: Literal["relaxed", "hard"] | Default = DEFAULT,
        mask_temperature: float | Default = DEFAULT,
        rate_rule: Literal["evidence", "adversary"] | Default = DEFAULT,
        rate_draw: Literal["sample", "median"] | Default = DEFAULT,
        rate_start: tuple[float, float] | Default = DEFAULT,
        prior: tuple[float, float] | float | Default = DEFAULT,
        encoder: "str | nn.Module" = DEFAULT,
        widths: Sequence[int] | Default = DEFAULT,
        activation: Literal["relu", "prelu"] | Default = DEFAULT,
        norm: Literal["none", "layer", "batch"] | Default = DEFAULT,
        skip: bool | Default = DEFAULT,
        jump: Literal["last", "concatenate", "max"] | Default = DEFAULT,
        hops: int | Default | None = DEFAULT,
        heads: int | Default | None = DEFAULT,
        members: int | Default = DEFAULT,
        row_norm: Literal["auto", "length", "sum", "none"] | Default = DEFAULT,
        parts: Sequence[str] | Default = DEFAULT,
        part_width: int | Default = DEFAULT,
        objective: "str | Objective" = DEFAULT,
        tau: float | Default | None = DEFAULT,
        projection: bool | Default | None = DEFAULT,
        negatives: Literal["both views", "other view"] | Default | None = DEFAULT,
        decorrelation_weight: float | Default | None = DEFAULT,
        momentum: float | Default | None = DEFAULT,
        shared_information: float | Default | None = DEFAULT,
        kl_weight: float | Default | None = DEFAULT,
        weight_decay: float | Default = DEFAULT,
        epochs: int | Default | None = DEFAULT,
        until_settled: bool | Default = DEFAULT,
        lr_weights: float | Default = DEFAULT,
        lr_rates: float | Default | None = DEFAULT,
        batch: str | None = DEFAULT,
        batches: int | Default = DEFAULT,
        clusters_per_batch: int | Default = DEFAULT,
        batch_nodes: int | Default | None = DEFAULT,
        neighbors: Sequence[int] | Default | None = DEFAULT,
        batches_per_step: int | Default | None = DEFAULT,
        rate_every: int | Default | None = DEFAULT,
        loss_nodes: int | Default | None = DEFAULT,
        rate_nodes: int | Default | None = DEFAULT,
        draw_scale: float | Default | None = DEFAULT,
        seed: int | Default = DEFAULT,
        device: str = DEFAULT,
        precision: Literal["bfloat16"] | Default | None = DEFAULT,
        memory_budget: int | Default = DEFAULT,
    ) -> None:  # fmt: skip
        self.preset = preset
        self.drop = drop
        self.normalize = normalize
        self.mask_values = mask_values
        self.mask_temperature = mask_temperature
        self.rate_rule = rate_rule
        self.rate_draw = rate_draw
        self.rate_start = rate_start
        self.prior = prior
        self.encoder = encoder
        self.widths = widths
        self.activation = activation
        self.norm = norm
        self.skip = skip
        self.jump = jump
        self.hops = hops
        self.heads = heads
        self.members = members
        self.row_norm = row_norm
        self.parts = parts
        self.part_width = part_width
        self.objective = objective
        self.tau = tau
        self.projection = projection
        self.negatives = negatives
        self.decorrelation_weight = decorrelation_weight
        self.momentum = momentum
        self.shared_information = shared_information
        self.kl_weight = kl_weight
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.until_settled = until_settled
        self.lr_weights = lr_weights
        self.lr_rates = lr_rates
        self.batch = batch
        self.batches = batches
        self.clusters_per_batch = clusters_per_batch
        self.batch_nodes = batch_nodes
        self.neighbors = neighbors
        self.batches_per_step = batches_per_step
        self.rate_every = rate_every
        self.loss_nodes = loss_nodes
        self.rate_nodes = rate_nodes
        self.draw_scale = draw_scale
        self.seed = seed
        self.device = device
        self.precision = precision
        self.memory_budget = memory_budget

    def settings_for(self, data: Data) -> Settings:
        """The settings that `fit` would train a graph with."""
        return self._settings(check_graph(data))

    def _settings(self, checked: Data) -> Settings:
        """The settings for a graph that `check_graph` returned."""
        given = self.given()
        for name in ("encoder", "objective"):
            if isinstance(given.get(name), str) and given[name] == MODULE:
                raise BGCLError(
                    f"'{MODULE}' stands for an {name} of your own. Give the module itself, as {name}=module."
                )
        given |= dict.fromkeys(self._modules(), MODULE)
        settings = make_settings(self.preset, **given)
        check_used(settings, given)
        return graph_settings.fit_to_graph(checked, settings, given)

    def given(self) -> dict[str, Any]:
        """The settings that the constructor or `set_params` was given, by name.

        >>> import bgcl
        >>> bgcl.BGCL("paper-cora", tau=0.5).given()
        {'tau': 0.5}
        """
        params = self.get_params(deep=False)
        return {name: value for name, value in params.items() if name != "preset" and not is_default(value)}

    def _modules(self) -> dict[str, Any]:
        """The encoder and the objective, if they are modules of the user."""
        both = {"encoder": self.encoder, "objective": self.objective}
        return {name: value for name, value in both.items() if not isinstance(value, str)}
