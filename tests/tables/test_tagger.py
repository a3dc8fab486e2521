"""From a table to tags, and on."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import labelrace
from labelrace import Tagger
from labelrace.exceptions import DataFormatError, ModelFileError
from labelrace.tables import text_tables

TOPICS = {
    "oven": "oven hot door bake temperature",
    "toaster": "toaster bread slice crumb lever",
    "fridge": "fridge cold ice freezer shelf",
    "bill": "invoice price pay money refund",
}
FILLER = [f"filler{i}" for i in range(40)]


def tickets(n, seed=0, separator="; "):
    """Make rows whose tags can be told from their words."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        tags = rng.choice(list(TOPICS), rng.integers(1, 3), replace=False)
        words = [word for tag in tags for word in rng.choice(TOPICS[tag].split(), 3)] + list(rng.choice(FILLER, 4))
        rng.shuffle(words)
        rows.append(
            {
                "ticket": f"T-{1000 + i}",
                "body": " ".join(words),
                "product": str(tags[0]) if tags[0] != "bill" else "",
                "tags": separator.join(tags),
            }
        )
    return rows


def sets(rows, separator="; "):
    return [set(row["tags"].split(separator)) for row in rows]


@pytest.fixture(scope="module")
def trained():
    return Tagger(tags="tags", random_state=0).fit(tickets(1000))


NEW = tickets(200, seed=1)


def copy_of(tagger, folder):
    tagger.save(folder / "copy.labelrace")
    return labelrace.load(folder / "copy.labelrace")


def test_a_tagger_learns_to_tag(trained):
    assert {column.name: column.kind for column in trained.columns_} == {
        "ticket": "identifier",
        "body": "text",
        "product": "category",
    }
    assert trained.separator_ == ";"
    assert trained.score(NEW) > 0.9
    assert trained.predict(NEW) == trained.predict([{k: row[k] for k in row if k != "tags"} for row in NEW])
    assert trained.n_rows_ == 1000
    assert sum(count.rows for count in trained.tags_.values()) == sum(map(len, sets(tickets(1000))))


def test_probabilities_have_names(trained):
    top = trained.predict_top(NEW, 2)
    everything = trained.predict_proba(NEW)
    assert all(len(row) == 2 and row[0][1] >= row[1][1] for row in top)
    assert all(row.keys() == TOPICS.keys() for row in everything)
    assert all(everything[i][tag] == likely for i, row in enumerate(top) for tag, likely in row)
    assert np.mean([row[0][0] in tags for row, tags in zip(top, sets(NEW), strict=True)]) > 0.95


@pytest.mark.parametrize("separator", ["; ", "|", ", ", " "])
def test_separators_are_found(separator):
    tagger = Tagger(tags="tags").partial_fit(tickets(300, separator=separator))
    assert tagger.separator_ == separator.strip() or separator
    assert tagger.tags_.keys() == TOPICS.keys()


def test_tags_in_every_form_teach_the_same(trained):
    rows = tickets(1000)
    bare = [{name: row[name] for name in row if name != "tags"} for row in rows]
    expected = trained.predict_top(NEW, 4)
    truths = {tag: [int(tag in tags) for tags in sets(rows)] for tag in sorted(TOPICS)}
    forms = {
        "sets": (Tagger(random_state=0), bare, sets(rows)),
        "lists": (Tagger(random_state=0), bare, [sorted(tags) for tags in sets(rows)]),
        "texts": (Tagger(random_state=0), bare, [row["tags"] for row in rows]),
        "column of lists": (
            Tagger("tags", random_state=0),
            [{**r, "tags": sorted(s)} for r, s in zip(bare, sets(rows), strict=True)],
            None,
        ),
        "JSON": (
            Tagger("tags", random_state=0),
            [{**r, "tags": str(sorted(s)).replace("'", '"')} for r, s in zip(bare, sets(rows), strict=True)],
            None,
        ),
        "frame of truths": (Tagger(random_state=0), bare, pd.DataFrame(truths)),
        "columns of truths": (Tagger(sorted(TOPICS), random_state=0), pd.DataFrame(bare).assign(**truths), None),
    }
    for form, (tagger, X, y) in forms.items():
        tagger.fit(X, y)
        found = tagger.predict_top([{name: row[name] for name in row if name != "tags"} for row in NEW], 4)
        assert tagger.tags_.keys() == TOPICS.keys(), form
        assert np.mean([a[0][0] == b[0][0] for a, b in zip(found, expected, strict=True)]) > 0.97, form


