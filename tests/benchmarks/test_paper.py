"""The paper's tables: what is compared with what, ranks as the paper has them, and the command on tiny data."""

import csv
from collections import Counter

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.paper import SWEPT, make_plan
from benchmarks.paper_report import paper_document
from benchmarks.ranking import OVERALL
from labelrace.evaluation import ModelSpec
from labelrace.measures import PAPER_MEASURES
from labelrace.report.page import render_page


@pytest.fixture
def cal500(all_sources):
    return all_sources[0]


@pytest.fixture
def enron(all_sources):
    return next(source for source in all_sources if source.name == "enron")


def verdicts(summary, table, key="reason", printed=True):
    cells = (cell for cell in summary.records["cells"] if cell["table"] == table and cell["printed"] == printed)
    return Counter(cell[key] for cell in cells if cell[key])


def test_the_papers_own_values_all_agree(make_up, all_sources):
    summary = make_up(all_sources)
    # Of Table 4, cells that the paper left empty have no verdict.
    for table, count in {"2": 120, "3": 180, "4": 39}.items():
        assert verdicts(summary, table) == {"rounding": count}


def test_shifted_values_differ(make_up, cal500):
    summary = make_up([cal500], shift=0.2)
    for table in "234":
        assert set(verdicts(summary, table)) == {"differs"}


def test_the_authors_program_run_again_is_compared(make_up, cal500, enron):
    summary = make_up([cal500, enron])
    assert [verdicts(summary, table, "rerun_reason").total() for table in "234"] == [40, 25, 0]


def test_missing_datasets_and_failures_are_told(make_up, cal500, enron):
    failure = {"model": "race-reg-fixed", "run": 3, "error": "DivergenceError: too large"}
    summary = make_up([cal500, enron], tables=("2",), failures=(failure,))
    assert summary.notes == [
        "Not available, and so not compared: delicious, mediamill, NUS-WIDE and rcv1v2.",
        "race-reg-fixed failed on CAL500, in 1 run: DivergenceError: too large",
        "race-reg-fixed failed on enron, in 1 run: DivergenceError: too large",
    ]


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


def test_a_model_of_ones_own_is_ranked_with_ours_and_not_with_the_papers(make_up, cal500):
    ours, same, *_ = make_up([cal500], own=(ModelSpec("race", label="mine"),)).ranks["3"]
    assert ("mine", OVERALL) in ours.averages
    assert ("mine", OVERALL) not in same.averages
    assert sum(ours.averages[method, "hamming_loss"] > 0 for method in ours.methods) == 7


def test_plan_has_the_papers_batch_sizes_and_protocols(all_sources):
    plan = make_plan(all_sources, ["2", "3", "4", "sweep"])
    sizes = {part.source.name: part.source.batch_size for part in plan}
    assert sizes == {"CAL500": 50, "enron": 100, "delicious": 500, "mediamill": 500, "NUS-WIDE": 500, "rcv1v2": 500}
    assert {part.kind for part in plan if part.options.get("protocol") == "holdout"} == {"holdout"}
    assert len({(part.source.name, part.kind) for part in plan}) == len(plan) == 6 * 3 + 2
    counts = [spec.parameters["n_components"] for spec in plan[3].models if spec.name == "race-reg-fixed"]
    assert counts == [8, 16, 24, 32, 40, 48, 56, 64]
    with pytest.raises(ValueError, match="'5'"):
        make_plan(all_sources, ["2", "5"])


def test_sweep_is_in_the_order_of_the_number_of_pseudo_labels(make_up, enron):
    """A summary has its models by rank, which is another order."""
    records = make_up([enron], tables=("sweep",)).records["sweep"]
    for method in SWEPT:
        line = [record for record in records if (record["method"], record["measure"]) == (method, "micro_f1")]
        assert [record["pseudo_labels"] for record in line] == [6, 12, 18, 24, 30, 36]


def test_page_says_what_is_missing_and_escapes_errors(make_up, cal500):
    failure = {"model": "obr", "run": 0, "error": "<script>alert(1)</script>"}
    page = render_page(paper_document(make_up([cal500], failures=(failure,))))
    assert "mediamill, NUS-WIDE and rcv1v2" in page
    assert "<script>alert" not in page


def test_command_from_data_to_tables_and_on(tiny, tmp_path):
    out = tmp_path / "out"
    arguments = ["paper", "--data", str(tiny), "--runs", "2", "--jobs", "1", "--out", str(out), "--table"]
    result = CliRunner().invoke(app, [*arguments, "2,4"])
    assert result.exit_code == 0, result.output
    assert "not the paper's" in result.output.replace("\n", " ")
    cells = read_cells(out)
    assert len(cells) == 4 * 19 + 4 * 2
    assert not [cell for cell in cells.values() if cell["verdict"]]
    assert cells["2", "race-cls-fixed", "micro_f1"]["runs"] == "2"

    assert isinstance(CliRunner().invoke(app, [*arguments, "2"]).exception, FileExistsError)

    records = out / "runs" / "enron" / "variants" / "records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[: len(lines) // 2]) + lines[-1][:20])
    more = CliRunner().invoke(app, [*arguments, "2,3,4", "--model", "mine=labelrace:ConstantClassifier", "--resume"])
    assert more.exit_code == 0, more.output
    resumed = read_cells(out)
    assert all(resumed[key]["ours"] == cell["ours"] for key, cell in cells.items())
    # What has no randomness ran once.
    assert resumed["3", "obr", "micro_f1"]["runs"] == "1"
    assert resumed["3", "oecc", "micro_f1"]["runs"] == "2"
    assert resumed["3", "mine", "micro_f1"]["ours"] == resumed["3", "majority", "micro_f1"]["ours"]


def test_a_model_of_ones_own_needs_partial_fit_and_predict_alone(tiny, tmp_path, monkeypatch):
    (tmp_path / "my_own.py").write_text(
        "class Empty:\n"
        "    def partial_fit(self, X, Y):\n        self.width = Y.shape[1]\n"
        "    def predict(self, X):\n        return [[0] * self.width] * X.shape[0]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    arguments = ["paper", "--data", str(tiny), "--table", "3", "--runs", "1", "--jobs", "1", "--model", "my_own:Empty"]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    cells = read_cells(tmp_path / "out")
    for measure in PAPER_MEASURES:
        assert cells["3", "my_own:Empty", measure]["ours"] == cells["3", "negative", measure]["ours"]


def test_without_data(tmp_path):
    result = CliRunner().invoke(app, ["paper", "--out", str(tmp_path)])
    assert isinstance(result.exception, FileNotFoundError)
    assert "CAL500" in str(result.exception)


def read_cells(out):
    with (out / "cells.csv").open(newline="") as file:
        return {(cell["table"], cell["method"], cell["measure"]): cell for cell in csv.DictReader(file)}
