"""The choice of batches, and estimates of memory and time."""

import pytest

import bgcl
from bgcl import batching
from bgcl.batching import check_cost, choose, cost_of
from bgcl.data.pyg import check_graph
from bgcl.errors import BGCLError


@pytest.fixture
def data():
    return check_graph(bgcl.example_graph(nodes=300))


def chosen(data, free: int, monkeypatch, **settings):
    monkeypatch.setattr(batching, "free_memory", lambda: free)
    return choose(data, bgcl.Settings(batch="auto", **settings))


def test_auto_takes_random_nodes_for_an_encoder_that_looks_at_one_node(data, monkeypatch):
    changes, why = chosen(data, 10**12, monkeypatch)
    assert changes == {"batch": None}
    assert "one node at a time" in why


def test_auto_takes_the_whole_graph_as_long_as_it_fits_then_clusters_then_neighbors(data, monkeypatch):
    how = {"encoder": "gcn", "objective": "decorrelation"}
    whole = cost_of(data, bgcl.Settings(**how)).memory
    metis = batching.METIS_BYTES * (data.num_edges + data.num_nodes)
    assert metis < whole
    assert chosen(data, 2 * whole, monkeypatch, **how)[0]["batches"] == 1
    changes, why = chosen(data, metis, monkeypatch, **how)
    assert "clusters, because the whole graph needs" in why
    assert changes["batch_nodes"] is None
    changes, why = chosen(data, metis - 1, monkeypatch, **how)
    assert changes["neighbors"] == (10, 10)
    assert "METIS does not fit" in why


def test_auto_does_not_compare_too_many_nodes_with_each_other(data, monkeypatch):
    monkeypatch.setattr(batching, "MOST_COMPARED", 299)
    _, why = chosen(data, 10**12, monkeypatch, encoder="gcn")
    assert "'infonce' would compare 300 nodes" in why
    monkeypatch.setattr(batching, "BATCH_OF_CLUSTERS", 100)
    assert chosen(data, 10**12, monkeypatch, encoder="gcn")[0]["batches"] == 3


@pytest.mark.parametrize(
    ("word", "expected"),
    [("full", (1, None, None)), ("clusters", (1, None, None)), ("neighbors", (1, 300, (10, 10)))],
)
def test_a_word_becomes_settings_that_are_kept(data, word, expected):
    settings = bgcl.BGCL(encoder="gcn", batch=word).settings_for(data)
    assert (settings.batches, settings.batch_nodes, settings.neighbors) == expected
    assert settings.batch is None


def test_batch_and_what_it_chooses_cannot_both_be_given(data):
    with pytest.raises(BGCLError, match="'batch' chooses the batches, so 'batches' cannot be given too"):
        bgcl.BGCL(encoder="gcn", batch="clusters", batches=3).settings_for(data)
    with pytest.raises(BGCLError, match="looks at one node at a time"):
        bgcl.BGCL(batch="neighbors").settings_for(data)


def test_a_setting_that_does_not_fit_the_chosen_batches_is_refused(data, monkeypatch):
    with pytest.raises(BGCLError, match="'until_settled' needs batches of random nodes, and 'batch' chooses others"):
        bgcl.BGCL(batch="full", until_settled=True).settings_for(data)
    assert bgcl.BGCL(batch="auto", until_settled=True).settings_for(data).until_settled
    with pytest.raises(BGCLError, match=r"'clusters_per_batch' has no effect here \(clusters, .* the whole graph\)"):
        bgcl.BGCL(batch="clusters", clusters_per_batch=3).settings_for(data)
    with pytest.raises(BGCLError, match=r"'clusters_per_batch' has no effect here \(random nodes"):
        bgcl.BGCL(batch="auto", clusters_per_batch=3).settings_for(data)
    monkeypatch.setattr(batching, "BATCH_OF_CLUSTERS", 100)
    settings = bgcl.BGCL(batch="clusters", clusters_per_batch=3).settings_for(data)
    assert (settings.batches, settings.clusters_per_batch) == (3, 3)


def test_smaller_batches_need_less_memory(data):
    def memory(**settings):
        return cost_of(data, bgcl.Settings(encoder="gcn", **settings)).memory

    assert memory(batches=10) < memory()
    assert memory(batch_nodes=5, neighbors=(2, 2)) < memory()
    assert memory(objective="decorrelation") < memory()


def test_what_does_not_fit_is_refused_with_the_option_that_would(data, monkeypatch):
    monkeypatch.setattr("bgcl.data.memory.free_memory", lambda: 1000)
    with pytest.raises(BGCLError, match=r"Training on 300 nodes and [\d,]+ edges would need .* Use --batch clusters"):
        check_cost(data, bgcl.Settings(encoder="gcn"))
    with pytest.raises(BGCLError, match="Pack the graph with 'bgcl data pack'"):
        bgcl.BGCL().fit(bgcl.example_graph(), progress=False)


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"encoder": "gcn", "batches": 3}, "Take more 'batches'"),
        ({"encoder": "gcn", "batch_nodes": 50, "neighbors": (5, 5)}, "Lower 'batch_nodes' or 'neighbors'"),
        ({}, "Pack the graph with 'bgcl data pack'"),
    ],
)
def test_too_little_memory_for_one_batch_is_refused(data, settings, remedy, monkeypatch):
    monkeypatch.setattr("bgcl.data.memory.free_memory", lambda: 1000)
    with pytest.raises(BGCLError, match=remedy):
        check_cost(data, bgcl.Settings(**settings))


def test_the_estimate_of_time_is_that_of_the_machine(data, monkeypatch):
    def seconds(multiplies: float, gathers: float) -> float:
        monkeypatch.setattr(batching, "measured_speed", lambda: batching.Speed(multiplies, gathers))
        monkeypatch.setattr(batching, "STEP_SECONDS", 0.0)
        return cost_of(data, bgcl.Settings(encoder="gcn", objective="decorrelation")).seconds

    assert seconds(2e9, 2e9) == pytest.approx(seconds(1e9, 1e9) / 2)
    assert seconds(1e9, 1e12) < seconds(1e9, 1e9)


def test_fit_needs_the_memory_and_not_the_time_so_it_measures_no_speed(data, monkeypatch):
    """The measurement takes longer than an epoch of a small graph."""
    monkeypatch.setattr(batching, "measured_speed", None)
    bgcl.BGCL(encoder="gcn", batch="auto", widths=(4, 2), epochs=1).fit(data, progress=False)


def test_the_speed_of_the_machine_is_measured():
    found = batching.measured_speed()
    assert found.multiplies > 1e6
    assert found.gathers > 1e6