def test_a_saved_tagger_goes_on_as_if_it_had_not_been_saved(trained, tmp_path):
    one, two = copy_of(trained, tmp_path), copy_of(trained, tmp_path)
    assert two.predict_top(NEW, 4) == trained.predict_top(NEW, 4)
    assert two.columns_ == trained.columns_
    assert two.tags_ == trained.tags_
    one.partial_fit(NEW)
    two.save(tmp_path / "again.labelrace")
    three = labelrace.load(tmp_path / "again.labelrace").partial_fit(NEW)
    assert one.predict_top(NEW, 4) == three.predict_top(NEW, 4)


def test_new_tags_and_words_are_learned(trained, tmp_path):
    tagger = copy_of(trained, tmp_path)
    tagger.partial_fit(
        [{"body": f"kettle boils water {FILLER[i % 40]}", "product": "kettle", "tags": "kettle"} for i in range(60)]
    )
    assert "kettle" in tagger.tags_
    assert tagger.predict_top([{"body": "kettle boils", "product": "kettle"}], 1)[0][0][0] == "kettle"


def test_explain_names_words_and_values(trained):
    told = trained.explain({"body": "the oven is hot", "product": "oven"})
    assert "oven" in told
    names = [name for name, _ in told["oven"]]
    assert {"body: oven", "body: hot", "product=oven"} & set(names[:3])
    assert trained.explain(pd.DataFrame([NEW[0]])).keys() == trained.predict([NEW[0]])[0]
    assert trained.explain(pd.DataFrame([NEW[0]]).iloc[0]) == trained.explain(NEW[0])
    assert trained.explain({"body": "nothing known", "product": ""})  # the most likely ones, where none is predicted
    assert list(trained.explain(NEW[0], tags=["bill"], n_words=2)) == ["bill"]
    with pytest.raises(ValueError, match="got 'boat'"):
        trained.explain(NEW[0], tags=["boat"])
    with pytest.raises(ValueError, match="one row, got 2"):
        trained.explain(NEW[:2])


def test_rename(trained, tmp_path):
    tagger = copy_of(trained, tmp_path)
    tagger.rename_labels({"oven": "cooker", "bill": "payment"})
    renamed = {"oven": "cooker", "bill": "payment"}
    assert tagger.predict(NEW) == [{renamed.get(tag, tag) for tag in tags} for tags in trained.predict(NEW)]
    assert tagger.tags_["cooker"] == trained.tags_["oven"]
    # Rows that still have the old name teach the new one.
    tagger.partial_fit(NEW)
    assert tagger.tags_.keys() == {"cooker", "payment", "toaster", "fridge"}
    assert set(tagger.model_.label_names_) == tagger.tags_.keys()
    assert tagger.explain({"body": "the oven is hot", "product": "oven"}, tags=["cooker"])["cooker"]
    with pytest.raises(ValueError, match="got 'boat'"):
        tagger.rename_labels({"boat": "ship"})
    with pytest.raises(ValueError, match="merge_labels"):
        tagger.rename_labels({"cooker": "fridge"})


@pytest.mark.parametrize("into", ["oven", "appliance"])
def test_merge(trained, tmp_path, into):
    tagger = copy_of(trained, tmp_path)
    tagger.merge_labels(["oven", "toaster"], into=into)
    merged = {"oven": into, "toaster": into}
    assert tagger.predict(NEW) == [{merged.get(tag, tag) for tag in tags} for tags in trained.predict(NEW)]
    assert tagger.tags_.keys() == {into, "fridge", "bill"}
    assert tagger.tags_[into].rows == sum(not tags.isdisjoint({"oven", "toaster"}) for tags in sets(tickets(1000)))
    top = tagger.predict_top(NEW, 3)
    assert all({tag for tag, _ in row} == {into, "fridge", "bill"} for row in top)
    assert tagger.score(NEW) > 0.9
    tagger.partial_fit(NEW)
    again = copy_of(tagger, tmp_path)
    assert again.predict_top(NEW, 3) == tagger.predict_top(NEW, 3)
    assert again.tags_.keys() == {into, "fridge", "bill"}
    assert list(tagger.explain({"body": "the toaster", "product": ""}, tags=[into])) == [into]
    with pytest.raises(ValueError, match="boat"):
        tagger.merge_labels(["boat"], into="fridge")


