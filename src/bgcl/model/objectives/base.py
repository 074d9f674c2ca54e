"""The interface of objectives, and what a step gives to them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from bgcl.augmentation.views import LayerMask, Positives, View
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.encoders.base import Encoder


@dataclass
class Step:
    """One step of training: a graph or a batch of it, the encoder, and the masks of both views.

    Args:
        graph: the graph or the batch.
        encoder: the encoder.
        draw_masks: draws the masks of a view, one `LayerMask` for each layer.
        draw_positives: draws the positive pairs of a view; None: a node is the only positive of itself.
        generator: source of every other random number.
        most: the greatest number of nodes in the loss, chosen at random; None: all.
        products: numbers of fewer bits, in which the encoder multiplies matrices; None: those of its weights.

    An objective gets a step and asks it for the vectors of the two views; see `Objective`.

    >>> import bgcl, torch
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(encoder="gcn", widths=(16, 8), epochs=1).fit(data, progress=False)
    >>> from bgcl.graph.prepared import prepare
    >>> network, graph = model.network_, prepare(data, row_norm="length")
    >>> outcome = network.outcome(graph, torch.Generator().manual_seed(0))  # makes a step and calls the objective
    >>> outcome.embeddings.shape
    torch.Size([240, 8])
    """

    graph: PreparedGraph
    encoder: Encoder
    draw_masks: Callable[[View], list[LayerMask]]
    draw_positives: Callable[[View], Positives | None]
    generator: torch.Generator
    most: int | None = None
    products: torch.dtype | None = None
    _masks: dict[str, Sequence[LayerMask]] = field(default_factory=dict)

    def encode(self, view: View, *, encoder: nn.Module | None = None, graph: PreparedGraph | None = None) -> Tensor:
        """The vectors of all nodes in a view, `(N, d)`. All calls in a step see the same masks of the view.

        They are numbers of 32 bits, also if `products` are shorter.

        Args:
            view: the view.
            encoder: another encoder of the same shape, such as a slow copy.
            graph: the same graph with other values of its attributes.
        """
        if view not in self._masks:
            self._masks[view] = self.draw_masks(view)
        chosen, of = self.encoder if encoder is None else encoder, self.graph if graph is None else graph
        if self.products is None:
            found: Tensor = chosen(of, self._masks[view])
            return found
        with torch.autocast(of.connections.column.device.type, self.products):
            found = chosen(of, self._masks[view])
        return found.float()

    def some(self, *views: Tensor) -> tuple[Tensor, ...]:
        """The rows of at most `most` nodes, or of seeds, in each view. Their loss estimates that of all."""
        if self.graph.seeds is not None:
            views = tuple(view[: self.graph.seeds] for view in views)
        nodes = len(views[0])
        if self.most is None or nodes <= self.most:
            return views
        chosen = torch.randperm(nodes, generator=self.generator, device=views[0].device)[: self.most]
        return tuple(view[chosen] for view in views)


@dataclass
class Outcome:
    """What an objective says of one step.

    Attributes:
        loss: what the encoder minimizes, a scalar.
        shared: the information that the views share, as a share of what they could share at most, a scalar. It falls
            as the loss grows, and the augmentation lowers it to the setting `shared_information`.
        embeddings: vectors of one view, `(N, d)`, for a look at their spread.
        nodes: how many nodes are in the loss.

    >>> import torch
    >>> Outcome(torch.tensor(0.5), shared=torch.tensor(0.9), embeddings=torch.zeros(4, 2), nodes=4).nodes
    4
    """

    loss: Tensor
    shared: Tensor
    embeddings: Tensor
    nodes: int = 0


class Objective(nn.Module):
    """Base class of objectives. Its parameters learn together with the encoder's.

    Give an instance as `bgcl.BGCL(objective=...)`.

    >>> import bgcl, torch
    >>> class Closer(Objective):
    ...     def forward(self, step):
    ...         o, t = step.encode("o"), step.encode("t")
    ...         cosine = torch.cosine_similarity(o, t).mean()
    ...         return Outcome(1 - cosine, shared=cosine, embeddings=o, nodes=len(o))
    >>> model = bgcl.BGCL(encoder="gcn", objective=Closer(), widths=(16, 8), epochs=2)
    >>> len(model.fit(bgcl.example_graph(), progress=False).history_)
    2
    """

    takes_positives = False  # whether neighbors can be positives

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Initialize all parameters from one generator."""

    def start(self, encoder: Encoder) -> None:
        """Called once, after encoder and objective were initialized, with the encoder."""

    def forward(self, step: Step) -> Outcome:
        """The loss of one step."""
        raise NotImplementedError

    def adversary(self, outcome: Outcome, least: float) -> Tensor:
        r"""What the augmentation maximizes, apart from the KL divergence of its rates.

        By default `-|shared - least|`: the views share less and less, until they share `least`.
        """
        return -(outcome.shared - least).abs()

    def log_likelihood(self, o: Tensor, t: Tensor) -> Tensor:
        """How well two draws of the encoder's output agree on each node, as a log likelihood, `(N,)`."""
        raise NotImplementedError

    def log_likelihoods(self, anchor: Tensor, others: Tensor, positives: Iterable[Tensor]) -> Iterator[Tensor]:
        """`log l` of each node for each of several positives, `(N,)` each, next to the same anchor and the same others.

        By default it is the log likelihood of anchor and positive, which suits objectives without negatives.
        """
        for positive in positives:
            yield self.log_likelihood(anchor, positive)

    def after_step(self, encoder: Encoder) -> None:
        """Called after each step of the encoder, with the encoder."""
