"""`BGCL`: the method as one scikit-learn estimator."""

import contextlib
import copy
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn, Self, SupportsIndex

import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from bgcl import checkpoint, fitting
from bgcl.arguments import flag, node_numbers, path_of, seed_or, whole
from bgcl.augmentation.drop_rates import RatePosterior
from bgcl.batching import check_cost
from bgcl.data.pyg import check_graph, warn_of_unused
from bgcl.errors import BGCLError
from bgcl.files import sole_use
from bgcl.measures.disagreement import disagreement
from bgcl.model.local import draws_of_nodes, reach_of, rows_of_draws
from bgcl.model.objectives.base import Objective
from bgcl.model.posterior import Moments, anchored_log_likelihoods, draws, moments, pairs_of_views
from bgcl.processes.team import Team
from bgcl.progress import status, with_progress
from bgcl.ready_graph import check_device
from bgcl.ready_model import NotFittedError, ReadyModel, memo_of, ready_graph
from bgcl.reporting.history_plots import HistoryPlots
from bgcl.reporting.progress import Progress, check_progress, reporter, shows_line

__all__ = ["BGCL", "NotFittedError"]


class BGCL(ReadyModel, HistoryPlots):
    """Bayesian graph contrastive learning: a distribution over embeddings for each node, learned without labels.

    Every argument is a setting, and none has to be given. What is not given has the value of the preset, or else the
    default of `bgcl.Settings`, which depends on encoder and objective. Values are checked by `fit`, not before.

    Args:
        preset: a name from `bgcl.presets()`, such as "paper-cora".
        drop: what a view drops, one sentence for each mask, such as `["edges", "entries at 0.2"]`.
        normalize: normalize the adjacency matrix "after" or "before" it is masked.
        mask_values: "hard" masks of 0 and 1, or "relaxed" ones in between.
        mask_temperature: temperature of the relaxed masks.
        rate_rule: drop rates by the "evidence" of the graph, or by the paper's "adversary" of the encoder.
        rate_draw: draw masks at a "sample" of the drop rate's posterior, or at its "median".
        rate_start: `a` and `b` of the Kumaraswamy posterior at the start.
        prior: `alpha` and `beta` of the Beta prior, or one number c for `Beta(c/L, c(L-1)/L)`.
        encoder: "mlp", "gcn" (the paper's), "hops", "sage", "gin" or "gat"; "pyg:NAME" for a convolution of PyTorch
            Geometric; or a module that is called with `(x, edge_index, edge_weight)`.
        widths: output width of each layer.
        activation: "relu" or "prelu".
        norm: "layer", "batch" or "none": normalization before each activation.
        skip: add the input of a layer to its output, from the second layer on.
        jump: hand on the output of the "last" layer, or those of all layers: "concatenate" or "max".
        hops: how many hops the encoder "hops" keeps.
        heads: attention heads of the encoder "gat".
        members: encoders that are trained side by side, each from a start of its own.
        row_norm: divide each node's attributes by their "length", their "sum", or by nothing ("none"). "auto" also
            weighs columns, and takes ranks of dense numbers.
        parts: the parts of the embedding, one sentence for each, such as `["encoder", "attributes hop 1"]`.
        part_width: width of the parts that are not trained.
        objective: "infonce" (the paper's), "decorrelation", "bootstrap" or "infomax"; or a
            `bgcl.model.objectives.base.Objective`.
        tau: temperature of the objective "infonce".
        projection: whether the objective "infonce" has a projection head.
        negatives: the nodes that the objective "infonce" tells a node from: those of "both views", or only of the
            "other view".
        decorrelation_weight: weight of the decorrelation in the objective "decorrelation".
        momentum: how slowly the copy of the encoder follows in the objective "bootstrap".
        shared_information: share of the possible information that the views must still have in common.
        kl_weight: weight of the KL divergence of the drop rates.
        weight_decay: weight of the KL divergence of the weights.
        epochs: the greatest number of epochs; None: as many as make 300 steps.
        until_settled: end training before, as soon as twice the training would gain little.
        lr_weights: learning rate of the encoder.
        lr_rates: learning rate of the drop rates.
        batch: what a batch is: "full" for the whole graph, "clusters", or "neighbors" for random nodes with sampled
            neighbors; "auto" chooses. None: what the other settings say.
        batches: batches in an epoch, each a union of METIS clusters.
        clusters_per_batch: clusters in a batch.
        batch_nodes: nodes in a batch of random nodes, for the encoder "mlp", or its seeds; None: no such batches.
        neighbors: neighbors of a node that are drawn for each layer, in batches of `batch_nodes` seeds.
        batches_per_step: batches in a step, whose gradients are averaged. Several processes share them. None: one.
        rate_every: a drop-rate step follows every n-th encoder step.
        loss_nodes: nodes in the loss of an encoder step; None: all.
        rate_nodes: nodes in the loss of a drop-rate step; None: all.
        draw_scale: embeddings are drawn at this fraction of the drop rates; None: at rates that are inferred for draws.
        seed: seed of every random number.
        device: device to compute on.
        precision: "bfloat16" multiplies the matrices of a training step in numbers of 16 bits; None: in those of 32.
        memory_budget: MiB of similarities that a step may keep.

    Attributes:
        settings_: the `bgcl.Settings` that the model was trained with.
        drop_rates_, draw_rates_: for each view, the `RatePosterior` of each mask: in training, and in draws.
        history_: a `Record` for each epoch.
        graph_: size and fingerprint of the training graph.
        recipe_: how the training graph was read from tables; None if it was not.
        parts_: widths of the parts of the embedding, for `bgcl.MixtureClassifier(parts=model.parts_)`.
        network_: the torch module.

    >>> import bgcl
    >>> data = bgcl.load("cora")
    >>> model = bgcl.BGCL(preset="paper-cora", epochs=1, seed=0).fit(data, progress=False)
    >>> model.sample(data, samples=3).shape
    torch.Size([3, 2708, 128])
    """

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
        folder = None if out is None else path_of("'out'", out)
        check_progress(progress)
        team = Team.current()
        with sole_use(folder) if folder is not None and team.is_main else contextlib.nullcontext():
            return self._fit(data, folder, flag("resume", resume), progress if team.is_main else False, team)

    def _fit(self, data: Data, folder: Path | None, resume: bool, progress: Progress, team: Team) -> Self:
        with team.agreed():
            checked = check_graph(data)
            warn_of_unused(data)
            settings = self._settings(checked)
            check_cost(checked, settings)
            ready = ready_graph(checked, settings)
            with status("Preparing the graph", show=shows_line(progress)):
                network, batches = fitting.prepare(ready, settings, copy.deepcopy(self._modules()))
            fitting.check_team(team, settings, network)
        fitting.agree(team, settings, ready, batches)
        training, self.history_ = fitting.begin(network, batches, settings, ready, team, folder, resume)
        self.settings_, self.network_, self.graph_ = settings, network, ready.facts
        self.recipe_ = ready.checked.recipe if "recipe" in ready.checked else None
        self._memo = memo_of(data, ready)
        with reporter(progress, settings.epochs or 0, training.epoch) as report:
            for record in fitting.epochs(training, folder, ready, self.recipe_):
                self.history_.append(record)
                report(record)
                ready.alike = None  # if the report asked for embeddings: the next epoch changes which nodes are alike
        return self

    def sample(
        self, data: Data, samples: int = 100, *, scale: float | None = None, hard: bool = False,
        seed: int | None = None, nodes: object = None,
    ) -> Tensor:  # fmt: skip
        """Draws of the embeddings from their posterior Q(H), in turn from the two views.

        Args:
            data: a graph with as many attributes as the training graph.
            samples: number of draws S.
            scale: fraction of the drop rates; None: the fitted `draw_scale`, or the rates inferred for draws.
            hard: draw masks of 0 and 1, even if the model was trained with relaxed ones.
            seed: seed of the draws; None: the model's. The same seed gives the same draws.
            nodes: numbers of some nodes. If the model looks only some hops far, nothing else is computed.

        Returns:
            Draws of shape `(S, N, d)`, or `(S, n, d)` of some nodes.
        """
        how: dict[str, Any] = {"scale": scale, "hard": hard, "seed": seed, "nodes": nodes}
        return torch.stack([draw.cpu() for draw in self.draws(data, samples, **how)])

    def draws(
        self, data: Data, samples: int = 100, *, scale: float | None = None, hard: bool = False,
        seed: int | None = None, nodes: object = None,
    ) -> Iterator[Tensor]:  # fmt: skip
        """The draws of `sample` one at a time, each of shape `(N, d)`, so that not all have to fit into memory."""
        network, graph = self._ready(data)
        count, hard = whole("The number of samples", samples, 1), flag("hard", hard)
        settings = self.settings_ if scale is None else self.settings_.with_changes(draw_scale=scale)
        start, scale = seed_or(seed, settings.seed), settings.draw_scale
        few = None if nodes is None else torch.from_numpy(node_numbers("nodes", nodes, data.num_nodes)).long()
        how: dict[str, Any] = {"scale": scale, "hard": hard}

        def numbered(numbers: Iterable[int]) -> Iterator[Tensor]:
            if few is not None and reach_of(network) is not None:
                return draws_of_nodes(network, graph, few.to(settings.device), numbers, start, **how)
            if (blocks := self.in_blocks(data)) is not None:
                found = blocks.draws(network, numbers, start, **how)
            else:
                found = draws(network, graph, numbers, start, alike=self._alike(data), **how)
            return found if few is None else rows_of_draws(found, few)

        if self.team.size == 1:
            return numbered(range(count))
        rows = data.num_nodes if few is None else len(few)
        return self.team.in_turn(count, numbered, (rows, sum(self.parts_)), settings.device)

    def moments(
        self, data: Data, samples: int = 100, *, scale: float | None = None, hard: bool = False, seed: int | None = None
    ) -> Moments:
        """Mean, standard deviation and ASTD of each node's embedding over draws that are not kept.

        The arguments are those of `sample`, with at least two samples.
        """
        if whole("The number of samples", samples) < 2:
            raise BGCLError(f"A standard deviation needs 2 samples or more. Got {samples} instead.")
        return moments(self.draws(data, samples, scale=scale, hard=hard, seed=seed))

    def disagreement(
        self, data: Data, samples: int = 100, *, anchored: bool = False, seed: int | None = None, progress: bool = False
    ) -> npt.NDArray[Any]:
        """Contrastive model disagreement of each node, `(N,)`, over pairs of draws; or over the draws of the positive
        alone (`anchored`), as Möllers et al. (2023) describe it. It needs no labels."""
        if whole("The number of samples", samples) < 4:
            raise BGCLError(f"A disagreement needs 4 samples or more, two pairs. Got {samples} instead.")
        (network, graph), settings = self._ready(data), self.settings_
        start, scale = seed_or(seed, settings.seed), settings.draw_scale
        if flag("anchored", anchored):
            return disagreement(anchored_log_likelihoods(network, graph, samples - 2, start, scale=scale))
        pairs = pairs_of_views(network, graph, samples // 2, start, scale=scale)
        pairs = with_progress(pairs, samples // 2, "pairs of draws", show=progress)
        with torch.no_grad():
            return disagreement(network.objective.log_likelihood(o, t) for o, t in pairs)

    def novelty(self, data: Data, *, known: Data | None = None) -> npt.NDArray[Any]:
        """The share of known nodes that are at least as strange as each node, `(N,)`: small is strange.

        It needs no labels. With predictions, `bgcl.Novelty` also compares nodes with the labeled ones.

        Args:
            data: a graph.
            known: the graph whose nodes are known. Default: the training graph, which `data` has to be then.
        """
        from bgcl.novelty.detector import Novelty

        if known is None and self._fitted() and self._ready_graph(data).facts.fingerprint != self.graph_.fingerprint:
            raise BGCLError("This is not the training graph. Give the graph whose nodes are known as 'known'.")
        return Novelty(self).fit(data if known is None else known).score(data).novelty

    def embed(self, data: Data) -> Tensor:
        """The embeddings without masks, `(N, d)`: the non-Bayesian setting."""
        network, graph = self._ready(data)
        if (blocks := self.in_blocks(data)) is not None:
            return blocks.embed(network)
        with torch.no_grad():
            return network.embed(graph, self._alike(data)).cpu()

    @property
    def drop_rates_(self) -> dict[str, list[RatePosterior]]:
        """For each view, "o" and "t", the posterior of each mask's drop rates."""
        return self._fitted().augmentation.posteriors()

    @property
    def draw_rates_(self) -> dict[str, list[RatePosterior]]:
        """For each view, the posterior of the rates at which embeddings are drawn, if they have rates of their own."""
        augmentation, scale = self._fitted().augmentation, self.settings_.draw_scale
        if scale is None:
            return augmentation.posteriors(drawing=True)
        raise BGCLError(f"Embeddings of this model are drawn at {scale:g} of its drop rates: see drop_rates_.")

    @property
    def parts_(self) -> tuple[int, ...]:
        """The widths of the parts of the embedding."""
        return self._fitted().parts.widths

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the fitted model in a folder, as safetensors and TOML."""
        state = self._fitted().state_dict()
        checkpoint.save(path_of("The folder", folder), self.settings_, self.graph_, self.recipe_, self.history_, state)

    @classmethod
    def load(
        cls, folder: str | os.PathLike[str], *, device: str = "cpu", encoder: nn.Module | None = None,
        objective: Objective | None = None,
    ) -> Self:  # fmt: skip
        """A model that was saved, or the latest epoch of a run.

        Args:
            folder: the folder.
            device: device to compute on.
            encoder: the module that was given as encoder, if one was. Its weights are replaced by the saved ones.
            objective: the objective that was given, if one was.

        Raises:
            BGCLError: a file is missing or damaged, or the files do not fit together.
        """
        check_device(device)
        place = path_of("The folder", folder)
        saved = checkpoint.read(place)
        settings = saved.settings.with_changes(device=device)
        for name, given in (("encoder", encoder), ("objective", objective)):
            if given is not None and getattr(settings, name) != "module":
                raise BGCLError(f"The saved model has the {name} '{getattr(settings, name)}': do not give another one.")
        both = {"encoder": encoder, "objective": objective}
        modules: dict[str, Any] = {name: given for name, given in both.items() if given is not None}
        model = cls(**dict(settings) | modules)
        model.settings_, model.graph_ = settings, saved.graph
        model.history_, model.recipe_ = saved.history, saved.recipe
        model.network_ = checkpoint.network_of(saved, settings, place, **copy.deepcopy(modules)).to(device)
        return model

    def check_trained_on(self, data: Data) -> None:
        """Raise a `BGCLError` if a graph is not the one that this model was trained on."""
        self._fitted()
        checkpoint.check_same_graph(self.graph_, self._ready_graph(data).facts)

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