def test_drop(trained, tmp_path):
    tagger = copy_of(trained, tmp_path)
    tagger.drop_labels(["bill"])
    assert tagger.predict(NEW) == [tags - {"bill"} for tags in trained.predict(NEW)]
    assert all("bill" not in row for row in tagger.predict_proba(NEW))
    tagger.partial_fit(NEW)
    assert "bill" not in tagger.tags_
    assert copy_of(tagger, tmp_path).predict(NEW) == tagger.predict(NEW)
    with pytest.raises(ValueError, match="bill"):
        tagger.drop_labels(["bill"])


def test_rows_without_tags():
    rows = tickets(400) + [{**row, "tags": ""} for row in tickets(400, seed=5)]
    unknown = Tagger(tags="tags", random_state=0).fit(rows)
    none = Tagger(tags="tags", untagged="none", random_state=0).fit(rows)
    assert (unknown.n_rows_, none.n_rows_) == (400, 800)
    assert unknown.score(NEW) > none.score(NEW) + 0.05
    nothing = Tagger(tags="tags").partial_fit([{**row, "tags": None} for row in tickets(5)])
    assert not nothing.is_fitted
    with pytest.raises(ValueError, match="untagged must be one of 'unknown', 'none', got 'no'"):
        Tagger(tags="tags", untagged="no").fit(rows)


def test_rows_are_predicted_before_they_are_learned():
    tagger = Tagger(tags="tags", batch_size=100, random_state=0)
    rows = tickets(600)
    predicted = tagger.prequential_fit(rows)
    assert predicted[:100] == [set()] * 100
    assert tagger.quality_["rows"] == 500
    truth = sets(rows)
    expected = np.mean([2 * len(t & p) / (len(t) + len(p)) for t, p in zip(truth[100:], predicted[100:], strict=True)])
    assert tagger.quality_["example_f1"] == pytest.approx(expected)
    hits = sum(len(t & p) for t, p in zip(truth[100:], predicted[100:], strict=True))
    sizes = sum(len(t) + len(p) for t, p in zip(truth[100:], predicted[100:], strict=True))
    assert tagger.quality_["micro_f1"] == pytest.approx(2 * hits / sizes)
    # It is the same as to predict and to learn by turns.
    by_turns, found = Tagger(tags="tags", random_state=0), []
    for start in range(0, 600, 100):
        batch = rows[start : start + 100]
        found += by_turns.predict(batch) if start else [set()] * 100
        by_turns.partial_fit(batch)
    assert found == predicted


def test_files_are_read_in_every_form(tmp_path):
    frame = pd.DataFrame(tickets(300))
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "a.parquet")
    expected = Tagger(tags="tags", random_state=0).fit(frame).predict_top(NEW, 4)
    for name in ("a.csv", "a.tsv", "a.jsonl", "a.parquet"):
        tagger = Tagger(tags="tags", random_state=0).fit(tmp_path / name)
        assert tagger.predict_top(NEW, 4) == expected, name
        assert tagger.predict(str(tmp_path / name)) == tagger.predict(frame)


def test_any_online_model_can_be_inside(tmp_path):
    for model in ("race", "majority", labelrace.LabelRaceClassifier(optimise="micro_f1")):
        tagger = Tagger(tags="tags", model=model, random_state=0).fit(tickets(300))
        assert copy_of(tagger, tmp_path).predict(NEW) == tagger.predict(NEW)
        assert repr(clone(tagger)) == repr(tagger)
    with pytest.raises(ValueError, match="'majority' cannot explain"):
        Tagger(tags="tags", model="majority").fit(tickets(30)).explain(NEW[0])
    with pytest.raises(ValueError, match="model must be one of labelrace's online classifiers"):
        Tagger(tags="tags", model="sklearn.dummy:DummyClassifier").fit(tickets(30))


