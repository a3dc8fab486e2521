"""The summary against values computed by hand."""

from __future__ import annotations

import json
import math

import pytest

from labelrace.exceptions import DataFormatError
from labelrace.report import summarize


def model(summary, name):
    return next(entry for entry in summary["models"] if entry["name"] == name)


def one_run(make, name, values, measure="micro_f1", run=0, done=True):
    """Return the records of one run whose batches have these values."""
    records = [make.batch(name, index + 1, {measure: value}, run) for index, value in enumerate(values)]
    return [*records, make.done(name, run)] if done else records


def test_means_over_whole_batches_then_runs(make):
    manifest = make.manifest(["a"], ["micro_f1"], runs=2)
    records = [*one_run(make, "a", [0.2, 0.4]), *one_run(make, "a", [0.5, 0.7], run=1)]
    records.insert(2, make.batch("a", 3, {"micro_f1": 1.0}, whole=False, rows=40))
    cell = model(summarize(manifest, records), "a")["measures"]["micro_f1"]
    assert cell["mean"] == pytest.approx(0.45)
    assert cell["sd"] == pytest.approx(math.sqrt(((0.3 - 0.45) ** 2 + (0.6 - 0.45) ** 2) / 1))
    assert cell["runs"] == 2


def test_missing_values_do_not_count(make):
    manifest = make.manifest(["a"], ["micro_f1", "macro_auc"])
    records = one_run(make, "a", [0.2, None, float("nan"), 0.4])
    summary = summarize(manifest, records)
    cells = model(summary, "a")["measures"]
    assert cells["micro_f1"]["mean"] == pytest.approx(0.3)
    assert cells["micro_f1"]["sd"] is None
    assert cells["macro_auc"]["mean"] is None
    assert "NaN" not in json.dumps(summary, allow_nan=False)


def test_partial_batch_counts_when_there_is_no_other(make):
    manifest = make.manifest(["a"], ["micro_f1"])
    records = [make.batch("a", 1, {"micro_f1": 0.3}, whole=False), make.done("a")]
    summary = summarize(manifest, records)
    assert model(summary, "a")["measures"]["micro_f1"]["mean"] == pytest.approx(0.3)
    assert "partial" in summary["notes"][0]


def test_ranks_directions_and_ties(make):
    manifest = make.manifest(["a", "b", "c"], ["micro_f1", "hamming_loss"])
    records = []
    for name, good, loss in (("a", 0.5, 0.1), ("b", 0.5 + 1e-15, 0.3), ("c", 0.4, 0.2)):
        records += [make.batch(name, 1, {"micro_f1": good, "hamming_loss": loss}), make.done(name)]
    summary = summarize(manifest, records)
    ranks = {m["name"]: [m["measures"][k]["rank"] for k in ("micro_f1", "hamming_loss")] for m in summary["models"]}
    assert ranks == {"a": [1, 1], "b": [1, 3], "c": [3, 2]}
    assert [m["average_rank"] for m in summary["models"]] == [1.0, 2.0, 2.5]
    assert [m["best_rank"] for m in summary["models"]] == [True, False, False]
    assert [m["measures"]["micro_f1"]["best"] for m in summary["models"]] == [True, True, False]
    assert [m["lower"] for m in summary["measures"]] == [False, True]


def test_a_single_model_is_not_ranked(make):
    summary = summarize(make.manifest(["a"], ["micro_f1"]), one_run(make, "a", [0.2]))
    assert model(summary, "a")["measures"]["micro_f1"]["rank"] is None
    assert model(summary, "a")["average_rank"] is None
    assert not model(summary, "a")["fastest"]


