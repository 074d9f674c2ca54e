"""The whole model as one torch module: scaling, encoder, objective, augmentation, and the parts of the embedding."""

import logging

import torch
from torch import Tensor, nn

from bgcl.augmentation.evidence import Witnesses
from bgcl.augmentation.noise import Noise, NoiseStream
from bgcl.augmentation.rate_evidence import learn_rates
from bgcl.augmentation.views import Augmentation, LayerMask, Positives, View
from bgcl.errors import BGCLError
from bgcl.graph.prepared import PreparedGraph
from bgcl.graph.relations import over_relations
from bgcl.graph.spectrum import LARGE
from bgcl.model.encoders import make_encoder
from bgcl.model.objectives import make_objective
from bgcl.model.objectives.base import Objective, Outcome, Step
from bgcl.model.parts import Among, Parts
from bgcl.model.propagation import Propagation
from bgcl.model.scaling import Scaling, are_all_equal, greatest_entry
from bgcl.model.weight_decay import weight_decay
from bgcl.settings import Settings

log = logging.getLogger("bgcl")

Alike = dict[Among, PreparedGraph]  # for each kind of connections between alike nodes, the graph that has them


class Network(nn.Module):
    """Two views of one encoder. Encoder and objective have the parameters `theta_w`, the drop rates have `theta_a`.

    Args:
        width_in: number of attributes.
        settings: the settings.
        nodes: nodes of the training graph, if a fitted state is to be loaded.
        dense: whether the attributes are dense numbers.
        encoder: a module of the user, if the settings name "module".
        objective: an objective of the user, if the settings name "module".
        relations: number of relations of the graph; 0: it has one kind of edges.
    """

    def __init__(
        self, width_in: int, settings: Settings, *, nodes: int = 0, dense: bool = False,
        encoder: nn.Module | None = None, objective: Objective | None = None, relations: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.settings = settings
        self.attributes_are_equal = False  # whether those of the training graph tell no node from another
        self.scaling = Scaling(width_in, settings.row_norm, dense)
        self.encoder = make_encoder(self.scaling.width, settings, encoder, max(relations, 1))
        _check_relations(settings, relations)
        self.objective = make_objective(self.encoder, settings, objective)
        if not self.objective.takes_positives and any(mask.on == "positives" for mask in settings.masks()):
            raise BGCLError("This objective has no positive pairs: leave out the mask 'neighbors'.")
        if settings.objective == "infomax" and not self.encoder.propagates:
            raise BGCLError(
                "The objective 'infomax' shuffles attributes among nodes, which an encoder that looks at one node at a "
                "time does not notice. Choose another encoder, such as 'gcn'."
            )
        widths = self.scaling.width, self.encoder.width, settings.part_width
        self.parts = Parts(settings.parts, *widths, nodes, relations, settings.members)
        self.augmentation = Augmentation(
            settings.masks(),
            self.encoder.masked_layers,
            hard=settings.mask_values == "hard",
            temperature=settings.mask_temperature,
            draw=settings.rate_draw,
            start=settings.rate_start,
            prior=settings.beta_prior(),
            own_draws=settings.rate_rule == "evidence",
            relations=relations,
        )

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Initialize all weights. The objective comes second, because it may copy the encoder."""
        self.encoder.reset_parameters(generator)
        self.objective.reset_parameters(generator)
        self.objective.start(self.encoder)

    def fit_graph(self, graph: PreparedGraph, generator: torch.Generator) -> PreparedGraph:
        """Learn what is not trained from a graph: scales, principal directions, and drop rates by evidence.

        Returns the scaled graph.
        """
        self.attributes_are_equal = are_all_equal(graph.features)
        self.scaling.fit(graph)
        scaled: PreparedGraph = self.scaling(graph)
        greatest = greatest_entry(scaled.features)
        if greatest > LARGE:
            raise BGCLError(
                f"An attribute is as great as {greatest:.2g}, which is too great to be trained on as it is. Divide the "
                "attributes by a constant, or let rows have length one: row_norm = 'length'."
            )
        self.parts.fit(scaled, generator)
        if self.settings.rate_rule == "evidence" and self.augmentation.learned:
            numbers = self.scaling.numbers(scaled)
            witnesses = Witnesses(scaled, self.parts.directions_of_attributes(scaled, generator), numbers, generator)
            learn_rates(self.augmentation, witnesses, self.settings.rate_start, self.settings.beta_prior())
        return scaled

    def outcome(
        self, graph: PreparedGraph, generator: torch.Generator, most: int | None = None,
        of_rates: torch.Generator | None = None,
    ) -> Outcome:  # fmt: skip
        """The objective of one step on a graph or a batch.

        Args:
            graph: the graph or the batch.
            generator: source of random numbers.
            most: the greatest number of nodes in the loss; None: all.
            of_rates: source of drop rates, if it is another one.
        """
        inputs, noise = self.encoder.inputs(graph), NoiseStream(generator, of_rates)
        step = Step(
            graph,
            self.encoder,
            lambda view: self.augmentation.draw(view, graph, inputs, noise),
            lambda view: self.augmentation.draw_positives(view, graph, noise),
            generator,
            most,
            None if self.settings.precision is None else getattr(torch, self.settings.precision),
        )
        found: Outcome = self.objective(step)
        return found

    def encode(
        self, view: View, graph: PreparedGraph, noise: Noise, *, hard: bool = False, scale: float | None = 1.0
    ) -> Tensor:
        """One draw of the encoder's output in a view, `(N, w)`, with masks at `scale` times the drop rates.

        If `scale` is None, masks are drawn at the rates that were inferred for draws.
        """
        masks = self.augmentation.draw(view, graph, self.encoder.inputs(graph), noise, hard=hard, scale=scale)
        found: Tensor = self.encoder(graph, masks)
        return found

    def alike(self, graph: PreparedGraph) -> Alike:
        """The graphs of alike nodes that the parts of the embedding need. They are the same for all draws."""
        with torch.no_grad():
            return self.parts.alike(graph, self.encoder(graph)) if self.parts.needs_alike else {}

    def draw(
        self, view: View, graph: PreparedGraph, noise: Noise, *, hard: bool = False, scale: float | None = 1.0,
        alike: Alike | None = None,
    ) -> Tensor:  # fmt: skip
        """One draw of the embeddings in a view, `(N, d)`, with masks at `scale` times the drop rates.

        If `scale` is None, masks are drawn at the rates that were inferred for draws.
        `alike` is what the method `alike` returns for the graph. Without it, it is computed.
        """
        inputs = self.encoder.inputs(graph)
        masks = self.augmentation.draw(view, graph, inputs, noise, hard=hard, scale=scale)
        encoded: Tensor = self.encoder(graph, masks)
        if self.parts.as_it_is:
            return encoded

        def positives(of: PreparedGraph, name: str) -> Positives | None:
            return self.augmentation.draw_positives(view, of, noise.of("among", name), hard=hard, scale=scale)

        kept = _kept(masks[-1], positives(graph, "neighbors"))
        graphs = self.alike(graph) if alike is None else alike
        among = {
            name: Propagation(of, over_relations(of, _kept(LayerMask(), positives(of, name))))
            for name, of in graphs.items()
        }
        found: Tensor = self.parts(graph, encoded, masks, kept, among)
        return found

    def embed(self, graph: PreparedGraph, alike: Alike | None = None) -> Tensor:
        """The embeddings without masks, `(N, d)`."""
        graphs = self.alike(graph) if alike is None else alike
        among = {name: Propagation(of) for name, of in graphs.items()}
        found: Tensor = self.parts(graph, self.encoder(graph), None, None, among)
        return found

    def weight_decay(self) -> Tensor:
        """`L_WD`."""
        return self.settings.weight_decay * weight_decay(self.encoder, self.augmentation)

    def kl(self) -> Tensor:
        """The KL divergence of the drop rates, multiplied by `kl_weight`."""
        return (self.settings.kl_weight or 0.0) * self.augmentation.kl()


def _check_relations(settings: Settings, relations: int) -> None:
    if relations and settings.encoder == "module":
        log.warning("An encoder of your own gets all edges as one kind, so it does not use their types and directions.")
    for mask in settings.masks():
        if mask.per == "relation" and relations < 2:
            raise BGCLError(f"The graph has one kind of edges: leave out 'per relation' in the mask '{mask}'.")
        if mask.per == "relation" and mask.on == "connections" and settings.encoder == "module":
            raise BGCLError(
                f"An encoder of your own does not know the relations of a graph: leave out 'per relation' in '{mask}'."
            )


def _kept(mask: LayerMask, positives: Positives | None) -> Tensor | None:
    """The keep values of the connections that the parts are propagated along; None: all are kept.

    They are `(E, 1)`, or `(E, R)` if relations have rates of their own.
    """
    kept = None if mask.connections is None else mask.connections.mean(1, keepdim=True)
    if mask.relations is not None:
        kept = mask.relations if kept is None else kept * mask.relations
    if positives is not None and positives.kept is not None:
        kept = positives.kept if kept is None else kept * positives.kept
    return kept