def test_an_encoder_is_named_in_the_file_and_asked_for_again(tmp_path):
    def topics(texts):
        return [[float(word in text) for word in TOPICS] for text in texts]

    tagger = Tagger(tags="tags", encoders={"body": topics}, encoders_only=True, random_state=0).fit(tickets(300))
    assert tagger.score(NEW) > 0.4
    tagger.save(tmp_path / "a.labelrace")
    with pytest.raises(ModelFileError, match=r"column 'body' with the encoder '.*topics', .* encoders="):
        labelrace.load(tmp_path / "a.labelrace")
    again = labelrace.load(tmp_path / "a.labelrace", encoders={"body": topics})
    assert again.predict_top(NEW, 4) == tagger.predict_top(NEW, 4)
    for other in (lambda texts: np.ones((len(texts), 2)), lambda texts: np.ones((len(texts), 9))):
        another = labelrace.load(tmp_path / "a.labelrace", encoders={"body": other})
        with pytest.raises(ValueError, match="'body' must give 4 numbers for a text, as it did when they were learned"):
            another.predict(NEW)


def test_errors_leave_the_tagger_as_it_was(trained):
    before = trained.predict_top(NEW, 4)
    wrong = [{**row, "tags": row["tags"]} for row in NEW]
    with pytest.raises(ValueError, match="must have the column 'tags'"):
        trained.partial_fit([{"body": "x"}])
    with pytest.raises(ValueError, match="'body' must hold what it is read as"):
        trained.partial_fit([{**row, "body": ["x"]} for row in wrong])
    with pytest.raises(ValueError, match="same number of rows, got 200 and 1"):
        trained.partial_fit(NEW, [{"oven"}])
    with pytest.raises(ValueError, match="y must be the tags of each row"):
        trained.partial_fit(NEW, np.zeros((200, 4)))
    assert trained.predict_top(NEW, 4) == before
    with pytest.raises(ValueError, match="or tags= the name of the column"):
        Tagger().fit(NEW)
    with pytest.raises(ValueError, match="'oven' must hold 0 and 1, got 2"):
        Tagger(tags=["oven"]).fit([{"body": "x", "oven": 2}])
    with pytest.raises(NotFittedError):
        Tagger().predict(NEW)


class Recording(labelrace.LabelRaceClassifier):
    """Keeps which columns it is told to forget."""

    told: ClassVar[list[list[int]]] = []

    def reset_features(self, columns):
        self.told.append(list(columns))
        return super().reset_features(columns)


def test_the_model_is_told_which_columns_stand_for_other_words():
    tagger = Tagger("tags", text="body", model=Recording(), max_features=2, skip_known=False, random_state=0)
    tagger.partial_fit([{"body": "old ones", "tags": "a"}, {"body": "ones", "tags": "b"}])
    tagger.partial_fit([{"body": "ones", "tags": "b"}] * 1500)
    assert not Recording.told
    tagger.partial_fit([{"body": "young ones", "tags": "a"}])
    assert Recording.told == [[0]]
    assert {name for name, _ in tagger.explain({"body": "old young ones"}, tags=["a"])["a"]} <= {
        "body: young",
        "body: ones",
    }


def test_a_column_that_is_used_again_knows_nothing_of_the_word_before(tmp_path):
    rng = np.random.default_rng(0)
    X = scipy.sparse.csr_array(rng.random((1200, 60)) * (rng.random((1200, 60)) < 0.08))
    Y = (X.toarray()[:, :3] > 0).astype(int)
    model = labelrace.LabelRaceClassifier(random_state=0).partial_fit(X, Y)
    rows, nothing = scipy.sparse.csr_array(np.eye(60)), scipy.sparse.csr_array((1, 60))
    before, blank = model.decision_function(rows), model.decision_function(nothing)[0]
    assert abs(before[1, 1] - blank[1]) > 0.1
    model.save(tmp_path / "model")
    # One that was just loaded has its weights in another form.
    for one in (labelrace.load(tmp_path / "model"), model):
        one.reset_features([1])
        after = one.decision_function(rows)
        np.testing.assert_array_equal(np.delete(after, 1, axis=0), np.delete(before, 1, axis=0))
        np.testing.assert_allclose(after[1], blank)
        one.partial_fit(X, Y)
        assert one.decision_function(rows)[1, 1] > blank[1] + 0.1