def test_times_and_ratios(make):
    manifest = make.manifest(["obr", "race-cls-fixed", "negative"], ["micro_f1"], runs=1)
    records = [
        make.batch("obr", 1, {"micro_f1": 0.1}),
        make.done("obr", rows=200, seconds=(6.0, 4.0, 99.0)),
        make.batch("race-cls-fixed", 1, {"micro_f1": 0.1}),
        make.done("race-cls-fixed", rows=200, seconds=(0.4, 0.6, 99.0)),
        # Broke off: the times are what its batches add up to.
        make.batch("negative", 1, {"micro_f1": 0.1}, seconds=(0.01, 0.04, 9.0)),
    ]
    summary = summarize(manifest, records)
    assert summary["reference"] == "race-cls-fixed"
    obr, negative = model(summary, "obr"), model(summary, "negative")
    assert obr["seconds"] == {"features": 0.0, "predict": 6.0, "learn": 4.0, "measure": 99.0, "total": 10.0}
    assert obr["ms_per_row"]["total"] == pytest.approx(50)
    assert negative["ms_per_row"]["total"] == pytest.approx(0.5)
    assert [m["fastest"] for m in summary["models"]] == [False, True, False]
    assert [m["log10_time_ratio"] for m in summary["models"]] == pytest.approx([1.0, 0.0, -1.0])


def test_reference_is_found_by_the_kind_of_a_named_model(make):
    manifest = make.manifest(["obr", "mine"], ["micro_f1"])
    manifest["models"][1]["model"] = "race-reg-fixed"
    records = [*one_run(make, "obr", [0.1]), *one_run(make, "mine", [0.1])]
    assert summarize(manifest, records)["reference"] == "mine"


def test_curves(make):
    manifest = make.manifest(["a", "b"], ["micro_f1"], runs=2)
    records = [*one_run(make, "a", [0.1, 0.2, 0.3, 0.4]), *one_run(make, "a", [0.3, 0.4], run=1, done=False)]
    curves = summarize(manifest, records)["curves"]
    assert curves["rows"] == [200, 300, 400, 500]
    assert curves["window"] == 2
    values = curves["values"]["micro_f1"]
    assert values["batch"][0] == pytest.approx([0.2, 0.3, 0.3, 0.4])
    assert values["windowed"][0] == pytest.approx([0.2, 0.25, 0.25, 0.35])
    assert values["cumulative"][0] == pytest.approx([0.2, 0.25, 0.2, 0.25])
    assert values["batch"][1] == [None] * 4


def test_cumulative_curve_ends_at_the_tables_value(race):
    summary = summarize(*race)
    for index, entry in enumerate(summary["models"]):
        last = summary["curves"]["values"]["micro_f1"]["cumulative"][index][-1]
        assert last == pytest.approx(entry["measures"]["micro_f1"]["mean"])


def test_long_curves_are_thinned(make):
    manifest = make.manifest(["a"], ["micro_f1"])
    curves = summarize(manifest, one_run(make, "a", [index / 1000 for index in range(1000)]))["curves"]
    line = curves["values"]["micro_f1"]["batch"][0]
    assert len(curves["rows"]) == len(line) == 400
    assert curves["batches"] == 1000
    assert curves["rows"][-1] == 1000 * 100 + 100
    # Points stand for stretches of two or three batches: means keep the trend.
    assert line == sorted(line)
    assert line[0] == pytest.approx(0.0005)


def test_a_model_that_learns_all_at_once_is_a_point_at_the_end(make):
    manifest = make.manifest(["a", "offline"], ["micro_f1"], protocol="holdout")
    records = one_run(make, "a", [0.1, 0.2, 0.3])
    records += [make.batch("offline", 0, {"micro_f1": 0.9}) | {"end": 400}, make.done("offline")]
    summary = summarize(manifest, records)
    assert summary["curves"]["values"]["micro_f1"]["batch"][0] == [None, None, 0.9]
    assert "held out" in summary["headline"]


def test_labels(make):
    manifest = make.manifest(["a"], ["micro_f1"], runs=2)
    records = [*one_run(make, "a", [0.1]), *one_run(make, "a", [0.1], run=1)]
    records.append({"kind": "labels", "model": "a", "run": 0, "frequency": [0.5, 0.1], "f1": [0.8, None]})
    records.append({"kind": "labels", "model": "a", "run": 1, "frequency": [0.3, 0.1, 0.01], "f1": [0.6, 0.2, None]})
    labels = summarize(manifest, records)["labels"]
    assert labels["frequency"] == pytest.approx([0.4, 0.1, 0.01])
    assert labels["f1"][0] == [pytest.approx(0.7), pytest.approx(0.2), None]
    assert labels["trend"][0] == pytest.approx([0.45, 0.45, 0.2])
    assert labels["names"] == ["0", "1", "2"]


