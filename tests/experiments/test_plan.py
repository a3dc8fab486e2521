"""What takes long is left out, and said to be."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import labelrace
from labelrace.base.registry import model_names
from labelrace.evaluation import ModelSpec
from labelrace.experiments.paper import RELATED, TABLES
from labelrace.experiments.plan import Part, cost_of, possible, within


def plan(source, *names):
    models = tuple(ModelSpec(model) for model in ("race-cls-fixed", "mbr", "obr", "race"))
    return [Part(source(name), models) for name in names]


def test_every_model_has_a_cost(all_sources):
    for source in all_sources:
        for name in model_names(online=True):
            assert cost_of(name, source).seconds > 0


def test_the_slowest_are_left_out_first(source):
    parts = plan(source, "enron", "delicious")
    everything, none = within(parts, 3, 1e9)
    assert everything == parts
    assert none == []
    half = sum(part.cost for part in parts) / 2
    kept, notes = within(parts, 1, half, "race-cls-fixed")
    left = {(part.source.name, model.label) for part in kept for model in part.models}
    assert ("enron", "mbr") in left
    assert ("delicious", "mbr") not in left
    assert sum(part.cost for part in kept) <= half
    assert notes[-1].startswith("Left out on delicious, with what a run would take: mbr (")
    assert notes[-1].endswith("--all runs them.")


def test_what_does_not_fit_into_memory_is_left_out(source):
    kept, notes = within([Part(source("rcv1v2"), (ModelSpec("eaht"), ModelSpec("race")))], 1, 1e9)
    assert [model.label for model in kept[0].models] == ["race"]
    assert "eaht (24 GB)" in notes[0]


def test_what_would_be_refused_is_never_run(source):
    """Nor is it said that --all runs it."""
    parts = [Part(source(name), (ModelSpec("ridge"), ModelSpec("race"))) for name in ("enron", "rcv1v2")]
    kept, notes = possible(parts)
    assert [[model.label for model in part.models] for part in kept] == [["ridge", "race"], ["race"]]
    assert notes == ["Left out on rcv1v2, as they take at most 20,000 features and it has 47,236: ridge."]


@pytest.mark.parametrize("name", model_names(online=True))
def test_models_that_are_said_to_refuse_many_features_do(source, name):
    is_run = len(possible([Part(source("rcv1v2"), (ModelSpec(name),))])[0]) == 1
    X, Y = scipy.sparse.csr_array(([1.0], [0], [0, 1, 1]), shape=(2, 20_001)), np.eye(2)
    if is_run:
        labelrace.make_model(name).partial_fit(X, Y)
    else:
        with pytest.raises(ValueError, match="X must have at most 20000 feature columns, got 20001"):
            labelrace.make_model(name).partial_fit(X, Y)


def test_a_dataset_that_only_the_reference_would_run_on_is_left_out(source):
    kept, notes = within(plan(source, "delicious"), 1, 0.0, "race-cls-fixed")
    assert kept == []
    assert notes[0].startswith("delicious was left out: each run would take")


def test_the_related_work_is_ranked_where_it_ran(make_up, all_sources):
    sources = [source for source in all_sources if source.name in ("CAL500", "enron")]
    summary = make_up(sources, tables=("related",))
    cells = summary.records["cells"]
    assert set(RELATED) < set(TABLES["related"].methods) == {cell["method"] for cell in cells}
    assert {"plst", "mlknn", "isoup", "maniac", "rbm"} < set(RELATED)
    [ranks] = summary.ranks["related"]
    assert ranks.datasets == ("CAL500", "enron")
    # All values are made up, and the same but for those of the paper's own.
    assert ranks.averages["plst", "hamming_loss"] == pytest.approx(ranks.averages["mwc", "hamming_loss"])
    assert not any(cell["verdict"] for cell in cells)
