"""Online models compared: the numbers are those of direct calls, and what was cut off is continued."""

import csv
import dataclasses
import io
import re
import signal
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from scipy.sparse import csr_array
from typer.testing import CliRunner

import labelrace
from labelrace.base.estimator import OnlineClassifier
from labelrace.cli.bench import app
from labelrace.evaluation import averages, prequential, read_run
from labelrace.experiments import quality_document, run_quality
from labelrace.experiments.datasets import DRIFTS, drifting_streams, find_datasets
from labelrace.experiments.quality import MEASURES, REFERENCE, quality_models
from labelrace.experiments.ranking import CALIBRATION, OVERALL
from labelrace.measures import PAPER_MEASURES, expected_calibration_error
from labelrace.report.document import print_document, write_document
from labelrace.report.page import render_page
from labelrace.report.tables import as_csv
from labelrace.streams import Dataset, open_stream, write_dataset

MODELS = ("obr", "race-cls-fixed", "majority")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Compare on an enron of ours and on synthetic streams; return the folder of both data and records, and all."""
    folder = tmp_path_factory.mktemp("quality")
    write_dataset(make_dataset(), folder / "enron.arff")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABELRACE_DATA", "")
        patch.setenv("XDG_CACHE_HOME", str(folder / "no-cache"))
        summary = run_quality(folder / "out", models=MODELS, data=[folder], synthetic=True, synthetic_rows=600)
    return folder, summary


@pytest.fixture
def summary(compared):
    return compared[1]


@pytest.fixture
def lists(summary):
    records = quality_document(summary).records
    return {f"{name}.csv": list(csv.DictReader(io.StringIO(as_csv(rows)))) for name, rows in records.items()}


def row(summary, dataset, model):
    """Return the record of a model on a dataset."""
    rows = summary.records["quality"]
    return next(row for row in rows if (row["dataset"], row["model"]) == (dataset, model))


def entries(summary, model):
    """Return tested entries of enron, and how many labels are present in them, by its bins."""
    bins = [r for r in summary.records["reliability"] if (r["dataset"], r["model"]) == ("enron", model)]
    present = sum(one["entries"] * (one["share_present"] or 0) for one in bins)
    return sum(one["entries"] for one in bins), present


def render_quality(summary):
    return render_page(quality_document(summary))


def print_quality(summary, console):
    print_document(quality_document(summary), console)


def write_quality(summary, folder):
    write_document(quality_document(summary), folder, ("html", "csv"))


def diagrams(page):
    """Return whose points the tips of reliability diagrams are about."""
    return re.findall(r'"([^"]*?): probability 0\.\d+, present', page)


def make_dataset():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 8))
    Y = (X @ rng.normal(size=(8, 5)) > 0.5).astype(np.int8)
    names = [tuple(f"{kind}{number}" for number in range(count)) for kind, count in (("x", 8), ("y", 5))]
    return Dataset(X, csr_array(Y), *names, np.zeros(8, dtype=bool), "enron")


def by_hand(model, stream, batch_size):
    """Go through a stream; return the averages and the labels and probabilities of all tests."""
    tested = []
    points = list(prequential(model, stream, batch_size, probability_observer=lambda *pair: tested.append(pair)))
    Y, P = (
        np.vstack([getattr(part, "toarray", lambda part=part: part)() for part in parts])
        for parts in zip(*tested, strict=True)
    )
    return averages(points), points, Y, P


def test_values_are_those_of_direct_calls(compared):
    folder, summary = compared
    found = row(summary, "enron", "obr")
    assert found["batch_size"] == 100
    values, _, Y, P = by_hand(labelrace.make_model("obr"), open_stream(folder / "enron.arff"), 100)
    for measure in PAPER_MEASURES:
        assert found[measure] == pytest.approx(values[measure], abs=1e-12)
    assert found[CALIBRATION] == pytest.approx(expected_calibration_error(Y, P), abs=1e-12)
    assert entries(summary, "obr") == (Y.size, pytest.approx(Y.sum()))


def test_random_models_get_the_seed_of_the_run(compared):
    folder, summary = compared
    _, records = read_run(folder / "out" / "runs" / "enron")
    seed = next(record["seed"] for record in records if record["kind"] == "batch")
    values, *_ = by_hand(
        labelrace.make_model("race-cls-fixed", random_state=seed), open_stream(folder / "enron.arff"), 100
    )
    found = row(summary, "enron", "race-cls-fixed")
    assert {name: found[name] for name in values} == pytest.approx(values, abs=1e-12)


def test_the_best_of_a_grid_in_hindsight(tmp_path, monkeypatch):
    """It is the setting with the highest example F, ranked as one model beside the untuned one, and said so."""
    monkeypatch.setenv("LABELRACE_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-cache"))
    write_dataset(make_dataset(), tmp_path / "enron.arff")
    models = ["majority", "arow", "river-logistic"]
    summary = run_quality(tmp_path / "out", models=models, data=[tmp_path], tuned=True)
    rows = {row["model"]: row for row in summary.records["quality"]}
    best = ["arow, best of 5", "river-logistic, best of 4"]
    assert sorted(rows) == sorted([*models, *best, REFERENCE])
    assert list(rows)[-1] == REFERENCE
    ranked = {name for name, row in rows.items() if row["micro_f1_rank"] is not None}
    assert ranked == set(summary.models) == {*models, *best}
    assert not any(row["error"] for row in rows.values())
    found = {}
    for r in (0.1, 0.3, 1.0, 3.0, 10.0):
        model = labelrace.make_model("arow", r=r)
        found[r] = by_hand(model, open_stream(tmp_path / "enron.arff"), 100)[0]["example_f1"]
    assert rows[best[0]]["example_f1"] == pytest.approx(max(found.values()), abs=1e-12)
    assert rows["arow"]["example_f1"] == pytest.approx(found[1.0], abs=1e-12)
    chosen = max(found, key=found.get)
    assert f"Best in hindsight on enron: arow, r = {chosen:g}; river-logistic, rate = " in " ".join(summary.notes)
    assert "after the fact" in " ".join(summary.notes)


def test_baselines_that_are_not_installed_are_refused(monkeypatch):
    monkeypatch.setattr("labelrace.experiments.baselines.find_spec", lambda package: None)
    assert "vowpal-wabbit" not in [spec.label for spec in quality_models()]
    with pytest.raises(ValueError, match="vowpal-wabbit needs vowpalwabbit: pip install"):
        quality_models(["vowpal-wabbit"])


def test_the_reference_is_the_default_race_classifier(summary):
    reference = quality_models(["obr"])[0]
    assert reference.make(3).get_params() == labelrace.RACEClassifier(random_state=3).get_params()
    rows = summary.records["quality"]
    for start in range(0, len(rows), 4):
        block = {row["model"]: row for row in rows[start : start + 4]}
        assert sorted(block) == sorted([*MODELS, REFERENCE])
        assert list(block)[-1] == REFERENCE
        assert block[REFERENCE]["time_ratio"] == 1
        for found in block.values():
            assert found["time_ratio"] == pytest.approx(found["seconds"] / block[REFERENCE]["seconds"])
    assert REFERENCE not in summary.models


def test_example_f_before_and_after_a_drift(summary):
    source = next(source for source in drifting_streams(600) if source.drift == "sudden")
    _, points, *_ = by_hand(labelrace.make_model("obr"), source.data, source.batch_size)
    # 600 rows in batches of 100: from row 180 to 300, and from row 300 to 420.
    f = {point.start: point.measures["example_f1"] for point in points}
    before, after = (row(summary, source.name, "obr")[f"example_f1_{when}"] for when in ("before", "after"))
    assert before == pytest.approx(f[200])
    assert after == pytest.approx(f[300])
    assert before > after


def test_windows_keep_clear_of_the_drift():
    windows = {source.drift: source.windows for source in drifting_streams(1000)}
    assert windows == {
        "none": ((300, 500), (500, 700)),
        "sudden": ((300, 500), (500, 700)),
        "gradual": ((200, 400), (600, 800)),
        "incremental": ((200, 400), (600, 800)),
        "recurring": ((50, 250), (750, 950)),
    }


def test_ranks_are_means_over_datasets_and_measures(summary, lists):
    real, synthetic = summary.ranks
    assert real.datasets == ("enron",)
    assert len(synthetic.datasets) == len(DRIFTS) == 5
    for ranks, marked in ((real, "False"), (synthetic, "True")):
        rows = [row for row in lists["quality.csv"] if row["synthetic"] == marked]
        for model in MODELS:
            means = [np.mean([float(row[f"{m}_rank"]) for row in rows if row["model"] == model]) for m in MEASURES]
            assert [ranks.averages[model, m] for m in MEASURES] == pytest.approx(means)
            assert ranks.averages[model, OVERALL] == pytest.approx(np.mean(means[:5]))
        for measure in MEASURES:
            assert sum(ranks.averages[model, measure] for model in MODELS) == pytest.approx(6)
    losses = {row["model"]: float(row["hamming_loss"]) for row in lists["quality.csv"] if row["dataset"] == "enron"}
    best = min(MODELS, key=losses.get)
    assert real.averages[best, "hamming_loss"] == 1


def test_csv_files(lists):
    assert len(lists["quality.csv"]) == 6 * 4
    assert {row["model"] for row in lists["quality.csv"] if row["reference"] == "True"} == {REFERENCE}
    assert {row["drift"] for row in lists["quality.csv"]} == {"", *DRIFTS}
    assert len(lists["reliability.csv"]) == 6 * 4 * 15


def test_page_needs_nothing_else_and_marks_what_is_synthetic(summary):
    page = render_quality(summary)
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", page)
    # But for a comment that tells where the library comes from.
    page = re.sub(r"/\*! https://github.com/leeoniya/uPlot .*\*/", "", page)
    assert not re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", page)
    assert "default-src 'none'" in page
    labels = re.findall(r'<figcaption class="caption">([^<]*)<', page)
    assert labels == [
        "Critical differences",
        "Share of labels present against their probability, datasets",
        "Share of labels present against their probability, synthetic streams",
    ]
    assert set(diagrams(page)) == {
        "enron",
        *(f"synthetic, {'no' if kind == 'none' else kind} drift" for kind in DRIFTS),
    }
    groups = [
        group
        for group in re.findall(r'scope="rowgroup".*?</th>', page)
        if "<span>Datasets" not in group and "<span>Synthetic" not in group
    ]
    assert [">synthetic<" in group for group in groups] == [False, *[True] * 5]
    assert "CAL500, delicious, mediamill, NUS-WIDE and rcv1v2" in page


def test_terminal_of_eighty_columns_shows_everything(summary):
    # The widest that times and sizes get.
    sizes = {"obr": 1_234_000_000}
    rows = [row | {"seconds": 0.00455, "memory": sizes.get(row["model"], 87_100)} for row in summary.records["quality"]]
    text = StringIO()
    widest = dataclasses.replace(summary, records=summary.records | {"quality": rows})
    print_quality(widest, Console(file=text, width=80))
    shown = text.getvalue()
    assert "…" not in shown
    assert "synthetic, incremental drift" in " ".join(shown.split())
    assert re.search(r"0\.00455 +1,234", shown)
    assert "→" in shown
    assert "rcv1v2" in shown


def test_datasets_are_found_once_and_unreadable_files_are_named(tiny):
    (tiny / "ENRON.csv").write_text("a,b\n1,2\n")
    (tiny / "odd.csv").write_text("a,b\n1,2\n")
    (tiny / "README.md").write_text("text")
    found = find_datasets([tiny])
    assert [(source.name, source.data.name, source.facts[:3]) for source in found.sources] == [
        ("enron", "enron.arff", (250, 8, 5))
    ]
    assert found.missing == ["CAL500", "delicious", "mediamill", "NUS-WIDE", "rcv1v2"]
    assert len(found.unreadable) == 1
    assert "odd.csv" in found.unreadable[0]
    with pytest.raises(FileNotFoundError, match=r"'atlantis'.*enron"):
        find_datasets([tiny], ["atlantis"])


def test_batches_of_other_datasets_are_by_size(tiny):
    (tiny / "enron.arff").rename(tiny / "other.arff")
    for file in tiny.glob("enron.*"):
        file.rename(tiny / file.name.replace("enron", "other"))
    assert [source.batch_size for source in find_datasets([tiny]).sources] == [100]
    assert drifting_streams(4999)[0].batch_size == 100
    assert drifting_streams(5000)[0].batch_size == 500


def test_a_model_that_fails_is_named_and_ranks_last(tiny, tmp_path, monkeypatch):
    from labelrace import ConstantClassifier

    def broken(self, X, *_):
        raise ValueError("a defect")

    monkeypatch.setattr(ConstantClassifier, "predict", broken, raising=False)
    summary = run_quality(tmp_path / "out", models=MODELS, data=[tiny])
    assert "majority failed on enron: ValueError: a defect" in summary.notes
    assert {summary.ranks[0].averages["majority", measure] for measure in MEASURES} == {3.0}
    assert "majority" in render_quality(summary)
    print_quality(summary, Console(file=StringIO()))


def test_a_model_without_probabilities_has_no_calibration(tiny, tmp_path, monkeypatch):
    from labelrace import ConstantClassifier

    class Hidden:
        def __get__(self, instance, owner):
            raise AttributeError("predict_proba")

    monkeypatch.setattr(ConstantClassifier, "predict_proba", Hidden(), raising=False)
    summary = run_quality(tmp_path / "out", models=MODELS, data=[tiny])
    found = row(summary, "enron", "majority")
    assert (found["error"], found[CALIBRATION]) == (None, None)
    assert ("majority", CALIBRATION) not in summary.ranks[0].averages
    assert {record["model"] for record in quality_document(summary).records["reliability"]} == {*MODELS, REFERENCE} - {
        "majority"
    }
    assert set(diagrams(render_quality(summary))) == {"enron"}


def test_interrupted_and_resumed(tiny, tmp_path, monkeypatch):
    settings = {"models": ("obr", "majority"), "data": [tiny], "synthetic": True, "synthetic_rows": 300}
    complete = run_quality(tmp_path / "complete", **settings)
    out, calls, original = tmp_path / "cut", [], OnlineClassifier.predict
    # Warming up predicts too: what follows it is the first dataset, three models in two batches each, and one more for
    # the memory of each.
    warming = 3 * 2 + 3

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == warming + 3 * 2 + 3:
            signal.raise_signal(signal.SIGINT)
        return original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(OnlineClassifier, "predict", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_quality(out, **settings, on_summary=lambda so_far: write_quality(so_far, out))
    with (out / "quality.csv").open(newline="") as file:
        assert {row["dataset"] for row in csv.DictReader(file)} == {"enron"}
    assert "Not complete: 1 of 6 datasets so far" in (out / "quality.html").read_text()
    with pytest.raises(FileExistsError):
        run_quality(out, **settings)
    resumed = run_quality(out, **settings, resume=True)
    for found in resumed.records["quality"]:
        same = row(complete, found["dataset"], found["model"])
        assert [found[measure] for measure in MEASURES] == [same[measure] for measure in MEASURES]


def test_command(tiny, tmp_path):
    out = tmp_path / "out"
    arguments = ["quality", "--models", "obr, race-cls-fixed", "--data", str(tiny), "--runs", "2", "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "enron" in result.output
    tables = {"quality.html", "quality.md", "quality.tex", "quality.csv", "ranks.csv", "reliability.csv"}
    assert {*tables, "reliability-datasets.png", "runs"} == {p.name for p in out.iterdir()}
    with (out / "quality.csv").open(newline="") as file:
        runs = {row["model"]: row["runs"] for row in csv.DictReader(file)}
    # What has no randomness ran once.
    assert runs == {"obr": "1", "race-cls-fixed": "2", REFERENCE: "2"}