def test_labels_have_the_names_of_the_manifest(make):
    manifest = make.manifest(["a"], ["micro_f1"])
    manifest["source"] |= {"label_names": ["oven", "bread"]}
    record = {"kind": "labels", "model": "a", "run": 0, "frequency": [0.5, 0.1, 0.2], "f1": [0.8, None, 0.1]}
    labels = summarize(manifest, [*one_run(make, "a", [0.1]), record])["labels"]
    # A label that came later than the manifest has its number.
    assert labels["names"] == ["oven", "bread", "2"]


@pytest.mark.parametrize("extra", [[], [{"kind": "labels", "model": "a", "run": 0, "frequency": [], "f1": []}]])
def test_no_labels(make, extra):
    assert summarize(make.manifest(["a"], ["micro_f1"]), [*one_run(make, "a", [0.1]), *extra])["labels"] is None


def test_unfinished_models_are_shown_but_not_ranked(make):
    manifest = make.manifest(["a", "b", "c", "d"], ["micro_f1"], runs=2)
    records = [*one_run(make, "a", [0.1]), *one_run(make, "a", [0.1], run=1), *one_run(make, "b", [0.2])]
    records += one_run(make, "b", [0.9], run=1, done=False)
    records += one_run(make, "c", [0.8], done=False)
    records.append({"kind": "failed", "model": "c", "run": 0, "error": "MemoryError: too large"})
    summary = summarize(manifest, records)
    assert [m["measures"]["micro_f1"]["mean"] for m in summary["models"]] == [0.2, 0.1, 0.8, None]
    assert [m["measures"]["micro_f1"]["rank"] for m in summary["models"]] == [1, 2, None, None]
    assert not summary["complete"]
    assert summary["failures"] == [{"model": "c", "run": 0, "batches": 1, "error": "MemoryError: too large"}]
    text = "\n".join(summary["notes"])
    for part in ("Not started: d.", "b finished 1 of 2 runs", "Failed: c, run 0, after 1 batch: MemoryError", "(†)"):
        assert part in text


def test_repeats_left_out_are_not_an_interruption(make):
    manifest = make.manifest(["race", "obr"], ["micro_f1"], runs=2)
    records = [*one_run(make, "race", [0.1]), *one_run(make, "obr", [0.2]), *one_run(make, "race", [0.1], run=1)]
    summary = summarize(manifest, records)
    assert summary["complete"]
    assert summary["notes"] == ["Run once, without repeats: obr."]


def test_nothing_yet(make):
    summary = summarize(make.manifest(), [])
    assert summary["curves"]["rows"] == []
    assert summary["reference"] is None
    assert not summary["complete"]


def test_runs_without_a_tested_batch_have_no_winner(make):
    summary = summarize(
        make.manifest(["race", "obr"], ["micro_f1"]), [*one_run(make, "race", []), *one_run(make, "obr", [])]
    )
    assert summary["verdict"] == ""
    assert summary["notes"][0].startswith("Nothing was tested: the first batch, of up to 100 rows, is only learned")


def test_a_run_taken_up_again_replaces_its_failure(make):
    manifest = make.manifest(["a"], ["micro_f1"])
    failed = {"kind": "failed", "model": "a", "run": 0, "error": "x"}
    summary = summarize(manifest, [*one_run(make, "a", [0.9], done=False), failed, *one_run(make, "a", [0.1])])
    assert summary["complete"]
    assert model(summary, "a")["measures"]["micro_f1"]["mean"] == pytest.approx(0.1)


def test_other_formats_are_refused(make):
    with pytest.raises(DataFormatError, match="format 2"):
        summarize(make.manifest(format=2), [])


