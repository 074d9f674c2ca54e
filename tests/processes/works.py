"""What the two processes of the tests do."""

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from bgcl import BGCL, BGCLError, evaluate, example_graph, load, predict
from bgcl.data.pyg import check_graph
from bgcl.fitting import epochs
from bgcl.graph.prepared import prepare
from bgcl.model.global_step import Source, steps_of
from bgcl.model.network import Network
from bgcl.model.training import Training
from bgcl.packed.moments import write_embeddings
from bgcl.processes.team import Team
from bgcl.ready_graph import ReadyGraph
from bgcl.settings import Settings
from training import SMALL, make, parameters, tiny_graph


def fit(kind: dict, change: dict, out: str | None = None, resume: bool = False) -> tuple[dict, list, int]:
    """The tensors of a model that is trained on the tiny graph, its history, and the number of its epochs."""
    model = make(kind, **change).fit(tiny_graph(), out=out, resume=resume, progress=False)
    history = [record.to_dict() | {"seconds": 0} for record in model.history_]
    return {name: tensor.numpy() for name, tensor in parameters(model).items()}, history, len(history)


def fit_other(changes: list[dict], flip: bool) -> Any:
    """A training in which the second process has other settings, or another graph."""
    rank, graph = dist.get_rank(), tiny_graph()
    if flip and rank == 1:
        graph.x = graph.x.flip(0)
    return len(make(**changes[rank]).fit(graph, progress=False).history_)


def begun(kind: dict, change: dict) -> Training:
    """A training on the batches of the tiny graph, before its first step, by all processes that there are."""
    settings = Settings(**SMALL | kind | change)
    checked = check_graph(tiny_graph())
    ready = ReadyGraph(checked, "cpu")
    ready.scaled = prepare(checked, row_norm="sum")
    return Training(Network(12, settings), ready.batches(settings), settings, Team.current())


def first_step(training: Training) -> list[Source]:
    """The batches of the first step."""
    path = training.settings.seed, 0
    return next(steps_of(training.batches, training.several, training.generator, path, training.team))


def gradients(kind: dict, change: dict) -> dict[str, list]:
    """The gradients of the first step of the encoder, and of the augmentation."""
    training = begun(kind, change)
    found: dict[str, list] = {}
    training.weights.step = lambda: found.update(w=[p.grad.clone().numpy() for p in training.theta_w])
    if training.rates is not None:
        training.rates.step = lambda: found.update(a=[p.grad.clone().numpy() for p in training.theta_a])
    sources = first_step(training)
    training._encoder_step(sources)
    if training.rates is not None:
        training._augmentation_step(sources, training.rates)
    return found


def tell() -> tuple:
    """One of each message."""
    team = Team.current()
    rows = torch.full((team.rank + 1, 2), float(team.rank))
    text, tensors = team.from_main(f"text of {team.rank}", {"a": torch.arange(3) + team.rank, "b": torch.ones(())})
    drawn = team.in_turn(5, lambda numbers: (torch.full((2,), float(i)) for i in numbers), (2,))
    return (
        team.sum(torch.tensor([1.0, 10.0]) * (team.rank + 1)).tolist(),
        team.gather(rows).tolist(),
        team.texts("é" * team.rank),
        (text, tensors["a"].tolist(), float(tensors["b"])),
        team.number_from_main(0.1 + team.rank),
        [draw.tolist() for draw in drawn],
        list(team.share([1, 2, 3])),
    )


def fail(ranks: tuple[int, ...]) -> str:
    """Work that fails in some processes."""
    team = Team.current()
    with team.agreed():
        if team.rank in ranks:
            raise BGCLError(f"this is wrong in {team.rank}")
    return "done"


def explode(kind: dict, change: dict) -> None:
    """A training whose loss is not finite in one of the batches."""
    training = begun(kind, change)
    if dist.get_rank() == 1:
        with torch.no_grad():
            training.batches.features[:] = float("nan")
    list(epochs(training, None, None, None))


class Running(torch.nn.Module):
    """An encoder with batch normalization that remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(12, 4), torch.nn.BatchNorm1d(4)

    def forward(self, x, edge_index, edge_weight):
        return self.norm(self.linear(x))


def fit_with_running_statistics() -> int:
    model = BGCL(encoder=Running(), drop=["entries at 0.2"], epochs=1, batches_per_step=2)
    return len(model.fit(tiny_graph(), progress=False).history_)


def fitted(data: Any, *, shared: bool, **settings: Any) -> BGCL:
    """A small model of the default's kind, whose draws all processes share."""
    settings = {"widths": (8, 4), "part_width": 5, "epochs": 1, **settings}
    model = _alone(settings, data)
    model.team = Team.current() if shared else Team()
    return model


def _alone(settings: dict, data: Any) -> BGCL:
    """A model that each process fits for itself, with the code of a process alone."""
    current = Team.current
    Team.current = Team  # type: ignore[method-assign, assignment]
    try:
        return BGCL(**settings).fit(data, progress=False)
    finally:
        Team.current = current  # type: ignore[method-assign]


def drawn(count: int, nodes: list[int] | None, shared: bool = True) -> Any:
    """Draws of the tiny graph, of all nodes or of some."""
    graph = tiny_graph()
    return fitted(graph, shared=shared).sample(graph, count, nodes=nodes).numpy()


def evaluated(splits: int, shared: bool = True) -> list[dict]:
    """An evaluation on the example graph."""
    data = example_graph()
    found = evaluate(fitted(data, shared=shared), data, "bgrl", splits, samples=5)
    return [{"test": each.test, "label": each.label, **vars(each.uncertainty)} for each in found]


def predicted(shared: bool = True) -> dict:
    """Predictions for the nodes of the example graph."""
    data = example_graph()
    found = predict(fitted(data, shared=shared), data, samples=5)
    return {"astd": found.astd, **vars(found.uncertainty)}


def of_pack(folder: str, shared: bool = True) -> dict:
    """What an evaluation and predictions find for a packed graph."""
    data = load(folder)
    model = fitted(data, shared=shared, until_settled=False)
    (split,), found = evaluate(model, data, "half", 1, samples=5), predict(model, data, samples=5)
    return {
        "split": split.uncertainty.probability,
        "votes": split.uncertainty.variation_ratio,
        **vars(found.uncertainty),
    }


def embedded(folder: str, out: str, samples: int, shared: bool = True) -> list:
    """What is written of the embeddings of a packed graph."""
    data = load(folder)
    model = fitted(data, shared=shared, until_settled=False)
    blocks = model.in_blocks(data)
    return [
        write_embeddings(
            blocks.embedder_of(model.network_), Path(out), samples=samples, seed=3, scale=None, team=model.team
        )
    ]