def test_rows_of_the_warm_up_buffer_forget_a_column_that_is_used_again():
    rng = np.random.default_rng(0)
    X = scipy.sparse.csr_array(rng.random((200, 60)) * (rng.random((200, 60)) < 0.08))
    Y = (X.toarray()[:, :3] > 0).astype(int)
    X.data = np.where(X.indices == 1, 1.0, X.data)
    blank = X.copy()
    blank.data = np.where(X.indices == 1, 0.0, X.data)
    # The second batch makes the rows enough for all to be learned exactly, once more.
    model = labelrace.LabelRaceClassifier(random_state=0).partial_fit(X[:100], Y[:100])
    model.reset_features([1]).partial_fit(blank[100:], Y[100:])
    row = scipy.sparse.csr_array(np.eye(60)[[1]])
    np.testing.assert_allclose(model.decision_function(row), model.decision_function(row * 0), atol=1e-6)


def test_a_column_of_dense_data_that_is_used_again_has_no_weight():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 6))
    Y = (X[:, :3] > 0).astype(int)
    model = labelrace.LabelRaceClassifier(random_state=0).partial_fit(X, Y)
    known = abs(np.corrcoef(model.decision_function(X)[:, 1], X[:, 1])[0, 1])
    forgotten = abs(np.corrcoef(model.reset_features([1]).decision_function(X)[:, 1], X[:, 1])[0, 1])
    assert known > 0.9
    assert forgotten < 0.3
    # A batch tells how wide the new column is, the next ones what it means.
    again = model.partial_fit(X, Y).partial_fit(X, Y).decision_function(X)[:, 1]
    assert np.corrcoef(again, X[:, 1])[0, 1] > 0.8


def test_polars(trained):
    polars = pytest.importorskip("polars", reason="polars is not installed; it is too large for the development tools")
    frame = polars.DataFrame(NEW).with_columns(
        when=polars.lit("2024-05-06").str.to_date(),
        price=polars.Series([1.5, None] * 100),
        kind=polars.Series(["a"] * 200, dtype=polars.Categorical),
    )
    listed = [
        {**row, "when": "2024-05-06", "price": price, "kind": "a"}
        for row, price in zip(NEW, [1.5, None] * 100, strict=True)
    ]
    one, two = (Tagger(tags="tags", random_state=0).fit(table) for table in (frame, listed))
    assert [(column.name, column.kind) for column in one.columns_] == [(c.name, c.kind) for c in two.columns_]
    assert one.predict(frame.drop("tags")) == two.predict(listed)
    with pytest.warns(UserWarning, match="new are ignored"):
        assert trained.predict(frame) == trained.predict(NEW)


@pytest.mark.parametrize(
    ("first", "rest", "wrong"),
    [
        ("size,hue", "1,red", "2"),
        ('{"size": "1", "hue": "red"}', None, "{"),
        ('{"size": "1", "hue": "red"}', None, '{"size": NaN}'),
        ('{"size": "1", "hue": "red"}', None, '{"hue": "\udce9"}'),
    ],
)
def test_rows_of_standard_input_above_an_error_are_delivered(first, rest, wrong):
    lines = [first, *([rest] if rest else []), wrong]
    tables = text_tables((f"{line}\n" for line in lines), 10)
    assert next(tables).columns == {"size": ["1"], "hue": ["red"]}
    with pytest.raises(DataFormatError, match="standard input, line"):
        next(tables)


