"""Speed is measured on every shape, and other libraries are compared where they are installed."""

import csv
import sys
from types import ModuleType

import pytest
from typer.testing import CliRunner

from labelrace.cli.bench import app
from labelrace.experiments import run_speed, speed
from labelrace.experiments.speed import RIVALS, Shape, grid, make_batches, slope


@pytest.fixture
def small(monkeypatch):
    axes = {"rows": (60, 90), "features": (10, 20), "labels": (6, 12), "density": (0.1, 0.3)}
    monkeypatch.setattr(speed, "AXES", axes)
    monkeypatch.setattr(speed, "BASE", Shape(rows=60, features=10, labels=6, density=0.1))
    monkeypatch.setattr(speed, "BATCH_SIZE", 30)


def test_grid_varies_one_size_at_a_time():
    for axis, line in grid().items():
        others = {shape._replace(**{axis: 0}) for shape in line}
        assert len(others) == 1
        assert speed.BASE in line


def test_rows_as_asked_for():
    assert [shape.rows for shape in grid([4000, 1000])["rows"]] == [1000, 4000]
    assert {shape.rows for shape in grid([4000, 1000])["labels"]} == {1000}


def test_batches_have_the_shape():
    batches, categorical = make_batches(Shape(rows=600, features=40, labels=8, density=0.1))
    assert sum(X.shape[0] for X, _ in batches) == 600
    assert batches[0][0].shape[1] == len(categorical) == 40
    assert batches[0][1].shape[1] == 8


def test_every_model_is_measured_on_every_shape(small):
    told = []
    summary = run_speed(["race-cls-fixed", "negative"], on_progress=told.append)
    assert summary.axes == grid()
    ours = {key: measured for key, measured in summary.measured.items() if key[0] not in RIVALS}
    assert ours.keys() == {
        (name, shape)
        for name in ("race-cls-fixed", "negative", "obr", "occ")
        for line in grid().values()
        for shape in line
    }
    assert all(m.predict_ms > 0 and m.learn_ms > 0 and m.memory > 0 for m in ours.values())
    *_, libraries = speed.speed_document(summary).tables()
    ratios = {row.name: [cell.value for cell in row.cells] for row in libraries.groups[0].rows}
    assert all(text.endswith(" ×") for text in ratios["scikit-learn, binary relevance / obr"])
    assert {len(line) for line in ratios.values()} == {len(grid()["labels"])}
    assert told[-1].done == told[-1].total - 1


def test_slope():
    sizes = (10, 90, 400)
    assert slope(sizes, [3.0 * size**0.5 for size in sizes]) == pytest.approx(0.5)


def test_command(small, tmp_path, monkeypatch):
    # One model of each kind: those with many epochs over the first batch take long while their memory is traced.
    monkeypatch.setattr(speed, "model_names", lambda online: ["race-cls-adaptive", "oecc", "majority"])
    result = CliRunner().invoke(app, ["speed", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "…" not in result.output
    assert "race-cls-adaptive" in result.output
    with (tmp_path / "speed.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["axis"] for row in rows} == {"rows", "features", "labels", "density"}
    assert all(float(row["learn_ms"]) > 0 for row in rows)


def test_absent_libraries_are_named(small, monkeypatch):
    monkeypatch.setattr("labelrace.experiments.speed.find_spec", lambda name: None)
    summary = run_speed(["negative"])
    assert {name for name, _ in summary.measured if name in RIVALS} == {"scikit-learn, binary relevance"}
    assert summary.absent == ["river", "vowpalwabbit"]
    [note] = speed.speed_document(summary).notes
    assert note == "Not installed, and so not compared: river and vowpalwabbit."


def test_vowpal_wabbit_gets_lines_in_its_format(monkeypatch):
    lines = []

    class Workspace:
        def __init__(self, arguments):
            lines.append(arguments)

        def learn(self, line):
            lines.append(line)

        def predict(self, line):
            lines.append(line)
            return [0]

    module = ModuleType("vowpalwabbit")
    module.Workspace = Workspace
    monkeypatch.setitem(sys.modules, "vowpalwabbit", module)
    [(X, Y), *_], _ = make_batches(Shape(rows=3, features=6, labels=4, density=0.4))
    make, *_ = RIVALS["Vowpal Wabbit, one against all"]
    model = make(4)
    model.partial_fit(X, Y)
    model.predict(X)
    assert lines[0] == "--multilabel_oaa 4 --quiet"
    assert lines[1].count("|") == 1
    labels, _, features = lines[1].partition(" | ")
    assert labels == ",".join(map(str, sorted(Y[[0]].indices.tolist())))
    assert set(map(int, features.split())) == set(X[[0]].indices.tolist())
    assert lines[-1].startswith(" | ")
