"""What takes long is left out, and said to be."""

from __future__ import annotations

import pytest

from labelrace.evaluation import ModelSpec
from labelrace.experiments.comparison import RELATED, TABLES
from labelrace.experiments.plan import Part, cost_of, within
from labelrace.models.registry import model_names


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
    kept, notes = within([Part(source("rcv1v2"), (ModelSpec("ridge"), ModelSpec("race")))], 1, 1e9)
    assert [model.label for model in kept[0].models] == ["race"]
    assert "ridge (18 GB)" in notes[0]


def test_a_dataset_that_only_the_reference_would_run_on_is_left_out(source):
    kept, notes = within(plan(source, "delicious"), 1, 0.0, "race-cls-fixed")
    assert kept == []
    assert notes[0].startswith("delicious was left out: each run would take")


def test_the_related_work_is_ranked_where_it_ran(make_up, all_sources):
    sources = [source for source in all_sources if source.name in ("CAL500", "enron")]
    [table] = make_up(sources, tables=("related",)).tables
    assert table.name == "The related work on the paper's data"
    assert set(RELATED) < set(TABLES["related"].methods) == set(table.methods)
    assert {"plst", "mlknn", "isoup", "maniac", "rbm"} < set(RELATED)
    [ranks] = table.ranks
    assert ranks.datasets == ("CAL500", "enron")
    # All values are made up, and the same but for those of the paper's own.
    assert ranks.averages["plst", "hamming_loss"] == pytest.approx(ranks.averages["mwc", "hamming_loss"])
    assert not any(cell.verdict for cell in table.cells.values())
