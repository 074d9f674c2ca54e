"""`BGCL`: the method as one scikit-learn estimator."""

import copy
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, SupportsIndex

import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from torch import Tensor
from torch_geometric.data import Data

from bgcl import auto_preset, checkpoint
from bgcl.augmentation.drop_rates import RatePosterior
from bgcl.augmentation.masks import Mask
from bgcl.data.pyg import check_graph
from bgcl.errors import BGCLError
from bgcl.graph.clusters import Batches
from bgcl.graph.prepared import PreparedGraph
from bgcl.measures.disagreement import disagreement
from bgcl.model.network import Network
from bgcl.model.objectives.infonce import contrastive_log_likelihood
from bgcl.model.posterior import Moments, draws, moments
from bgcl.model.training import Record, Training
from bgcl.ready_graph import GraphMemo, ReadyGraph, check_device
from bgcl.reporting.progress import Progress, reporter
from bgcl.settings import AUTO, DEFAULT, Default, Settings, is_default, make_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class NotFittedError(BGCLError, SklearnNotFittedError):  # type: ignore[misc]
    """A method needs a fitted model. It is scikit-learn's `NotFittedError` too."""


class BGCL(BaseEstimator):  # type: ignore[misc]
    """Bayesian graph contrastive learning: a distribution over embeddings for each node, learned without labels.

    Every argument is a setting. An argument that is not given has the value of the preset, or else the default of
    `bgcl.Settings`. Values are checked by `fit`, not before.

    Args:
        preset: a name from `bgcl.presets()`, or "auto" for settings that depend on the size of the graph.
        drop: what a view drops, one sentence for each mask, such as `["edges", "entries at 0.2"]`.
        normalize: normalize the adjacency matrix "after" or "before" it is masked.
        mask_values: "hard" masks of 0 and 1, or "relaxed" ones in between.
        mask_temperature: temperature of the relaxed masks.
        rate_draw: draw masks at a "sample" of the drop rate's posterior, or at its "median".
        rate_start: `a` and `b` of the Kumaraswamy posterior at the start.
        prior: `alpha` and `beta` of the Beta prior, or one number c for `Beta(c/L, c(L-1)/L)`.
        widths: output width of each layer.
        activation: "relu" or "prelu".
        row_norm: divide each node's attributes by their "length", their "sum", or by nothing ("none").
        tau: temperature of the contrastive loss.
        shared_information: share of the possible information that the views must still have in common.
        kl_weight: weight of the KL divergence of the drop rates.
        weight_decay: weight of the KL divergence of the weights.
        epochs: number of epochs.
        lr_weights: learning rate of the encoder.
        lr_rates: learning rate of the drop rates.
        batches: batches in an epoch, each a union of METIS clusters.
        clusters_per_batch: clusters in a batch.
        loss_nodes: nodes in the loss of an encoder step; None: all.
        rate_nodes: nodes in the loss of a drop-rate step; None: all.
        draw_scale: embeddings are drawn at this fraction of the drop rates.
        seed: seed of every random number.
        device: device to compute on.
        memory_budget: MiB of similarities that a step may keep.

    Attributes:
        settings_: the `bgcl.Settings` that the model was trained with.
        drop_rates_: for each view, the `RatePosterior` of each mask.
        history_: a `Record` for each epoch.
        graph_: size and fingerprint of the training graph.
        recipe_: how the training graph was read from tables; None if it was not.
        network_: the torch module.

    >>> import bgcl
    >>> data = bgcl.load("cora")
    >>> model = bgcl.BGCL(preset="cora", epochs=1, seed=0).fit(data, progress=False)
    >>> model.sample(data, samples=3).shape
    torch.Size([3, 2708, 128])
    """

    def __init__(
        self, preset: str | None = None, *,
        drop: str | Mask | Sequence[str | Mask] = DEFAULT,
        normalize: Literal["after", "before"] | Default = DEFAULT,
        mask_values: Literal["relaxed", "hard"] | Default = DEFAULT,
        mask_temperature: float | Default = DEFAULT,
        rate_draw: Literal["sample", "median"] | Default = DEFAULT,
        rate_start: tuple[float, float] | Default = DEFAULT,
        prior: tuple[float, float] | float | Default = DEFAULT,
        widths: Sequence[int] | Default = DEFAULT,
        activation: Literal["relu", "prelu"] | Default = DEFAULT,
        row_norm: Literal["length", "sum", "none"] | Default = DEFAULT,
        tau: float | Default = DEFAULT,
        shared_information: float | Default = DEFAULT,
        kl_weight: float | Default = DEFAULT,
        weight_decay: float | Default = DEFAULT,
        epochs: int | Default = DEFAULT,
        lr_weights: float | Default = DEFAULT,
        lr_rates: float | Default = DEFAULT,
        batches: int | Default = DEFAULT,
        clusters_per_batch: int | Default = DEFAULT,
        loss_nodes: int | Default | None = DEFAULT,
        rate_nodes: int | Default | None = DEFAULT,
        draw_scale: float | Default = DEFAULT,
        seed: int | Default = DEFAULT,
        device: str = DEFAULT,
        memory_budget: int | Default = DEFAULT,
    ) -> None:  # fmt: skip
        self.preset = preset
        self.drop = drop
        self.normalize = normalize
        self.mask_values = mask_values
        self.mask_temperature = mask_temperature
        self.rate_draw = rate_draw
        self.rate_start = rate_start
        self.prior = prior
        self.widths = widths
        self.activation = activation
        self.row_norm = row_norm
        self.tau = tau
        self.shared_information = shared_information
        self.kl_weight = kl_weight
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.lr_weights = lr_weights
        self.lr_rates = lr_rates
        self.batches = batches
        self.clusters_per_batch = clusters_per_batch
        self.loss_nodes = loss_nodes
        self.rate_nodes = rate_nodes
        self.draw_scale = draw_scale
        self.seed = seed
        self.device = device
        self.memory_budget = memory_budget

    def settings_for(self, data: Data) -> Settings:
        """The settings with which `fit` would train on a graph.

        A given argument comes first, then what `preset="auto"` and the reader of the graph suggest, then the preset.
        """
        suggested = auto_preset.row_scaling(data) | (auto_preset.pick(data) if self.preset == AUTO else {})
        return make_settings(self.preset, **suggested | self.given())

    def given(self) -> dict[str, Any]:
        """The settings that the constructor or `set_params` was given, by name.

        >>> BGCL("cora", tau=0.5).given()
        {'tau': 0.5}
        """
        params = self.get_params(deep=False)
        return {name: value for name, value in params.items() if name != "preset" and not is_default(value)}

    def fit(
        self, data: Data, y: object = None, *, out: str | os.PathLike[str] | None = None, resume: bool = False,
        progress: Progress = True,
    ) -> Self:  # fmt: skip
        """Train on a graph, without its labels.

        Args:
            data: a PyTorch Geometric `Data` with `x` of shape `(N, F)` and `edge_index`.
            y: ignored; it is here because scikit-learn passes it.
            out: folder in which every epoch is saved.
            resume: continue the run in `out`. It ends bit for bit where an uninterrupted run would.
            progress: True for a live line, False for none, a function that is called with the `Record` of each epoch,
                or a list of these.

        Returns:
            The fitted model.

        Raises:
            BGCLError: a setting, the graph or the folder is not valid, or the loss is not finite.
        """
        checked = check_graph(data)
        settings = self.settings_for(checked)
        ready = ReadyGraph(checked, settings.row_norm, settings.device)
        network = Network(ready.facts.num_attributes, settings).to(settings.device)
        training = Training(network, Batches(ready.prepared, settings.batches, settings.clusters_per_batch), settings)
        folder = None if out is None else Path(out)
        history = checkpoint.resume(training, settings, ready.facts, folder) if resume else []
        self.settings_, self.network_, self.graph_ = settings, network, ready.facts
        self.recipe_ = ready.checked.recipe if "recipe" in ready.checked else None
        self.history_: list[Record] = history
        self._memo = GraphMemo(data, ready)
        with reporter(progress, settings.epochs, training.epoch) as report:
            for record in training.run():
                if folder is not None:
                    checkpoint.save_epoch(folder, training, record, self.graph_, self.recipe_)
                self.history_.append(record)
                report(record)
        return self

    def sample(
        self, data: Data, samples: int = 100, *, scale: float | None = None, hard: bool = False, seed: int | None = None
    ) -> Tensor:
        """Draws of the embeddings from their posterior Q(H), in turn from the two views.

        Args:
            data: a graph with as many attributes as the training graph.
            samples: number of draws S.
            scale: fraction of the drop rates at which masks are drawn; None: the fitted `draw_scale`.
            hard: draw masks of 0 and 1, even if the model was trained with relaxed ones.
            seed: seed of the draws; None: the model's. The same seed gives the same draws.

        Returns:
            Draws of shape `(S, N, d)`.
        """
        return torch.stack([draw.cpu() for draw in self.draws(data, samples, scale=scale, hard=hard, seed=seed)])

    def draws(
        self, data: Data, samples: int = 100, *, scale: float | None = None, hard: bool = False, seed: int | None = None
    ) -> Iterator[Tensor]:
        """The draws of `sample` one at a time, each of shape `(N, d)`, so that not all have to fit into memory."""
        network, graph = self._ready(data)
        if samples < 1:
            raise BGCLError(f"The number of samples must be 1 or more. Got {samples} instead.")
        if seed is not None and not 0 <= seed < 2**63:
            raise BGCLError(f"The seed must be a whole number between 0 and 2^63. Got {seed} instead.")
        settings = self.settings_ if scale is None else self.settings_.with_changes(draw_scale=scale)
        generator = torch.Generator(settings.device).manual_seed(settings.seed if seed is None else seed)
        return draws(network, graph, samples, generator, scale=settings.draw_scale, hard=hard)

    def moments(
        self, data: Data, samples: int = 100, *, scale: float | None = None, hard: bool = False, seed: int | None = None
    ) -> Moments:
        """Mean, standard deviation and ASTD of each node's embedding over draws that are not kept.

        The arguments are those of `sample`, with at least two samples.
        """
        if samples < 2:
            raise BGCLError(f"A standard deviation needs 2 samples or more. Got {samples} instead.")
        return moments(self.draws(data, samples, scale=scale, hard=hard, seed=seed))

    def disagreement(self, data: Data, samples: int = 100, *, seed: int | None = None) -> npt.NDArray[Any]:
        """Contrastive model disagreement of each node, `(N,)`: a measure of uncertainty that needs no labels."""
        if samples < 4:
            raise BGCLError(f"A disagreement needs 4 samples or more, two pairs. Got {samples} instead.")
        network, _ = self._ready(data)
        stream = (network.head(draw) for draw in self.draws(data, samples - samples % 2, seed=seed))
        pairs = zip(stream, stream, strict=True)
        with torch.no_grad():
            return disagreement(contrastive_log_likelihood(o, t, self.settings_.tau) for o, t in pairs)

    def embed(self, data: Data) -> Tensor:
        """The embeddings without masks, `(N, d)`: the non-Bayesian setting."""
        network, graph = self._ready(data)
        with torch.no_grad():
            embeddings: Tensor = network.encoder(graph)
        return embeddings.cpu()

    @property
    def drop_rates_(self) -> dict[str, list[RatePosterior]]:
        """For each view, "o" and "t", the posterior of each mask's drop rates."""
        return self._fitted().augmentation.posteriors()

    def plot_training(self) -> "Figure":
        """The loss and the expected drop rates by epoch, as a matplotlib `Figure`."""
        from bgcl.reporting.plots import plot_training

        return plot_training(self._history())

    def plot_drop_rates(self) -> "Figure":
        """The posterior of each learned drop rate in both views, as a matplotlib `Figure`."""
        from bgcl.reporting.plots import plot_drop_rates

        return plot_drop_rates(self._history())

    def _history(self) -> list[Record]:
        self._fitted()
        if not self.history_:
            raise BGCLError("This model was loaded without the history of its training: there is nothing to plot.")
        return self.history_

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the fitted model in a folder, as safetensors and TOML."""
        network = self._fitted()
        checkpoint.write_about(Path(folder), self.settings_, self.graph_)
        checkpoint.write_recipe(Path(folder), self.recipe_)
        checkpoint.write_history(Path(folder), self.history_)
        checkpoint.write_tensors(Path(folder), network.state_dict())

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: str = "cpu") -> Self:
        """A model that was saved, or the latest epoch of a run.

        Raises:
            BGCLError: a file is missing or damaged, or the files do not fit together.
        """
        check_device(device)
        saved = checkpoint.read(folder)
        model = cls(**dict(saved.settings.with_changes(device=device)))
        model.settings_, model.graph_ = saved.settings.with_changes(device=device), saved.graph
        model.history_, model.recipe_ = saved.history, saved.recipe
        model.network_ = Network(saved.graph.num_attributes, model.settings_)
        checkpoint.load_network(model.network_, saved, Path(folder))
        model.network_.to(device)
        return model

    def check_trained_on(self, data: Data) -> None:
        """Raise a `BGCLError` if a graph is not the one that this model was trained on."""
        self._fitted()
        checkpoint.check_same_graph(self.graph_, self._ready_graph(data).facts)

    def _fitted(self) -> Network:
        if not hasattr(self, "network_"):
            raise NotFittedError("This BGCL is not fitted yet: call fit(data) first.")
        return self.network_

    def _ready(self, data: Data) -> tuple[Network, PreparedGraph]:
        """The network, and a graph in the form that it takes."""
        network, ready = self._fitted(), self._ready_graph(data)
        found, expected = ready.checked.x.shape[1], self.graph_.num_attributes
        if found != expected:
            raise BGCLError(f"The graph has {found} attributes, but the model was trained on {expected}.")
        return network, ready.prepared

    def _ready_graph(self, data: Data) -> ReadyGraph:
        """The same graph is checked, sorted and hashed only once."""
        memo: GraphMemo | None = getattr(self, "_memo", None)
        if memo is None or not memo.holds(data):
            ready = ReadyGraph(check_graph(data), self.settings_.row_norm, self.settings_.device)
            self._memo = memo = GraphMemo(data, ready)
        return memo.ready

    def _repr_html_(self) -> str:
        from bgcl.reporting.card import card

        return card(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise BGCLError(
            "A BGCL cannot be pickled, because reading a pickle can run any code. Save it with model.save(folder) and "
            "load it with BGCL.load(folder)."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(copy.deepcopy({k: v for k, v in vars(self).items() if k != "_memo"}, memo))
        return twin
