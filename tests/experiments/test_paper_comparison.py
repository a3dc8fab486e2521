"""Made-up outcomes are compared with the right numbers, and synthetic ones with none."""

from collections import Counter

import pytest

from labelrace.experiments.paper import compare
from labelrace.experiments.ranking import OVERALL
from labelrace.streams.synthetic import like


def verdicts(summary, table, reason="reason"):
    cells = [cell for cell in summary.records["cells"] if cell["table"] == table]
    return Counter(cell[reason] for cell in cells if cell["printed"] and cell[reason])


def sweep_line(summary, dataset, method, measure="micro_f1"):
    """Return numbers of pseudo labels and means."""
    wanted = (dataset, method, measure)
    records = [r for r in summary.records["sweep"] if (r["dataset"], r["method"], r["measure"]) == wanted]
    return [record["pseudo_labels"] for record in records], [record["mean"] for record in records]


@pytest.fixture
def cal500(source):
    return source("CAL500")


@pytest.fixture
def enron(source):
    return source("enron")


def test_the_papers_own_values_all_agree(make_up, all_sources):
    summary = make_up(all_sources)
    # Of Table 4, cells that the paper left empty have no verdict.
    for table, count in {"2": 120, "3": 180, "4": 39}.items():
        assert verdicts(summary, table) == {"rounding": count}


def test_shifted_values_differ(make_up, cal500):
    summary = make_up([cal500], shift=0.2)
    for table in "234":
        assert set(verdicts(summary, table)) == {"differs"}


def test_missing_datasets_are_named(make_up, cal500, enron):
    summary = make_up([cal500, enron])
    found = {record["dataset"]: record["found"] for record in summary.records["datasets"]}
    assert [name for name in found if found[name] == "no"] == ["delicious", "mediamill", "NUS-WIDE", "rcv1v2"]
    assert "Not available, and so not compared: delicious, mediamill, NUS-WIDE and rcv1v2." in summary.notes


def test_synthetic_data_is_compared_with_nothing(make_up, cal500, source):
    synthetic = source("enron", like("enron", n_rows=300))
    summary = make_up([cal500, synthetic])
    for table in "234":
        cells = [cell for cell in summary.records["cells"] if (cell["table"], cell["dataset"]) == (table, "enron")]
        assert cells
        assert {cell[key] for cell in cells for key in ("paper", "rerun", "verdict")} == {None}
        for ranks in summary.ranks[table][:2]:
            assert ranks.datasets == ("CAL500",)
    times = [time for time in summary.records["times"] if time["dataset"] == "enron"]
    assert all(time["seconds"] and time["paper_seconds"] is None for time in times)
    assert any("synthetic" in note.lower() and "enron" in note for note in summary.notes)


def test_failures_are_told(make_up, cal500):
    failure = {"model": "race-reg-fixed", "run": 3, "error": "DivergenceError: too large"}
    summary = make_up([cal500], tables=("2",), failures=(failure,))
    assert summary.notes[-1] == "race-reg-fixed failed on CAL500, in 1 run: DivergenceError: too large"


def test_average_ranks_show_where_the_paper_miscounted(make_up, all_sources):
    ranks = make_up(all_sources).ranks
    ours, recomputed, printed = ranks["2"]
    assert ours.averages == recomputed.averages
    wrong = {key: (ours.averages[key], printed.averages[key]) for key in printed.averages}
    wrong = {key: pair for key, pair in wrong.items() if abs(pair[0] - pair[1]) > 0.0051}
    assert wrong == {
        ("race-reg-fixed", "example_accuracy"): (pytest.approx(13 / 6), 2.0),
        ("race-reg-adaptive", "example_accuracy"): (pytest.approx(2.5), 2.67),
        ("race-reg-fixed", OVERALL): (pytest.approx(59 / 30), 1.93),
        ("race-reg-adaptive", OVERALL): (pytest.approx(2.2), 2.23),
        ("race-cls-adaptive", OVERALL): (pytest.approx(38 / 15), 2.54),
    }
    assert ranks["3"][0].averages["negative", OVERALL] == pytest.approx(119 / 30)
    assert ranks["3"][-1].averages["negative", OVERALL] == 3.96


def test_friedmans_test_needs_two_datasets(make_up, cal500, all_sources):
    assert make_up([cal500], tables=("2",)).ranks["2"][0].friedman is None
    comparison = make_up(all_sources, tables=("3",)).ranks["3"][0].friedman
    assert comparison.p_value == pytest.approx(0.008, abs=5e-4)
    assert comparison.critical_difference == pytest.approx(3.078, abs=1e-3)
    assert sum(comparison.average_ranks) == pytest.approx(21)


def test_rerun_of_the_authors_program_is_compared(make_up, cal500, enron):
    summary = make_up([cal500, enron])
    assert [verdicts(summary, table, "rerun_reason").total() for table in "234"] == [40, 25, 0]


def test_sweep(make_up, cal500, enron):
    summary = make_up([cal500, enron], tables=("sweep",))
    assert list(dict.fromkeys((record["dataset"], record["method"]) for record in summary.records["sweep"])) == [
        (name, method) for name in ("CAL500", "enron") for method in ("race-cls-adaptive", "race-reg-fixed")
    ]
    assert sweep_line(summary, "enron", "race-reg-fixed")[0] == [6, 12, 18, 24, 30, 36]
    assert summary.records["cells"] == []


def test_sweep_is_in_the_order_of_the_number_of_pseudo_labels(outcomes, enron):
    """A summary has its models by rank, which is another order."""
    made = outcomes([enron], ("sweep",))
    for _, described in made:
        described["models"].reverse()
        for model in described["models"]:
            model["measures"]["micro_f1"]["mean"] = model["parameters"]["n_components"] / 100
    summary = compare(made, [enron], [], ("sweep",))
    for method in ("race-cls-adaptive", "race-reg-fixed"):
        counts, means = sweep_line(summary, "enron", method)
        assert counts == [6, 12, 18, 24, 30, 36]
        assert means == [0.06, 0.12, 0.18, 0.24, 0.3, 0.36]
