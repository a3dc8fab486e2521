"""Made-up outcomes are compared with the right numbers, and synthetic ones with none."""

from collections import Counter

import pytest

from labelrace.experiments.paper import compare
from labelrace.experiments.published import paper_datasets
from labelrace.experiments.ranking import OVERALL
from labelrace.streams.synthetic import like


def verdicts(table):
    return Counter(cell.verdict.reason for cell in table.cells.values() if cell.printed and cell.verdict)


def rerun_verdicts(table):
    return Counter(c.rerun_verdict.reason for c in table.cells.values() if c.printed and c.rerun_verdict)


@pytest.fixture
def cal500(source):
    return source("CAL500")


@pytest.fixture
def enron(source):
    return source("enron")


def test_the_papers_own_values_all_agree(make_up, all_sources):
    for table in make_up(all_sources).tables:
        assert set(verdicts(table)) == {"rounding"}
        # Of Table 4, cells that the paper left empty have no verdict.
        assert verdicts(table).total() == {"2": 120, "3": 180, "4": 39}[table.number]


def test_shifted_values_differ(make_up, cal500):
    for table in make_up([cal500], shift=0.2).tables:
        assert set(verdicts(table)) == {"differs"}


def test_missing_datasets_are_named(make_up, cal500, enron):
    summary = make_up([cal500, enron])
    assert summary.missing == ["delicious", "mediamill", "NUS-WIDE", "rcv1v2"]
    assert "Not available, and so not compared: delicious, mediamill, NUS-WIDE and rcv1v2." in summary.notes


def test_synthetic_data_is_compared_with_nothing(make_up, cal500, source):
    synthetic = source("enron", like("enron", n_rows=300))
    summary = make_up([cal500, synthetic])
    for table in summary.tables:
        cells = [cell for cell in table.cells.values() if cell.source is synthetic]
        assert cells
        assert all(cell.paper is None and cell.rerun is None and cell.verdict is None for cell in cells)
        for ranks in table.ranks[:2]:
            assert ranks.datasets == ("CAL500",)
    assert [whose for of, whose, _ in summary.time_ratios() if of is synthetic] == ["ours"]
    assert any("synthetic" in note.lower() and "enron" in note for note in summary.notes)


def test_failures_are_told(make_up, cal500):
    failure = {"model": "race-reg-fixed", "run": 3, "error": "DivergenceError: too large"}
    summary = make_up([cal500], tables=("2",), failures=(failure,))
    assert summary.notes[-1] == "race-reg-fixed failed on CAL500, in 1 run: DivergenceError: too large"


def test_average_ranks_show_where_the_paper_miscounted(make_up, all_sources):
    variants, online, _ = make_up(all_sources).tables
    ours, recomputed, printed = variants.ranks
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
    assert online.ranks[0].averages["negative", OVERALL] == pytest.approx(119 / 30)
    assert online.ranks[-1].averages["negative", OVERALL] == 3.96


def test_friedmans_test_needs_two_datasets(make_up, cal500, all_sources):
    [table] = make_up([cal500], tables=("2",)).tables
    assert table.ranks[0].friedman is None
    [table] = make_up(all_sources, tables=("3",)).tables
    comparison = table.ranks[0].friedman
    assert comparison.p_value == pytest.approx(0.008, abs=5e-4)
    assert comparison.critical_difference == pytest.approx(3.078, abs=1e-3)
    assert sum(comparison.average_ranks) == pytest.approx(21)


def test_rerun_of_the_authors_program_is_compared(make_up, cal500, enron):
    variants, online, holdout = make_up([cal500, enron]).tables
    assert rerun_verdicts(variants).total() == 40
    assert rerun_verdicts(online).total() == 25
    assert not rerun_verdicts(holdout)


def test_sweep(make_up, cal500, enron):
    summary = make_up([cal500, enron], tables=("sweep",))
    assert [(sweep.source.name, sweep.method) for sweep in summary.sweeps] == [
        (name, method) for name in ("CAL500", "enron") for method in ("race-cls-adaptive", "race-reg-fixed")
    ]
    assert summary.sweeps[3].counts == [6, 12, 18, 24, 30, 36]
    assert summary.tables == []


def test_sweep_is_in_the_order_of_the_number_of_pseudo_labels(outcomes, enron):
    """A summary has its models by rank, which is another order."""
    made = outcomes([enron], ("sweep",))
    for outcome in made:
        outcome.summary["models"].reverse()
        for model in outcome.summary["models"]:
            model["measures"]["micro_f1"]["mean"] = model["parameters"]["n_components"] / 100
    summary = compare(made, {enron: paper_datasets()["enron"][0]}, [], ("sweep",))
    for sweep in summary.sweeps:
        assert sweep.counts == [6, 12, 18, 24, 30, 36]
        assert sweep.means["micro_f1"] == [0.06, 0.12, 0.18, 0.24, 0.3, 0.36]
