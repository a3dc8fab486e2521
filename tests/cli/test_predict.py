"""``labelrace train`` and ``labelrace predict``."""

import csv
import json

import numpy as np
import pytest

import labelrace
from labelrace.base.sparse import dense
from labelrace.streams import Dataset, load_dataset, write_dataset

SUFFIXES = [".arff", ".csv", ".jsonl", ".svm", ".npz"]


def label_sets(text):
    return [json.loads(line)["labels"] for line in text.splitlines()]


def expected_sets(model, X, names):
    return [[name for name, present in zip(names, row, strict=True) if present] for row in dense(model.predict(X))]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_as_in_python(works, files, data, suffix):
    settings = ("-m", "race-cls-adaptive", "--batch-size", 50, "--seed", 4, "--set", "n_components=3")
    out = works("train", files(suffix), "-o", "model", *settings)
    assert out == "race-cls-adaptive learned 120 rows with 4 labels: model\n"
    read = load_dataset(files(suffix))
    model = labelrace.make_model("race-cls-adaptive", random_state=4, n_components=3)
    for X, Y in read.batches(50):
        model.partial_fit(X, Y)
    expected = expected_sets(model, read.X, data.label_names)
    assert label_sets(works("predict", "model", files(suffix))) == expected
    assert label_sets(works("predict", "model", files(suffix), "--batch-size", 7)) == expected
    loaded = labelrace.load("model")
    assert list(loaded.label_names_) == list(data.label_names)
    assert len({tuple(row) for row in expected}) > 1


@pytest.mark.parametrize("name", ["plst", "race-offline"])
def test_models_that_learn_all_at_once(works, files, data, name):
    works("train", files(".arff"), "-o", "model", "-m", name)
    settings = {"random_state": 0} if name == "race-offline" else {}
    model = labelrace.make_model(name, **settings).fit(data.X, data.Y)
    assert label_sets(works("predict", "model", files(".arff"))) == expected_sets(model, data.X, data.label_names)


def test_the_default_model(works, files):
    works("train", files(".arff"), "-o", "model")
    assert len(label_sets(works("predict", "model", files(".arff")))) == 120


def test_nominal_features_are_learned_as_such(works, tmp_path):
    rows = [f"{'red' if i % 3 else 'blue'},{i % 5},{int(i % 3 == 0)},{i % 2}" for i in range(60)]
    header = ["@relation r -C", "@attribute hue {red,blue}", "@attribute n numeric", "@attribute y {0,1}"]
    (tmp_path / "hues.arff").write_text("\n".join([*header, "@attribute z {0,1}", "@data", *rows]))
    works("train", "hues.arff", "--labels", 2, "-o", "model", "-m", "obr")
    data = load_dataset("hues.arff", 2)
    model = labelrace.make_model("obr", categorical_features=data.categorical)
    model.partial_fit(data.X, data.Y)
    out = works("predict", "model", "hues.arff", "--labels", 2)
    assert label_sets(out) == expected_sets(model, data.X, data.label_names)


def json_arrays(X):
    return "".join(json.dumps(row.tolist()) + "\n" for row in X)


def json_objects(X):
    rows = ({str(index): value for index, value in enumerate(row.tolist()) if value} for row in X)
    return "".join(json.dumps(row) + "\n" for row in rows)


def plain_csv(X):
    return "".join(",".join(map(str, row.tolist())) + "\n" for row in X)


@pytest.mark.parametrize(
    "text",
    [
        json_arrays,
        json_objects,
        plain_csv,
        lambda X: "size,age,rate,x 4,x5\n" + plain_csv(X),
        lambda X: "\n" + plain_csv(X).replace("\n", "\r\n\r\n"),
        lambda X: json_objects(X[:60]) + json_arrays(X[60:]),
        lambda X: json_arrays(X).removesuffix("\n"),
    ],
)
@pytest.mark.parametrize("size", [500, 7])
def test_standard_input(works, model_file, data, text, size):
    expected = expected_sets(labelrace.load(model_file), data.X, data.label_names)
    out = works("predict", model_file, "-", "--batch-size", size, stdin=text(data.X))
    assert [json.loads(line)["row"] for line in out.splitlines()] == list(range(120))
    assert label_sets(out) == expected


def test_objects_by_name_where_the_model_knows_names(works, data, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.X, columns=list(data.feature_names))
    model = labelrace.make_model("obr").partial_fit(frame, data.Y)
    model.save(tmp_path / "named")
    line = json.dumps(dict(zip(reversed(data.feature_names), data.X[3, ::-1].tolist(), strict=True)))
    names = [str(number) for number in range(4)]
    assert label_sets(works("predict", "named", "-", stdin=line)) == expected_sets(model, frame[3:4], names)


