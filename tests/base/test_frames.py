"""Data frames out where frames went in."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import labelrace
from labelrace import LabelRaceClassifier, Tagger
from labelrace.evaluation import prequential, records_frame, run
from labelrace.streams import Dataset


class PolarsFrame(dict):
    """What stands for a data frame of polars: named columns, and a way to Arrow."""

    def to_arrow(self):
        import pyarrow as pa

        return pa.table(dict(self))


PolarsFrame.__module__ = "polars.dataframe"


@pytest.fixture
def polars(monkeypatch):
    module = ModuleType("polars")
    module.DataFrame = PolarsFrame
    monkeypatch.setitem(sys.modules, "polars", module)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 3)), columns=list("abc"))
    return LabelRaceClassifier(random_state=0).fit(X, pd.DataFrame({"low": X["a"] < 0, "high": X["a"] > 0}))


@pytest.fixture(scope="module")
def tagger():
    rows = [{"body": f"the {word} is {i % 3}", "tags": word} for i, word in enumerate(["oven", "toaster"] * 15)]
    return Tagger("tags", text="body", random_state=0).partial_fit(rows)


def test_top_of_a_classifier(model):
    X = pd.DataFrame([[-2.0, 0, 0], [2.0, 0, 0]], columns=list("abc"), index=["x", "y"])
    frame = model.predict_top(X, 2, as_frame=True)
    assert list(frame.columns) == ["row", "rank", "label", "probability"]
    expected = [
        (name, rank, *pair)
        for name, row in zip("xy", model.predict_top(X, 2), strict=True)
        for rank, pair in enumerate(row, 1)
    ]
    assert list(frame.itertuples(index=False, name=None)) == expected
    assert frame.loc[frame["rank"] == 1, "label"].tolist() == ["low", "high"]
    assert frame["probability"].dtype == float


def test_explanation_of_a_classifier(model):
    x = pd.DataFrame([[2.0, 0.1, 0.1]], columns=list("abc"))
    frame = model.explain(x, ["high", "low"], as_frame=True)
    parts = [(one.label, *part) for one in model.explain(x, ["high", "low"]) for part in one.features]
    assert list(frame.columns) == ["label", "feature", "contribution"]
    assert list(frame.itertuples(index=False, name=None)) == parts


def test_tagger(tagger):
    rows = pd.DataFrame({"body": ["an oven", "a toaster", "nothing known"]}, index=[7, 8, 9])
    top = tagger.predict_top(rows, 1, as_frame=True)
    assert list(zip(top["row"], top["label"], strict=True))[:2] == [(7, "oven"), (8, "toaster")]
    suggested = tagger.suggest(rows, as_frame=True)
    assert list(suggested.columns) == ["row", "tags", "probabilities", "review"]
    assert suggested["tags"].tolist() == [list(one.tags) for one in tagger.suggest(rows)]
    assert suggested["review"].tolist() == [False, False, True]
    explained = tagger.explain({"body": "an oven"}, ["oven"], as_frame=True)
    assert "body: oven" in set(explained["feature"])
    assert dict(zip(explained["feature"], explained["contribution"], strict=True)) == dict(
        tagger.explain({"body": "an oven"}, ["oven"])["oven"]
    )  # fmt: skip


def test_polars_where_polars_went_in(polars, tagger):
    rows = PolarsFrame(body=["an oven", "a toaster"])
    for frame in (tagger.predict_top(rows, 1, as_frame=True), tagger.suggest(rows, as_frame=True)):
        assert type(frame) is PolarsFrame
        assert frame["row"] == [0, 1]
    assert isinstance(tagger.predict_top([{"body": "an oven"}], 1, as_frame=True), pd.DataFrame)


def test_the_error_names_what_is_missing(monkeypatch, tagger):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="as_frame=True needs pandas, which is not installed: pip install pandas"):
        tagger.predict_top([{"body": "an oven"}], as_frame=True)
    model = labelrace.make_model("obr").fit(np.eye(3), np.eye(3))
    with pytest.raises(ImportError, match="needs pandas"):
        model.predict_top(np.eye(3), as_frame=True)


def test_batches_of_an_evaluation(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((90, 4))
    data = Dataset.from_arrays(X, (X[:, :2] > 0.5).astype(int))
    model = labelrace.make_model("majority")
    points = list(prequential(model, data, batch_size=20, measures=["micro_f1", "hamming_loss"]))
    frame = records_frame(points)
    tested = [point for point in points if point.tested]
    assert frame["micro_f1"].tolist() == [point.measures["micro_f1"] for point in tested]
    assert frame[["start", "end"]].to_numpy().tolist() == [[20, 40], [40, 60], [60, 80], [80, 90]]
    assert frame["whole"].tolist() == [True, True, True, False]
    assert {"hamming_loss", "predict_seconds", "learn_seconds", "measure_seconds", "memory"} <= set(frame)
    options = {"batch_size": 20, "measures": ["micro_f1", "hamming_loss"], "jobs": 1, "out": tmp_path / "run"}
    _, records = run(data, ["majority"], **options)
    of_run = records_frame(records)
    assert list(of_run)[:2] == ["model", "run"]
    pd.testing.assert_frame_equal(of_run[["start", "end", "micro_f1"]], frame[["start", "end", "micro_f1"]])
    assert records_frame([]).empty
