"""Mistakes end with one sentence and an exit status."""

import pytest

RUN = ("run", "--jobs", 1, "--batch-size", 40)


@pytest.fixture(autouse=True)
def _no_datasets(monkeypatch, tmp_path):
    monkeypatch.setenv("LABELRACE_DATA", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "atlantis"),
        ("train", "atlantis", "-o", "model"),
        ("data", "info", "atlantis"),
        ("data", "convert", "atlantis", "toy.svm"),
        ("data", "fetch", "atlantis"),
    ],
)
def test_unknown_dataset(refuses, tmp_path, arguments):
    assert "'atlantis'" in refuses(*arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("run", "no.arff"), "no.arff"),
        (("train", "no.csv", "-o", "model"), "no.csv"),
        (("predict", "{model}", "no.csv"), "no.csv"),
        (("predict", "no.safetensors", "-"), "no.safetensors"),
        (("data", "info", "no.svm"), "no.svm"),
        (("report", "no"), "no is not the folder"),
    ],
)
def test_missing_file(refuses, model_file, arguments, name):
    assert name in refuses(*(text.format(model=model_file) for text in arguments))


@pytest.mark.parametrize("arguments", [("run", "--jobs", "1"), ("train", "-o", "model")])
def test_unknown_model(refuses, files, tmp_path, arguments):
    sentence = refuses(*arguments, files(".arff"), "-m", "rice")
    assert "'rice'" in sentence
    assert "race-cls-fixed" in sentence
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--measures", "happiness"), "happiness"),
        (("--measures", "micro_f1,"), "measure"),
        (("--protocol", "guess"), "'guess'"),
        (("--batch-size", "0"), "batch"),
        (("--runs", "0"), "runs must be a whole number of at least 1"),
        (("--jobs", "0"), "jobs must be a whole number of at least 1"),
        (("--resume",), "--out"),
        (("-m", "obr", "-m", "obr"), "obr"),
    ],
)
def test_mistakes_in_a_run(refuses, files, tmp_path, arguments, said):
    assert said in refuses("run", files(".arff"), *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("setting", "said"),
    [("n_rabbits=2", "n_rabbits"), ("alpha", "name=value"), ("=3", "name=value"), ("n_components=-1", "n_components")],
)
def test_wrong_parameters(refuses, files, tmp_path, setting, said):
    assert said in refuses("train", files(".arff"), "-o", "model", "-m", "race-cls-fixed", "--set", setting)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_empty(refuses, works, files, tmp_path):
    folder = tmp_path / "out"
    works(*RUN, files(".arff"), "-m", "negative", "--out", folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert "--resume" in refuses(*RUN, files(".arff"), "-m", "negative", "--out", folder)
    assert "other settings" in refuses(*RUN, files(".arff"), "-m", "obr", "--out", folder, "--resume")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_folder_of_something_else(refuses, files, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    assert "not empty" in refuses(*RUN, files(".arff"), "--out", tmp_path)
    assert "cannot resume" in refuses(*RUN, files(".arff"), "--out", tmp_path, "--resume")
    assert "not the folder of a run" in refuses("report", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


BROKEN = {
    "broken.arff": ("@relation r\n@attribute a numeric\n@attribute y {0,1}\n@data\n1,0\n\nfish,1\n", 7),
    "broken.csv": ("a,y\n1,0\n2,1\nfish,1\n", 4),
    "broken.svm": ("0 1:1\n0 1:2\n0 1:fish\n", 3),
    "broken.jsonl": ('{"a": 1, "labels": []}\n{"a": 1,\n', 2),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("arguments", [("run",), ("train", "-o", "new"), ("data", "info"), ("data", "convert")])
def test_broken_files_name_the_line(refuses, tmp_path, name, arguments):
    text, line = BROKEN[name]
    path = tmp_path / name
    path.write_text(text)
    labels = {"broken.arff": ("--labels", "1"), "broken.csv": ("--labels", "1"), "broken.jsonl": ("--labels", "labels")}
    target = ("new.npz",) if "convert" in arguments else ()
    told = refuses(*arguments, path, *target, *labels.get(name, ()))
    assert f"{name}, line {line}: " in told
    saved = ["new"] if "learned and saved to" in told else []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, *saved])


def test_broken_file_to_predict(refuses, tmp_path, model_file, files):
    lines = files(".csv").read_text().splitlines()
    lines[60] = lines[60].replace(",", ",fish", 1)
    (tmp_path / "broken.csv").write_text("\n".join(lines))
    arguments = ("predict", model_file, "broken.csv", "--labels", "4", "--batch-size", 10)
    assert "broken.csv, line 61: " in refuses(*arguments, "-o", "new.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["broken.csv"]


@pytest.mark.parametrize("labels", ["no.xml", "wrong.xml", "other.xml", "9", "-9", "pope", "new,pope", "pope_*"])
def test_wrong_labels(refuses, files, tmp_path, labels):
    (tmp_path / "wrong.xml").write_text("<labels><label name='new'")
    (tmp_path / "other.xml").write_text(
        '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="pope"></label></labels>'
    )
    for suffix in (".arff", ".csv"):
        sentence = refuses("run", files(suffix), "--labels", labels)
        assert any(text in sentence for text in (labels, "pope", "labels", "columns"))


@pytest.mark.parametrize("suffix", [".arff", ".npz", ".jsonl"])
def test_predicting_with_a_file_that_is_no_model(refuses, files, suffix):
    assert f"toy{suffix} is not a labelrace model" in refuses("predict", files(suffix), files(".arff"))


def test_predicting_with_a_damaged_model(refuses, model_file, files, tmp_path):
    content = bytearray(model_file.read_bytes())
    content[-10] ^= 1
    (tmp_path / "damaged").write_bytes(content)
    (tmp_path / "cut").write_bytes(content[:-100])
    (tmp_path / "empty").write_bytes(b"")
    for name in ("damaged", "cut", "empty"):
        assert name in refuses("predict", name, files(".arff"))


def test_wrong_number_of_features(refuses, command, model_file, tmp_path):
    (tmp_path / "narrow.csv").write_text("a,b,y\n1,2,0\n")
    sentence = refuses("predict", model_file, "narrow.csv", "--labels", "y")
    assert "2 features" in sentence
    assert "5 features" in sentence
    status, out, err = command("predict", model_file, "-", stdin="[1, 2, 3, 4, 5]\n\n[1, 2]\n")
    assert (status, err) == (1, "Error: standard input, line 3: 2 values, but the model has 5 features.\n")
    assert out.count("\n") == 1  # the row before it
    assert "line 2: 3 values" in command("predict", model_file, "-", stdin="1,2,3,4,5\n1,2,3\n").err


@pytest.mark.parametrize(
    "line",
    [
        *('{"size": 1', "[1, 2", "[1, 2, 3, 4, fish]", '[1, 2, 3, 4, "fish"]', "[[1], 2, 3, 4, 5]", "[1, 2, 3, 4, {}]"),
        *('{"pope": 1}', '{"0": []}', '{"9": 1}', "[1, 2, 3, 4, 5] 6", "null", "7", '"text"', "[" * 100_000),
        *("[1, 2, 3, 4, 1" + 400 * "0" + "]", "[1, 2, 3, 4, 1e999]", '{"0": Infinity}'),
    ],
)
def test_bad_lines_of_json(refuses, model_file, line):
    stdin = f"[1, 2, 3, 4, 5]\n{line}\n"
    assert "standard input, line 2: " in refuses("predict", model_file, "-", "-o", "new.csv", stdin=stdin)


@pytest.mark.parametrize(
    "line", ["1,2,3,4,fish", "1,2,3,4,5,6", "1,2,3,4,-inf", "1,2,3,4," + 200_000 * "5", "1;2;3;4;5"]
)
def test_bad_lines_of_csv(refuses, model_file, line):
    stdin = f"1,2,3,4,5\n{line}\n"
    assert "standard input, line 2: " in refuses("predict", model_file, "-", "-o", "new.csv", stdin=stdin)


@pytest.mark.parametrize("line", ["1,2,3,4,fish", "1 2 3 4 5", "size,age", "\x00", "inf,inf,inf,inf,inf"])
def test_a_first_line_that_is_no_header(refuses, model_file, line):
    assert "standard input, line 1: " in refuses("predict", model_file, "-", stdin=f"{line}\n1,2,3,4,5\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--top", "0"), "--top must be"),
        (("--batch-size", "0"), "batch size"),
        (("--batch-size", "-2"), "batch size"),
        (("-o", "new.txt"), ".csv or .jsonl"),
        (("-o", "no/new.csv"), "folder"),
    ],
)
def test_mistakes_in_predicting(refuses, model_file, files, arguments, said):
    assert said in refuses("predict", model_file, files(".arff"), *arguments)
    assert said in refuses("predict", model_file, "-", *arguments, stdin="[1, 2, 3, 4, 5]\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--like", "atlantis"), "atlantis"),
        (("--drift", "sideways"), "drift"),
        (("--rows", "0"), "n_rows"),
        (("--labels", "3", "--cardinality", "7"), "cardinality"),
    ],
)
def test_mistakes_in_making_data(refuses, tmp_path, arguments, said):
    assert said in refuses("data", "make", "new.arff", *arguments)
    assert "'.doc'" in refuses("data", "make", "new.doc", "--rows", "10")
    assert list(tmp_path.iterdir()) == []