def test_objects_by_the_names_of_the_file_that_was_learned(works, files, data):
    works("train", files(".arff"), "-o", "model", "-m", "obr")
    line = json.dumps(dict(zip(reversed(data.feature_names), data.X[3, ::-1].tolist(), strict=True)))
    expected = label_sets(works("predict", "model", files(".arff")))[3:4]
    assert label_sets(works("predict", "model", "-", stdin=line)) == expected
    assert label_sets(works("predict", "model", "-", stdin=json_objects(data.X[3:4]))) == expected


def test_missing_values(works, model_file, data):
    expected = expected_sets(labelrace.load(model_file), np.array([[1, np.nan, 0, 0, 2]]), data.label_names)
    for line in ("[1, null, 0, 0, 2]", '{"0": 1, "1": null, "4": 2}', "1,,0,0,2", "1,nan,0,0,2"):
        assert label_sets(works("predict", model_file, "-", stdin=line)) == expected


def test_nothing_in_nothing_out(works, model_file):
    assert works("predict", model_file, "-", stdin="") == ""
    assert works("predict", model_file, "-", stdin="\n\n") == ""


@pytest.mark.parametrize("top", [1, 3, 99])
def test_the_best_labels(works, model_file, files, data, top):
    likely = labelrace.load(model_file).predict_proba(data.X)
    for line, row in zip(works("predict", model_file, files(".csv"), "--top", top).splitlines(), likely, strict=True):
        found = json.loads(line)
        assert len(found["labels"]) == min(top, 4)
        np.testing.assert_allclose(found["probabilities"], -np.sort(-row)[:top], rtol=1e-5)
        assert [data.label_names.index(name) for name in found["labels"]] == np.argsort(-row, kind="stable")[
            :top
        ].tolist()


def test_files_of_predictions(works, model_file, files, tmp_path):
    printed = works("predict", model_file, files(".arff"))
    assert works("predict", model_file, files(".arff"), "-o", "found.jsonl", "--batch-size", 50) == ""
    assert (tmp_path / "found.jsonl").read_text() == printed
    works("predict", model_file, files(".arff"), "-o", "found.csv", "--batch-size", 50)
    with (tmp_path / "found.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["labels"].split(";") if row["labels"] else [] for row in rows] == label_sets(printed)
    works("predict", model_file, files(".arff"), "-o", "found.csv", "--top", 2)
    header, first = (tmp_path / "found.csv").read_text().splitlines()[:2]
    assert header == "row,labels,probabilities"
    assert first.count(";") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.csv", "found.jsonl"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_an_error_leaves_the_old_file(refuses, model_file, tmp_path, suffix):
    path = tmp_path / f"found{suffix}"
    path.write_text("old")
    refuses("predict", model_file, "-", "-o", path, "--batch-size", 2, stdin="1,2,3,4,5\n" * 20 + "fish\n")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".arff", ".csv", ".jsonl"])
def test_rows_without_labels(works, model_file, data, tmp_path, suffix):
    """What is to be predicted has no labels as a rule."""
    if suffix == ".arff":
        header = ["@relation r", *(f"@attribute '{name}' numeric" for name in data.feature_names), "@data\n"]
        text = "\n".join(header) + plain_csv(data.X)
    elif suffix == ".csv":
        text = ",".join(data.feature_names) + "\n" + plain_csv(data.X)
    else:
        rows = (dict(zip(data.feature_names, row, strict=True)) for row in data.X.tolist())
        text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / f"new{suffix}").write_text(text)
    expected = expected_sets(labelrace.load(model_file), data.X, data.label_names)
    assert label_sets(works("predict", model_file, f"new{suffix}")) == expected


def test_svmlight_rows_without_labels(works, model_file, data, files, tmp_path):
    lines = files(".svm").read_text().splitlines()
    (tmp_path / "new.svm").write_text("".join(f" {line.partition(' ')[2]}\n" for line in lines))
    expected = expected_sets(labelrace.load(model_file), data.X, data.label_names)
    assert label_sets(works("predict", model_file, "new.svm")) == expected


def test_texts_mean_the_same_in_every_file(works, tmp_path):
    rows = [("blue", "1"), ("green", "0"), ("red", "1")] * 20
    (tmp_path / "old.csv").write_text("hue,n,y\n" + "".join(f"{hue},1,{y}\n" for hue, y in rows))
    works("train", "old.csv", "--labels", 1, "-o", "model", "-m", "obr")
    (tmp_path / "new.csv").write_text("hue,n,y\ngreen,1,0\nred,1,0\n")
    assert label_sets(works("predict", "model", "new.csv", "--labels", 1)) == [[], ["y"]]


