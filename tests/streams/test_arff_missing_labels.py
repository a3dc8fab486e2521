"""Labels that are ``?`` in ARFF files are missing labels: NaN for models that take them, an error for others."""

from __future__ import annotations

import numpy as np
import pytest

import labelrace
from labelrace.evaluation import prequential
from labelrace.streams import load_dataset, open_stream, write_dataset

NAN = float("nan")
HEADER = "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute l {0,1}\n@attribute m {1,0}\n@data\n"
TRUTH = [[1, 0], [NAN, 1], [0, NAN], [NAN, NAN], [1, 1]]
ROWS = {
    "dense": ["1,2,1,0", "3,4,?,1", "5,6,0,?", "7,8,?,?", "9,10,1,1"],
    # What is not written is the first declared value: 0 of {0,1} and 1 of {1,0}.
    "sparse": ["{0 1,1 2,2 1,3 0}", "{0 3,1 4,2 ?}", "{0 5,1 6,3 ?}", "{0 7,1 8,2 ?,3 ?}", "{0 9,1 10,2 1}"],
    # Escapes are read row by row.
    "quoted": ["1,'2',1,0", "3,4,?,1", "5,6,0,?", "7,8,?,?", '9,"10",1,1'],
}


@pytest.fixture(params=ROWS)
def path(request, tmp_path):
    file = tmp_path / "rows.arff"
    file.write_text(HEADER + "\n".join(ROWS[request.param]) + "\n")
    return file


@pytest.mark.parametrize("size", [1, 2, 100])
def test_they_are_nan(path, size):
    stream = open_stream(path, 2)
    Y = np.concatenate([Y.toarray().astype(float) for _, Y in stream.batches(size)])
    np.testing.assert_array_equal(Y, TRUTH)
    X = np.concatenate([X if isinstance(X, np.ndarray) else X.toarray() for X, _ in stream.batches(size)])
    np.testing.assert_array_equal(X, np.arange(1.0, 11.0).reshape(5, 2))


def test_models_that_take_them_learn_as_from_arrays(path):
    data = load_dataset(path, 2)
    assert data.present.sum() == 4
    assert "cardinality 0.80" in repr(data)
    model, twin = (labelrace.LabelRaceClassifier(random_state=0) for _ in range(2))
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    model.partial_fit(X, data.Y)
    twin.partial_fit(X, np.array(TRUTH))
    np.testing.assert_array_equal(model.decision_function(X), twin.decision_function(X))


def test_others_refuse_them(path):
    data = load_dataset(path, 2)
    model = next(
        model for model in map(labelrace.make_model, ("mlht", "mlknn", "plst")) if not model.supports_missing_labels
    )
    with pytest.raises(ValueError, match="y contains NaN, and this model cannot learn rows with missing labels"):
        model.partial_fit(data.X, data.Y)


def test_written_and_read_again(path, tmp_path):
    data = load_dataset(path, 2)
    write_dataset(data, tmp_path / "again.arff")
    np.testing.assert_array_equal(load_dataset(tmp_path / "again.arff").Y.toarray(), TRUTH)
    for name in ("rows.csv", "rows.svm", "rows.npz", "rows.jsonl"):
        with pytest.raises(ValueError, match=r"a label is missing \(NaN\), which only \.arff files can tell"):
            write_dataset(data, tmp_path / name)
        assert not (tmp_path / name).exists()


def test_rows_with_missing_labels_are_learned_and_not_tested():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    Y = (X > 0.5).astype(float)
    Y[45, 1] = Y[50:60] = NAN
    steps = list(
        prequential(
            labelrace.LabelRaceClassifier(random_state=0), [(X[i : i + 10], Y[i : i + 10]) for i in range(0, 60, 10)]
        )
    )
    model = labelrace.LabelRaceClassifier(random_state=0)
    for i in range(0, 40, 10):
        model.partial_fit(X[i : i + 10], Y[i : i + 10])
    tested = [row for row in range(40, 50) if row != 45]
    assert steps[3].measures["hamming_loss"] == pytest.approx((model.predict(X[tested]) != Y[tested]).mean())
    assert np.isnan(steps[4].measures["hamming_loss"])


def test_the_command(path, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from labelrace.cli.main import app

    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["train", "rows.arff", "--labels", "2", "-o", "model"])
    assert done.exit_code == 0, done.output
    assert "race learned 5 rows with 2 labels" in done.output
    assert CliRunner().invoke(app, ["data", "info", "rows.arff", "--labels", "2"]).exit_code == 0