def test_files_that_cannot_be_written(refuses, files, tmp_path):
    assert "no" in refuses("train", files(".arff"), "-o", "no/model", "-m", "negative")
    assert "read only" in refuses("data", "convert", files(".arff"), "new.mat")
    (tmp_path / "folder").mkdir()
    assert "folder" in refuses("train", files(".arff"), "-o", "folder", "-m", "negative")


def test_unknown_format_of_a_report(refuses, works, files):
    works(*RUN, files(".arff"), "-m", "negative", "--out", "out")
    assert "'docx'" in refuses("report", "out", "-f", "docx")


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("data", "frobnicate"),
        ("train", "toy.arff"),
        ("predict",),
        ("run", "--frob"),
        ("run", "a", "b"),
    ],
)
def test_wrong_calls(command, arguments):
    status, out, err = command(*arguments)
    assert (status, out) == (2, "")
    assert "Error" in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback(monkeypatch):
    from labelrace.cli.main import main
    from labelrace.exceptions import DataFormatError

    monkeypatch.setattr("sys.argv", ["labelrace", "--debug", "run", "no.arff"])
    with pytest.raises((FileNotFoundError, DataFormatError), match=r"no\.arff"):
        main()


def test_a_defect_shows_its_traceback(monkeypatch, command):
    def broken(*_, **__):
        raise RuntimeError("a defect")

    monkeypatch.setattr("labelrace.evaluation.run", broken)
    with pytest.raises(RuntimeError, match="a defect"):
        command("run")


def test_the_sentence_of_another_library(refuses, files, tmp_path):
    (tmp_path / "holes.csv").write_text("a,b,y\n1,,0\n2,3,1\n")
    sentence = refuses("train", "holes.csv", "--labels", 1, "-o", "model", "-m", "plst")
    assert sentence == "Input X contains NaN. Nothing was learned, and no file was written."
