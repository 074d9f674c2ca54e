"""`BGCL`: the method as one object, in the manner of scikit-learn."""

import copy
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, SupportsIndex

import torch
from torch import Tensor
from torch_geometric.data import Data

from bgcl import automatic
from bgcl import checkpoint as runs
from bgcl.data import check_graph
from bgcl.errors import BGCLError
from bgcl.graph.clusters import Batches
from bgcl.graph.prepared import Graph, prepare
from bgcl.measures.disagreement import contrastive_log_likelihood, disagreement
from bgcl.model.network import Network
from bgcl.model.posterior import Moments, draws, moments
from bgcl.model.training import Record, Training, rate_summary
from bgcl.settings import AUTO, Settings, make_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger("bgcl")


class Reporter(Protocol):
    """Something that shows a training under way."""

    def __call__(self, record: Record) -> None: ...


class BGCL:
    """Bayesian graph contrastive learning: a distribution over embeddings for each node, learned without labels.

    Settings are keyword arguments, a preset's values are their defaults; `bgcl.Settings` lists them with their ranges.
    The preset "auto" picks them by the size of the graph that is fitted.

    >>> import bgcl
    >>> data = bgcl.load("cora")
    >>> model = bgcl.BGCL(preset="cora", epochs=1, seed=0).fit(data, progress=False)
    >>> model.sample(data, samples=3).shape
    torch.Size([3, 2708, 128])
    """

    def __init__(self, preset: str | None = None, **settings: Any) -> None:
        self.preset = preset
        self._given = settings
        self.settings: Settings = make_settings(preset, **settings)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the constructor was given, as scikit-learn's `clone` wants it."""
        return {"preset": self.preset, **self._given}

    def set_params(self, **params: Any) -> "BGCL":
        self.__init__(**self.get_params() | params)  # type: ignore[misc]
        return self

    def __repr__(self) -> str:
        return f"BGCL({', '.join(f'{k}={v!r}' for k, v in self.get_params().items() if v is not None)})"

    def _repr_html_(self) -> str:
        from bgcl.reporting.card import card

        return card(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise BGCLError(
            "A BGCL is not pickled, since a pickle may run any code when it is read: keep it with model.save(folder), "
            "and read it with BGCL.load(folder)."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> "BGCL":
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def fit(
        self, data: Data, y: object = None, *, out: str | os.PathLike[str] | None = None, resume: bool = False,
        progress: bool | Reporter | Sequence[bool | Reporter] = True,
    ) -> "BGCL":  # fmt: skip
        """Train on a graph; `y` is ignored, as labels are not used.

        With `out` the run is kept in a folder after every epoch, and `resume` goes on from there, bit for bit.
        `progress` shows a live line, or is called with the record of each epoch, as a `bgcl.TensorBoard` is; a list has
        several, such as `[True, board]`.
        """
        data = check_graph(data)
        self.settings = self.settings_for(data)
        facts = runs.GraphFacts.of(data, getattr(data, "name", None) or "")
        graph = self._prepare(data)
        network = Network(facts.attributes, self.settings).to(self.settings.device)
        training = Training(
            network, Batches(graph, self.settings.batches, self.settings.clusters_per_batch), self.settings
        )
        self.network_, self.graph_, self.recipe_ = network, facts, getattr(data, "recipe", None)
        self.history_: list[dict[str, Any]] = []
        folder = None if out is None else Path(out)
        if resume:
            self._restore(training, folder)
        with self._reporter(progress, training.epoch) as report:
            self._train(training, folder, report)
        return self

    def settings_for(self, data: Data) -> Settings:
        """The settings that a graph is trained with: what was given, then what its size and its reader suggest."""
        picked = automatic.scaling(data) | (automatic.pick(data) if self.preset == AUTO else {})
        return make_settings(self.preset, **picked | self._given)

    def _train(self, training: Training, folder: Path | None, report: Reporter) -> None:
        for record in training.run():
            if folder is not None:
                if record.epoch == 1:
                    runs.begin(
                        folder, self.settings, self.graph_, self.recipe_
                    )  # not before: a run that was there stays till now
                # First the history, then the tensors: what follows the last whole epoch is cut off on reading.
                runs.append_history(folder, record.to_dict())
                runs.write_tensors(folder, training.network.state_dict(), training.state())
            self.history_.append(record.to_dict())
            log.debug("epoch %d of %d: loss %.4f", record.epoch, self.settings.epochs, record.loss)
            report(record)

    def _restore(self, training: Training, folder: Path | None) -> None:
        if folder is None:
            raise BGCLError("To resume, name the folder of the run with 'out'.")
        saved = runs.read(folder)
        if not saved.training:
            raise BGCLError(f"{folder} holds a model that was saved without its training: it cannot be resumed.")
        free = ("epochs", "memory_budget")
        changed = {name for name, value in self.settings if name not in free and value != getattr(saved.settings, name)}
        if changed:
            raise BGCLError(
                f"{folder} was trained with other settings ({', '.join(sorted(changed))}): it cannot be resumed."
            )
        self._check_fits(saved.graph, self.graph_)
        self._load_network(training.network, saved, folder)
        training.restore(saved.training)
        if self.settings.epochs < training.epoch:
            raise BGCLError(
                f"{folder} is at epoch {training.epoch} already, beyond the {self.settings.epochs} asked for."
            )
        self.history_ = saved.history
        runs.write_about(folder, self.settings, self.graph_)
        runs.write_history(folder, self.history_)

    def _reporter(
        self, progress: bool | Reporter | Sequence[bool | Reporter], start: int
    ) -> AbstractContextManager[Reporter]:
        if isinstance(progress, Sequence):
            return self._reporters(progress, start)
        if callable(progress):
            return nullcontext(progress)
        if not progress:
            return nullcontext(lambda record: None)
        from bgcl.reporting.progress import live

        return live(self.settings.epochs, start)

    @contextmanager
    def _reporters(self, several: Sequence[bool | Reporter], start: int) -> Iterator[Reporter]:
        with ExitStack() as stack:
            reporters = [stack.enter_context(self._reporter(one, start)) for one in several]

            def report(record: Record) -> None:
                for reporter in reporters:
                    reporter(record)

            yield report

    def sample(self, data: Data, samples: int = 100, *, hard: bool = False, seed: int | None = None) -> Tensor:
        """Draws of the embeddings from Q(H), `(samples, N, d)`, from both views' posteriors in turn.

        `hard` masks are Bernoulli draws, even if the model was trained with relaxed ones. The same seed gives
        the same draws; without one it is the model's.
        """
        return torch.stack([draw.cpu() for draw in self.draws(data, samples, hard=hard, seed=seed)])

    def draws(self, data: Data, samples: int = 100, *, hard: bool = False, seed: int | None = None) -> Iterator[Tensor]:
        """As `sample`, but one draw `(N, d)` at a time."""
        if samples < 1:
            raise BGCLError(f"The number of samples must be 1 or more. Got {samples} instead.")
        if seed is not None and not 0 <= seed < 2**63:
            raise BGCLError(f"The seed must be a whole number between 0 and 2^63. Got {seed} instead.")
        network, graph = self._ready(data)
        generator = torch.Generator(self.settings.device).manual_seed(self.settings.seed if seed is None else seed)
        return draws(network, graph, samples, generator, hard=hard)

    def moments(self, data: Data, samples: int = 100, *, hard: bool = False, seed: int | None = None) -> Moments:
        """Mean, deviation and ASTD of each node's embedding, without holding all draws."""
        if samples < 2:
            raise BGCLError(f"A deviation needs 2 samples or more. Got {samples} instead.")
        return moments(self.draws(data, samples, hard=hard, seed=seed))

    def disagreement(self, data: Data, samples: int = 100, *, seed: int | None = None) -> Any:
        """Contrastive model disagreement of each node, `(N,)`: an uncertainty that needs no labels."""
        if samples < 4:
            raise BGCLError(f"A disagreement needs 4 samples or more, two pairs. Got {samples} instead.")
        network, tau = self._fitted(), self.settings.tau
        stream = (network.head(draw) for draw in self.draws(data, samples - samples % 2, seed=seed))
        with torch.no_grad():
            return disagreement(contrastive_log_likelihood(o, t, tau) for o, t in zip(stream, stream, strict=True))

    def embed(self, data: Data) -> Tensor:
        """The deterministic embeddings, without masks, `(N, d)`: the non-Bayesian setting."""
        network, graph = self._ready(data)
        with torch.no_grad():
            embeddings: Tensor = network.encoder(graph)
        return embeddings.cpu()

    @property
    def drop_rates_(self) -> dict[str, list[dict[str, Any]]]:
        """For each view, each mask with the mean and deviation of its drop rates and, where learned, `a` and `b`."""
        return rate_summary(self._fitted())

    def plot_training(self) -> "Figure":
        """The loss and the expected drop rates by epoch, as a matplotlib `Figure`."""
        from bgcl.reporting.training_plots import training_figure

        return training_figure(self._history())

    def plot_drop_rates(self) -> "Figure":
        """The posterior of each learned drop rate in both views, as a matplotlib `Figure`."""
        from bgcl.reporting.training_plots import posterior_figure

        return posterior_figure(self._history())

    def _history(self) -> list[dict[str, Any]]:
        self._fitted()
        if not self.history_:
            raise BGCLError("This BGCL was read without the history of its training: there is nothing to plot.")
        return self.history_

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model to a folder: safetensors and TOML."""
        network = self._fitted()
        runs.write_about(Path(folder), self.settings, self.graph_)
        runs.write_recipe(Path(folder), self.recipe_)
        runs.write_history(Path(folder), self.history_)
        runs.write_tensors(Path(folder), network.state_dict())

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, device: str = "cpu") -> "BGCL":
        """A model that was saved, or a run's latest epoch; refused with the reason if it does not fit."""
        _check_device(device)
        saved = runs.read(folder)
        model = cls(**saved.settings.model_dump() | {"device": device})
        model.graph_, model.history_, model.recipe_ = saved.graph, saved.history, saved.recipe
        model.network_ = Network(saved.graph.attributes, model.settings)
        model._load_network(model.network_, saved, Path(folder))
        model.network_.to(device)
        return model

    @staticmethod
    def _load_network(network: Network, saved: runs.Saved, folder: Path) -> None:
        expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
        found = {name: tuple(tensor.shape) for name, tensor in saved.network.items()}
        for name in sorted(expected.keys() | found.keys()):
            if expected.get(name) != found.get(name):
                raise BGCLError(
                    f"{folder / runs.TENSORS} does not fit {runs.ABOUT}: '{name}' should be {expected.get(name)}, "
                    f"but is {found.get(name)}."
                )
        for name, tensor in saved.network.items():
            if not torch.isfinite(tensor).all():
                raise BGCLError(f"{folder / runs.TENSORS} is damaged: '{name}' is not finite.")
        network.load_state_dict(saved.network)

    def _fitted(self) -> Network:
        if not hasattr(self, "network_"):
            raise BGCLError("This BGCL is not fitted yet: call fit(data) first.")
        return self.network_

    def _ready(self, data: Data) -> tuple[Network, Graph]:
        network = self._fitted()
        data = check_graph(data)
        if data.x.shape[1] != self.graph_.attributes:
            raise BGCLError(
                f"The graph has {data.x.shape[1]} attributes, but the model was trained on {self.graph_.attributes}."
            )
        return network, self._prepare(data)

    def _prepare(self, data: Data) -> Graph:
        _check_device(self.settings.device)
        settings = self.settings
        return prepare(data, normalise_rows=settings.normalise_rows, row_norm=settings.row_norm, device=settings.device)

    def check_trained_on(self, data: Data) -> None:
        """Refuse a graph that is not the one this model was trained on."""
        self._fitted()
        self._check_fits(self.graph_, runs.GraphFacts.of(check_graph(data)))

    @staticmethod
    def _check_fits(trained: runs.GraphFacts, given: runs.GraphFacts) -> None:
        if trained.fingerprint != given.fingerprint:
            raise BGCLError(
                f"The run was trained on another graph ({trained.nodes} nodes, {trained.edges} edges, "
                f"{trained.attributes} attributes), not on this one ({given.nodes}, {given.edges}, {given.attributes})."
            )


def _check_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise BGCLError(f"The setting 'device' is '{device}', which is not on this machine.") from None
