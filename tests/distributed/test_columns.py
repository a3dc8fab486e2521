"""Columns of several files, and of files that are predicted by workers, are matched by name, number and text."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from typer.testing import CliRunner

import labelrace
from labelrace.cli.main import app
from labelrace.distributed import fit, predict
from labelrace.exceptions import DataFormatError, DivergenceError
from labelrace.streams import Dataset, write_dataset

NAMES, LABELS = [f"f{column}" for column in range(6)], ["a", "b", "c"]


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 6)).round(3)
    return X, (X @ rng.normal(size=(6, 3)) > 1).astype(np.int8)


def write(path, X, Y, order=range(6), names=NAMES):
    order = list(order)
    chosen = [names[column] for column in order]
    write_dataset(Dataset(X[:, order], csr_array(Y), chosen, LABELS, np.zeros(len(order), bool), "rows"), path)
    return path


def command(client, *arguments):
    given = [*map(str, arguments), "--scheduler", client.scheduler.address]
    return CliRunner().invoke(app, given)


def sets(result):
    assert result.exit_code == 0, result.output
    return [set(json.loads(line)["labels"]) for line in result.stdout.splitlines()]


def parts(folder, suffix, X, Y, orders, **settings):
    for number, order in enumerate(orders):
        rows = slice(300 * number, 300 * (number + 1))
        write(folder / f"p{number}{suffix}", X[rows], Y[rows], order, **settings)
    return str(folder / f"p*{suffix}")


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_files_whose_columns_have_another_order_are_learned_by_name(client, tmp_path, arrays, suffix):
    X, Y = arrays
    source = parts(tmp_path, suffix, X, Y, [range(6), range(5, -1, -1), [3, 0, 5, 1, 2, 4]])
    model = fit(labelrace.make_model("ridge"), source, client=client)
    expected = labelrace.make_model("ridge").fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-8)
    # What is learned is kept with the model, so that files to be predicted are matched, too.
    asked = write(tmp_path / f"asked{suffix}", X, Y, [2, 1, 0, 5, 4, 3])
    model.save(tmp_path / "model")
    result = CliRunner().invoke(app, ["predict", str(tmp_path / "model"), str(asked)])
    assert sets(result) == [{LABELS[j] for j in np.flatnonzero(row)} for row in expected.predict(X)]


def test_files_with_other_columns_are_refused_and_named(client, tmp_path, arrays):
    X, Y = arrays
    model = labelrace.make_model("ridge")
    for orders, words in (
        ([range(6), range(6), range(5)], r"p2\.csv must have the columns of \S+p0\.csv, but there is no 'f5'"),
        ([range(5), range(6), range(5)], r"p1\.csv must have the columns of \S+p0\.csv and no others, got 'f5'"),
    ):
        source = parts(tmp_path, ".csv", X, Y, orders)
        with pytest.raises(DataFormatError, match=words):
            fit(model, source, client=client)
        told = command(client, "train", source, "-o", tmp_path / "model")
        assert told.exit_code == 1
        assert not model.is_fitted
        assert not (tmp_path / "model").exists()


def test_a_file_that_a_model_cannot_learn_is_named(client, tmp_path, arrays):
    X, Y = arrays[0].copy(), arrays[1]
    X[700, 2] = 1e150
    source = parts(tmp_path, ".csv", X, Y, [range(6)] * 3)
    with pytest.raises(DivergenceError, match=r"p2\.csv.*: X must hold numbers"):
        fit(labelrace.make_model("ridge"), source, client=client)


def test_a_model_that_goes_on_with_files_matches_them_with_what_it_knows(client, tmp_path, arrays):
    X, Y = arrays
    first = write(tmp_path / "first.csv", X[:500], Y[:500])
    others = write(tmp_path / "others.csv", X[500:], Y[500:], range(5, -1, -1))
    model = fit(labelrace.make_model("ridge"), str(first), client=client)
    fit(model, str(others), client=client)
    expected = labelrace.make_model("ridge").fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-8)


def svm(path, X, Y):
    rows = zip(X, Y, strict=True)
    lines = [
        ",".join(map(str, np.flatnonzero(y))) + " " + " ".join(f"{j}:1" for j in np.flatnonzero(x)) for x, y in rows
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_numbered_features_of_several_files_keep_their_numbers(client, tmp_path):
    """Feature 0 is in no row of the first file, and feature 10 in no row of the others."""
    rng = np.random.default_rng(0)
    X = (rng.random((900, 11)) < 0.4).astype(float)
    X[:300, 0], X[300:, 10], X[:, 5] = 0, 0, 1
    Y = X[:, 1:4]
    for number in range(3):
        svm(tmp_path / f"p{number}.svm", X[300 * number : 300 * (number + 1)], Y[300 * number : 300 * (number + 1)])
    model = fit(labelrace.make_model("ridge"), str(tmp_path / "p*.svm"), client=client)
    expected = labelrace.make_model("ridge").fit(csr_array(X), Y)
    np.testing.assert_allclose(
        model.decision_function(csr_array(X)), expected.decision_function(csr_array(X)), atol=1e-8
    )
    asked = X[X[:, 0] == 0]
    svm(tmp_path / "asked.svm", asked, asked[:, 1:4])
    found = predict(model, tmp_path / "asked.svm").compute()["labels"].tolist()
    assert [set(labels) for labels in found] == [{f"y{j}" for j in np.flatnonzero(row)} for row in asked[:, 1:4]]


def test_numbers_below_those_of_a_model_are_refused(client, tmp_path):
    """Its columns would move."""
    X = (np.random.default_rng(0).random((600, 6)) < 0.5).astype(int)
    X[:, 5] = 1
    lower, higher = X.copy(), np.hstack([X, np.ones((600, 1), int)])
    lower[:, 0], X[:, 0], higher[:, 0] = 1, 0, 0
    model = fit(labelrace.make_model("ridge"), svm(tmp_path / "first.svm", X, X[:, 1:3]), client=client)
    files = [svm(tmp_path / f"{name}.svm", rows, rows[:, 1:3]) for name, rows in (("high", higher), ("low", lower))]
    with pytest.raises(DataFormatError, match=r"low\.svm must have the columns .* and no others, got 'x0'"):
        fit(model, files, client=client)


def test_nominal_values_of_several_files_are_matched_by_text(client, tmp_path):
    def table(path, hues):
        path.write_text("hue,n,y\n" + "".join(f"{hue},{i % 7},{int(hue == '3b')}\n" for i, hue in enumerate(hues)))
        return path

    # The texts of the second look like numbers, and those of the last are not all in the first.
    table(tmp_path / "p0.csv", ["blue", "3b"] * 150)
    table(tmp_path / "p1.csv", ["7", "9"] * 150)
    table(tmp_path / "p2.csv", ["3b", "amber"] * 150)
    told = command(client, "train", tmp_path / "p*.csv", "--labels", 1, "-o", tmp_path / "model", "-m", "obr")
    assert told.exit_code == 0, told.output
    hues = ["amber", "3b", "9", "7", "blue"]
    asked = table(tmp_path / "asked.csv", hues)
    for where in ([], ["--scheduler", client.scheduler.address]):
        given = ["predict", str(tmp_path / "model"), str(asked), "--labels", "1", *where]
        assert sets(CliRunner().invoke(app, given)) == [{"y"} if hue == "3b" else set() for hue in hues]


def test_workers_predict_what_the_command_predicts(client, tmp_path, arrays):
    X, Y = arrays
    model = tmp_path / "model"
    CliRunner().invoke(app, ["train", str(write(tmp_path / "learned.csv", X, Y)), "-o", str(model)])
    swapped = tmp_path / "asked.csv"
    # Without labels, and with a column that the model does not know.
    order = [4, 2, 0, 5, 1, 3]
    lines = [",".join(["other", *(NAMES[column] for column in order)])]
    swapped.write_text("\n".join(lines + [",".join(map(str, [7, *row[order]])) for row in X]) + "\n")
    expected = [set(map(str, labels)) for labels in labelrace.load(model).predict_labels(X)]
    assert sets(command(client, "predict", model, swapped)) == expected
    data = Dataset(X[:, order], csr_array(Y), [NAMES[i] for i in order], LABELS, np.zeros(6, bool), "rows")
    found = predict(labelrace.load(model), data).compute()["labels"].tolist()
    assert [set(labels) for labels in found] == expected
    other = write(tmp_path / "other.csv", X, Y, names=[f"g{column}" for column in range(6)])
    told = command(client, "predict", model, other)
    assert told.exit_code == 1
    assert "other.csv must have the columns that the model has learned" in str(told.exception or told.output)


def test_workers_match_nominal_values_by_text(client, tmp_path):
    rows = "".join(f"{'red' if i % 2 else 'blue'},{i % 7},{i % 2}\n" for i in range(400))
    for name, values in (("learned", "blue,red"), ("asked", "red,blue")):
        header = f"@relation r\n@attribute c {{{values}}}\n@attribute z numeric\n@attribute l {{0,1}}\n@data\n"
        (tmp_path / f"{name}.arff").write_text(header + rows)
    model = tmp_path / "model"
    CliRunner().invoke(app, ["train", str(tmp_path / "learned.arff"), "--labels", "1", "-o", str(model)])
    found = sets(command(client, "predict", model, tmp_path / "asked.arff", "--labels", 1))
    assert found == [{"l"} if i % 2 else set() for i in range(400)]


def test_workers_match_numbered_features_by_number(client, tmp_path):
    X = (np.random.default_rng(0).random((600, 10)) < 0.3).astype(int)
    X[:, 9] = 1
    model = tmp_path / "model"
    CliRunner().invoke(app, ["train", str(svm(tmp_path / "learned.svm", X, X[:, 1:4])), "-o", str(model), "-m", "obr"])
    asked = np.hstack([X[X[:, 0] == 0], np.ones((int((X[:, 0] == 0).sum()), 1), int)])
    source = svm(tmp_path / "asked.svm", asked, asked[:, 1:4])
    local = sets(CliRunner().invoke(app, ["predict", str(model), str(source)]))
    assert sets(command(client, "predict", model, source)) == local
    assert (
        np.mean(
            [labels == {f"y{j}" for j in np.flatnonzero(row[1:4])} for labels, row in zip(local, asked, strict=True)]
        )
        > 0.9
    )