@pytest.mark.parametrize("optimise", ["cardinality", "macro_f1"])
def test_predicted_tags_with_their_probabilities(optimise, monkeypatch):
    """Also of rows times tags that are too many for an array of them all; tags may have thresholds of their own."""
    model = labelrace.make_model("race", optimise=optimise, random_state=0)
    tagger = Tagger(tags="tags", model=model, random_state=0).fit(tickets(1000))
    likely = tagger.predict_proba(NEW)
    expected = [
        {tag: chances[tag] for tag in sorted(tags, key=lambda tag: -chances[tag])}
        for tags, chances in zip(tagger.predict(NEW), likely, strict=True)
    ]
    monkeypatch.setenv("LABELRACE_MAX_SCORES", "100")
    found = [one.tags for one in tagger.suggest(NEW)]
    assert [row.keys() for row in found] == [row.keys() for row in expected]
    for one, other in zip(found, expected, strict=True):
        assert list(one.values()) == pytest.approx(list(other.values()))
        assert list(one.values()) == sorted(one.values(), reverse=True)


def test_columns_of_0_and_1_say_that_a_row_has_no_tags():
    """Rows where they are all missing are not learned."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 2))
    hot = pd.Series(np.where(x[:, 0] > 1, 1.0, 0.0))
    hot[:100] = np.nan
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "hot": hot})
    tagger = Tagger(["hot"], random_state=0).fit(table[:1000])
    assert tagger.n_rows_ == 900
    share = np.mean([bool(tags) for tags in tagger.predict(table[1000:].drop(columns="hot"))])
    assert share < 2 * hot[1000:].mean()


def test_tags_that_were_written_as_python_lists():
    rows = [{**row, "tags": str(row["tags"].split("; "))} for row in tickets(300)]
    assert Tagger(tags="tags", random_state=0).fit(rows).tags_.keys() == TOPICS.keys()


def test_tags_that_look_like_several_are_told_of():
    tagger = Tagger(tags="tags", random_state=0).partial_fit(tickets(100))
    rows = tickets(100, seed=2, separator=", ")
    # Split at the comma, they are tags that are known.
    with pytest.raises(ValueError, match="must be separated by ';', as those learned before, got ','"):
        tagger.partial_fit(rows)
    with pytest.warns(UserWarning, match="Many tags hold ',': give the separator"):
        tagger.partial_fit([{**row, "tags": row["tags"].replace("e", "ee")} for row in rows])


@pytest.mark.parametrize("max_features", [2**18, 150])
def test_a_batch_is_tested_by_what_predict_says_before_it(max_features):
    tagger = Tagger("tags", text="body", number="size", max_features=max_features, random_state=0)
    for epoch in range(8):
        # Words that never come again, and a number that is missing at first.
        rng = np.random.default_rng(epoch)
        batch = [
            {
                "body": " ".join(f"w{epoch}x{k}x{j}" for j in rng.integers(0, 30, 6)) + f" stay{k}",
                "size": None if epoch < 2 else 10.0 * k,
                "tags": [f"t{k}"],
            }
            for k in rng.integers(4, size=500).tolist()
        ]
        # The first rows are learned in smaller parts.
        size = 100 if epoch < 4 else 500
        for part in (batch[start : start + size] for start in range(0, 500, size)):
            told = tagger.predict(part) if tagger.is_fitted else [set() for _ in part]
            assert tagger.prequential_fit(part) == told


def test_score_is_that_of_classifiers():
    """Against scikit-learn's accuracy, and the score of the model inside on the same rows."""
    from sklearn.metrics import accuracy_score
    from sklearn.preprocessing import MultiLabelBinarizer

    tagger = Tagger(tags="tags", model="obr", random_state=0).fit(tickets(100))
    truth = [set(row["tags"].split("; ")) for row in NEW]
    binarizer = MultiLabelBinarizer().fit(truth)
    expected = accuracy_score(binarizer.transform(truth), binarizer.transform(tagger.predict(NEW)))
    assert tagger.score(NEW) == expected < 1
    features = tagger.new_features().restore(tagger.state.features)
    untagged = [{name: row[name] for name in row if name != "tags"} for row in NEW]
    assert tagger.model_.score(features.transform(untagged), truth) == expected


def test_tags_on_lines_of_a_cell():
    """As people write several values into a cell of a spreadsheet."""
    rows = [{"body": f"about {i}", "tags": ["log in\nmobile app", "mobile app\r\n", "bill"][i % 3]} for i in range(60)]
    tagger = Tagger("tags", random_state=0).partial_fit(rows)
    assert tagger.tags_.keys() == {"log in", "mobile app", "bill"}
    assert tagger.separator_ == "\n"