def test_training_saves_what_comes_before_an_error(refuses, works, files, data, tmp_path):
    broken = Dataset(data.X.copy(), data.Y, data.feature_names, data.label_names, data.categorical, "broken")
    write_dataset(broken, tmp_path / "broken.csv")
    with (tmp_path / "broken.csv").open("a") as file:
        file.write("fish\n")
    told = refuses("train", "broken.csv", "-o", "model", "--batch-size", 20)
    assert "broken.csv, line 122: " in told
    assert "120 rows were learned and saved to model." in told
    works("train", files(".csv"), "-o", "whole", "--batch-size", 20)
    assert (tmp_path / "model").read_bytes() == (tmp_path / "whole").read_bytes()
    # Nothing before it: nothing is saved, and the old file stays.
    (tmp_path / "model").write_text("old")
    (tmp_path / "bad.svm").write_text("1 1:x\n")
    refuses("train", "bad.svm", "-o", "model")
    assert (tmp_path / "model").read_text() == "old"


def test_columns_are_matched_by_name(works, refuses, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 2)).round(3)
    (tmp_path / "t.csv").write_text("size,price,big\n" + "".join(f"{a},{b},{int(a > 0)}\n" for a, b in rows))
    works("train", "t.csv", "--labels", 1, "-o", "model", "-m", "obr")
    expected = label_sets(works("predict", "model", "t.csv", "--labels", 1))
    swapped = "price,other,size\n" + "".join(f"{b},7,{a}\n" for a, b in rows)
    (tmp_path / "q.csv").write_text(swapped)
    assert label_sets(works("predict", "model", "q.csv")) == expected
    assert label_sets(works("predict", "model", "-", stdin=swapped)) == expected
    # Labels that nobody has named are columns that the model does not know.
    assert label_sets(works("predict", "model", "t.csv")) == expected
    (tmp_path / "w.csv").write_text("colour,weight\n1,2\n")
    assert "must have the columns that the model has learned, but there is no 'size'" in refuses(
        "predict", "model", "w.csv"
    )
    assert "the header must name the model's features" in refuses("predict", "model", "-", stdin="colour,weight\n1,2\n")
    assert "must name the feature 'price'" in refuses("predict", "model", "-", stdin="size,weight\n1,2\n")


def test_values_of_nominal_features_are_matched_by_text(works, refuses, tmp_path):
    def arff(values, rows):
        header = f"@relation r\n@attribute c {{{values}}}\n@attribute z numeric\n@attribute l {{0,1}}\n@data\n"
        return header + "".join(f"{hue},{i % 7},{int(hue == 'red')}\n" for i, hue in enumerate(rows))

    hues = ["red", "blue", "blue", "red", "red"] * 40
    (tmp_path / "t.arff").write_text(arff("blue,red", hues))
    (tmp_path / "q.arff").write_text(arff("green,red,blue", hues))
    works("train", "t.arff", "--labels", 1, "-o", "model", "-m", "obr")
    expected = [["l"] if hue == "red" else [] for hue in hues]
    for name in ("t.arff", "q.arff"):
        assert label_sets(works("predict", "model", name, "--labels", 1)) == expected
    lines = "".join(json.dumps({"c": hue, "z": i % 7}) + "\n" for i, hue in enumerate(hues))
    assert label_sets(works("predict", "model", "-", stdin=lines)) == expected
    (tmp_path / "n.arff").write_text(arff("green,red,blue", ["red", "green"]))
    assert "column 'c' has a value that the model has not learned" in refuses(
        "predict", "model", "n.arff", "--labels", 1
    )
    (tmp_path / "n.csv").write_text("c,z\n3,4\n")
    refuses("predict", "model", "n.csv")


def test_numbered_features_keep_their_numbers(works, tmp_path):
    """A file in which feature 0 never occurs is not read one off, and features that are new are left out."""
    rng = np.random.default_rng(0)
    X = (rng.random((400, 11)) < 0.3).astype(int)
    X[:, 10] = 1

    def svm(rows):
        return "".join(
            ",".join(map(str, np.flatnonzero(row[:3]))) + " " + " ".join(f"{j}:1" for j in np.flatnonzero(row)) + "\n"
            for row in rows
        )

    (tmp_path / "t.svm").write_text(svm(X[:, :10]))
    works("train", "t.svm", "-o", "model", "-m", "obr")
    without = X[X[:, 0] == 0]
    (tmp_path / "q.svm").write_text(svm(without))
    expected = [[f"y{j}" for j in np.flatnonzero(row[:3])] for row in without]
    found = label_sets(works("predict", "model", "q.svm"))
    assert np.mean([a == b for a, b in zip(found, expected, strict=True)]) > 0.9


def test_the_delimiter_of_standard_input(works, model_file, data):
    commas = plain_csv(data.X)
    expected = label_sets(works("predict", model_file, "-", stdin=commas))
    semicolons = commas.replace(",", ";")
    assert label_sets(works("predict", model_file, "-", "--delimiter", ";", stdin=semicolons)) == expected
