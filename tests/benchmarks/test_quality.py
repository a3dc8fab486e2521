"""Online models compared: the numbers are those of direct calls; ranks, grids, failures."""

import csv

import pytest
from typer.testing import CliRunner

import labelrace
from benchmarks.__main__ import app
from benchmarks.quality import MEASURES, REFERENCE, quality_models
from benchmarks.ranking import CALIBRATION
from labelrace.evaluation import ModelSpec, averages, prequential
from labelrace.measures import PAPER_MEASURES
from labelrace.streams import open_stream


def compared(tiny, out, models, *arguments):
    """Run the command; return its output and its records by model."""
    named = [word for model in models for word in ("--model", model)]
    result = CliRunner().invoke(app, ["quality", "--data", str(tiny), "--out", str(out), *named, *arguments])
    assert result.exit_code == 0, result.output
    with (out / "quality.csv").open(newline="") as file:
        return result.output, {row["model"]: row for row in csv.DictReader(file)}


def by_hand(tiny, name, **parameters):
    model = labelrace.make_model(name, **parameters)
    return averages(list(prequential(model, open_stream(tiny / "enron.arff"), 100)))


def test_values_are_those_of_direct_calls(tiny, tmp_path):
    models = ("obr", "race-cls-fixed", "mine=labelrace:ConstantClassifier")
    _, rows = compared(tiny, tmp_path, models, "--runs", "2")
    assert list(rows) == ["obr", "race-cls-fixed", "mine", REFERENCE]
    values = by_hand(tiny, "obr")
    assert {name: float(rows["obr"][name]) for name in PAPER_MEASURES} == pytest.approx(
        {name: values[name] for name in PAPER_MEASURES}, abs=1e-12
    )
    # What has no randomness ran once.
    assert [row["runs"] for row in rows.values()].count("1") == 2
    for row in rows.values():
        assert (row["micro_f1_rank"] == "") == (row["model"] == REFERENCE)
    for measure in MEASURES:
        assert sum(float(row[f"{measure}_rank"] or 0) for row in rows.values()) == pytest.approx(6)


def test_the_best_of_a_grid_in_hindsight(tiny, tmp_path):
    """It is the setting with the highest example F1, ranked as one model beside the untuned one, and said so."""
    output, rows = compared(tiny, tmp_path, ("majority", "arow"), "--tuned")
    assert sorted(rows) == sorted(["majority", "arow", "arow, best of 5", REFERENCE])
    f1 = {r: by_hand(tiny, "arow", r=r)["example_f1"] for r in (0.1, 0.3, 1.0, 3.0, 10.0)}
    assert float(rows["arow, best of 5"]["example_f1"]) == pytest.approx(max(f1.values()), abs=1e-12)
    assert f"Best in hindsight on enron: arow, r = {max(f1, key=f1.get):g}." in " ".join(output.split())


def test_a_model_that_fails_is_named_and_ranks_last(tiny, tmp_path, monkeypatch):
    def broken(self, X, *_):
        raise ValueError("a defect")

    monkeypatch.setattr(labelrace.ConstantClassifier, "predict", broken, raising=False)
    output, rows = compared(tiny, tmp_path, ("obr", "race", "majority"))
    assert "majority failed on enron: ValueError: a defect" in " ".join(output.split())
    assert {rows["majority"][f"{measure}_rank"] for measure in MEASURES} == {"3.0"}
    assert rows["majority"][CALIBRATION] == ""


def test_the_reference_is_the_default_race_classifier():
    reference = quality_models([ModelSpec("obr")])[0]
    assert reference.make(3).get_params() == labelrace.RACEClassifier(random_state=3).get_params()


def test_baselines_that_are_not_installed_are_refused(monkeypatch):
    monkeypatch.setattr("benchmarks.rivals.find_spec", lambda package: None)
    assert "vowpal-wabbit" not in [spec.label for spec in quality_models()]
    with pytest.raises(ValueError, match="vowpal-wabbit needs vowpalwabbit: see `python -m benchmarks rivals`"):
        quality_models([ModelSpec("vowpal-wabbit")])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("paper", "--table", "2,9"), "'9'"),
        (("quality", "--model", "race-offline"), "race-offline learns all data at once"),
        (("quality", "--model", "obr", "--model", "atlantis"), "'atlantis'"),
        (("quality", "--model", "obr", "--datasets", "atlantis"), "'atlantis'"),
        (("quality", "--model", "obr", "--data", "no"), "no such folder: no"),
        (("quality", "--model", "obr"), "no dataset is available"),
    ],
)
def test_mistakes_are_told(tmp_path, arguments, said):
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, ValueError | OSError)
    assert said in str(result.exception)
    assert not (tmp_path / "out").exists()