@pytest.mark.parametrize("kind", ["batch", "labels", "done", "failed"])
def test_records_without_their_values_are_refused(make, kind):
    with pytest.raises(DataFormatError, match=f"of kind '{kind}' must have"):
        summarize(make.manifest(["a"]), [{"kind": kind, "model": "a", "run": 0}])


def test_headline(make):
    assert summarize(make.manifest(), [])["headline"] == (
        "2 models on enron, in batches of 100 rows, each batch tested first, then learned: "
        "1,702 rows, 1,001 features, 53 labels (3.38 per row). Values are those of a single run."
    )
    unknown = make.manifest(source={"rows": None, "cardinality": None})
    assert "an unknown number of rows, 1,001 features, 53 labels. " in summarize(unknown, [])["headline"]


def test_the_best_comes_first_and_is_said_to_have_won(make):
    manifest = make.manifest(["a", "b", "c"], ["micro_f1", "hamming_loss"])
    records = []
    for name, good, loss in (("a", 0.4, 0.3), ("b", 0.5, 0.1), ("c", 0.45, 0.2)):
        records += [make.batch(name, 1, {"micro_f1": good, "hamming_loss": loss}), make.done(name)]
    summary = summarize(manifest, records)
    assert [m["name"] for m in summary["models"]] == ["b", "c", "a"]
    assert [line[0] for line in summary["curves"]["values"]["micro_f1"]["batch"]] == [0.5, 0.45, 0.4]
    assert summary["verdict"] == (
        "b won on enron: micro F1 0.500, 0.050 above c, the second (average rank 1.00 against 2.00 over 2 measures)."
    )
    tied = summarize(make.manifest(["a", "b"], ["micro_f1"]), [*one_run(make, "a", [0.2]), *one_run(make, "b", [0.2])])
    assert tied["verdict"] == "a and b share the best average rank on enron: their micro F1 is 0.200 and 0.200."
    alone = summarize(make.manifest(["a"], ["micro_f1"]), one_run(make, "a", [0.2]))
    assert alone["verdict"] == "a reached a micro F1 of 0.200 on enron."
    assert summarize(make.manifest(["a"], ["micro_f1"]), [])["verdict"] == ""


def test_labels_that_appeared_drifts_and_the_best_and_worst_labels(make):
    manifest = make.manifest(["a"], ["micro_f1"], source={"label_names": ["oven", "egg", "rare", "old", "never"]})
    records = one_run(make, "a", [0.1, 0.2, 0.3])
    for record, alarms, drifts in zip(records, (1, 1, 2), (0, 1, 1), strict=False):
        record |= {"alarms": alarms, "drifts": drifts}
    known = {"frequency": [0.5, 0.2, 0.01, 0.3, 0.0], "f1": [0.9, 0.1, 1.0, 0.4, None], "rows": 300}
    records.append({"kind": "labels", "model": "a", "run": 0, **known, "first": [3, 250, 260, 310, None]})
    summary = summarize(manifest, records)
    assert summary["events"]["drifts"] == [{"model": "a", "rows": [200]}]
    assert summary["events"]["alarms"] == [{"model": "a", "rows": [100, 300]}]
    assert summary["events"]["labels"] == [
        {"row": 250, "count": 2, "names": ["egg", "rare"]},
        {"row": 310, "count": 1, "names": ["old"]},
    ]
    # Three rows are too few to say how well a label is known.
    assert summary["extremes"] == {"best": [0, 3], "worst": [1]}


def test_features_are_part_of_every_models_time(make):
    manifest = make.manifest(["a", "b"], ["micro_f1"], source={"feature_seconds": 2.0})
    records = [*one_run(make, "a", [0.1]), *one_run(make, "b", [0.1])]
    for entry in summarize(manifest, records)["models"]:
        assert entry["seconds"]["total"] == pytest.approx(2.9)
        assert entry["ms_per_row"]["features"] == pytest.approx(1000 * 2.0 / 300)
