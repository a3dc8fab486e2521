"""Tables become matrices: the kinds of their columns, and what may change later."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from labelrace.tables import TableFeatures

ROWS = [
    {"id": i, "body": text, "product": product, "price": price, "when": when, "urgent": i % 2 == 0}
    for i, (text, product, price, when) in enumerate(
        [
            ("The oven is too hot", "oven", 100.0, "2024-01-01 10:00"),
            ("My toaster does not heat", "toaster", 20.0, "2024-01-02 11:30"),
            ("The oven door is broken", "oven", 110.0, "2024-02-06 12:00"),
            ("A hot toaster and a cold oven", "toaster", None, "2024-03-01 10:15"),
        ]
    )
]
KINDS = {
    "id": "identifier",
    "body": "text",
    "product": "category",
    "price": "number",
    "when": "date",
    "urgent": "boolean",
}


def fitted(**parameters):
    return TableFeatures(**{"min_rows": 1, **parameters}).fit(ROWS)


def named(features, X, row=0):
    row = X[[row]]
    return dict(zip(features.get_feature_names_out()[row.indices], row.data, strict=True))


def test_scikit_learns_checks():
    check_estimator(TableFeatures(), on_skip=None)


def test_the_kinds_of_columns_are_found():
    assert {column.name: column.kind for column in fitted().columns_} == KINDS


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pa.Table.from_pylist,
        lambda rows: pa.RecordBatch.from_pylist(rows),
        lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
        lambda rows: pd.DataFrame(rows).convert_dtypes(),
    ],
)
def test_any_kind_of_table_gives_the_same_matrix(make):
    expected = fitted()
    features = TableFeatures(min_rows=1).fit(make(ROWS))
    # Texts tell the decimal sign, too.
    assert [column._replace(decimal=None) for column in features.columns_] == list(expected.columns_)
    np.testing.assert_allclose(features.transform(make(ROWS)).toarray(), expected.transform(ROWS).toarray())


def test_a_csv_read_as_text_gives_the_same_matrix():
    texts = [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in ROWS]
    expected = fitted()
    features = TableFeatures(min_rows=1).fit(texts)
    # Texts tell the decimal sign, too.
    assert [column._replace(decimal=None) for column in features.columns_] == list(expected.columns_)
    np.testing.assert_allclose(features.transform(texts).toarray(), expected.transform(ROWS).toarray())


def test_words_are_weighted_by_the_rows_before():
    features = TableFeatures(text="body", min_rows=1)
    first = features.partial_fit_transform([{"body": "oven oven door"}, {"body": "oven"}])
    counts = np.array([1 + np.log(2), 1.0])
    np.testing.assert_allclose(sorted(first[[0]].data), sorted(counts / np.linalg.norm(counts)))
    second = named(features, features.partial_fit_transform([{"body": "oven door"}]))
    # Two rows before; the oven was in both of them, the door in one.
    weights = np.sqrt(1 + np.log(3 / np.array([3, 2])))
    weights /= np.linalg.norm(weights)
    assert second == pytest.approx({"body: oven": weights[0], "body: door": weights[1]})


def test_a_word_of_a_long_text_gets_a_column_when_it_has_been_in_three_rows():
    long = " ".join(["filler"] * 30)
    features = TableFeatures(text=["title", "body"])
    X = features.partial_fit_transform(
        [{"title": "oven", "body": f"door {long}"}, {"title": "", "body": f"door {long}"}]
    )
    assert features.get_feature_names_out().tolist() == ["title: oven"]
    assert X.shape == (2, 1)
    X = features.partial_fit_transform([{"title": "grill", "body": "door lamp"}])
    assert features.get_feature_names_out().tolist() == ["title: oven", "title: grill", "body: door"]
    # Words that have no column yet make a text long, too.
    expected = 1 / np.sqrt(1 + 1 + np.log(3))
    np.testing.assert_allclose(X.toarray(), [[0.0, 1.0, expected]])


def test_without_any_word_there_is_one_empty_column():
    features = TableFeatures(text="body", min_rows=3)
    assert features.partial_fit_transform([{"body": "oven"}]).toarray().tolist() == [[0.0]]
    assert features.get_feature_names_out().tolist() == ["nothing"]


def test_each_text_column_is_a_space_of_its_own_and_of_length_one():
    features = TableFeatures(text=["title", "body"], min_rows=1)
    X = features.partial_fit_transform([{"title": "oven", "body": "oven door"}])
    assert sorted(features.get_feature_names_out()) == ["body: door", "body: oven", "title: oven"]
    assert (X.multiply(X)).sum() == pytest.approx(2.0)


def test_columns_of_words_long_unseen_are_used_again():
    features = TableFeatures(text="body", min_rows=1, max_features=2)
    features.partial_fit([{"body": "old ones"}])
    # Their words were seen a moment ago: there is no room for others.
    features.partial_fit([{"body": "young"}])
    assert features.get_feature_names_out().tolist() == ["body: old", "body: ones"]
    features.partial_fit([{"body": "ones"}] * 1000)
    update = features.update(features.state, [{"body": "young ones"}])
    state, X, reused = update.state, update.matrix, update.reused
    assert state.vocabulary.names == ["body: young", "body: ones"]
    assert reused.tolist() == [0]
    assert X.shape == (1, 2)
    # What is known now is found again, and what lost its column is not.
    features.restore(state)
    assert named(features, features.transform([{"body": "young"}])) == {"body: young": 1.0}
    assert features.transform([{"body": "old"}]).nnz == 0


def test_memory_is_bounded_on_words_without_end():
    features = TableFeatures(text="body", min_rows=1, max_features=100)
    for batch in range(30):
        features.partial_fit([{"body": f"word{batch}x{i} common"} for i in range(100)])
    assert len(features.get_feature_names_out()) == 100
    assert "body: common" in features.get_feature_names_out()


def test_numbers_are_scaled_and_missing_ones_are_said():
    features = fitted()
    low, high = features.transform([{**ROWS[0], "price": 20.0}, {**ROWS[0], "price": 1e9}]).toarray()
    index = features.get_feature_names_out().tolist().index("price")
    assert low[index] < 0 < high[index] <= 1.5
    assert named(features, features.transform(ROWS), 3)["price is missing"] == 0.5


def test_dates_become_parts_that_repeat():
    names = named(fitted(), fitted().transform(ROWS))
    assert {"when: weekday=Monday", "when: month=1", "when: hour=10"} <= set(names)


def test_html_is_stripped_only_where_a_column_is_html():
    rows = [{"a": "<p>The oven &amp; more</p>", "b": "The size <p is what"}] * 3
    features = TableFeatures(text=["a", "b"]).fit(rows)
    assert set(features.get_feature_names_out()) == {
        *(f"a: {word}" for word in ("the", "oven", "more")),
        *(f"b: {word}" for word in ("the", "size", "is", "what")),
    }


def test_what_is_new_later_is_no_error():
    features = fitted()
    known = features.transform(ROWS).toarray()
    shuffled = [dict(reversed(row.items())) for row in ROWS]
    np.testing.assert_array_equal(features.transform(shuffled).toarray(), known)
    with pytest.warns(UserWarning, match="new are ignored: 'seen'"):
        np.testing.assert_array_equal(features.transform([{**row, "seen": 1} for row in ROWS]).toarray(), known)
    # It is said once.
    np.testing.assert_array_equal(features.transform([{**row, "seen": 1} for row in ROWS]).toarray(), known)
    with pytest.warns(UserWarning, match="not there, and their cells count as missing: 'body'"):
        less = features.transform([{name: row[name] for name in row if name != "body"} for row in ROWS])
    assert not any(name.startswith("body") for name in named(features, less))
    assert named(features, features.transform([{**ROWS[0], "product": "grill"}])).keys().isdisjoint({"product=grill"})
    assert features.transform([{**ROWS[0], "body": 3.5, "price": None, "when": "", "product": None}]).shape[0] == 1


def test_a_column_that_contradicts_what_was_learned_is_an_error_that_names_it():
    features = fitted()
    before = features.state
    for name, cell in (("price", "cheap"), ("when", "cheap"), ("body", {"a": 1}), ("product", ["oven"])):
        with pytest.raises(ValueError, match=f"column '{name}' must hold what it is read as"):
            features.partial_fit([{**row, name: cell} for row in ROWS])
    assert features.state is before
    with pytest.warns(UserWarning, match="'price' holds number, but in some cells something else"):
        X = features.transform([{**ROWS[0], "price": "cheap"}, *ROWS[1:]])
    assert named(features, X)["price is missing"] == 0.5
    with pytest.raises(ValueError, match="must have some of the columns that were learned"):
        features.transform([{"other": 1}])


def test_a_column_that_was_empty_is_found_out_later():
    features = TableFeatures(min_rows=1).fit([{"body": "The oven is hot", "product": None}])
    assert [column.kind for column in features.columns_] == ["text", "empty"]
    features.partial_fit([{"body": "The oven is hot", "product": "oven"}])
    assert [column.kind for column in features.columns_] == ["text", "category"]
    assert "product=oven" in features.get_feature_names_out()


def test_kinds_can_be_overridden():
    features = fitted(category="id", id=["product"], drop="price", text="when")
    kinds = {column.name: column.kind for column in features.columns_}
    assert kinds == {**KINDS, "id": "category", "product": "identifier", "price": "dropped", "when": "text"}
    with pytest.raises(ValueError, match="no column 'bdoy', which text= names; it has: 'id', 'body'"):
        fitted(text="bdoy")
    with pytest.raises(ValueError, match="'body' must be of one kind, got text and id"):
        fitted(text="body", id="body")
    with pytest.raises(ValueError, match="text must be the name of a column or a list"):
        fitted(text=3)


def test_an_encoder_beside_the_words_or_instead_of_them():
    def lengths(texts):
        return [[len(text), 1.0] for text in texts]

    features = fitted(encoders={"body": lengths})
    assert {"body[0]", "body[1]", "body: oven"} <= set(features.get_feature_names_out())
    row = named(features, features.transform(ROWS))
    assert row["body[0]"] / row["body[1]"] == pytest.approx(len(ROWS[0]["body"]))
    alone = fitted(encoders={"body": lengths}, encoders_only=True)
    assert not any(name.startswith("body:") for name in alone.get_feature_names_out())
    with pytest.raises(ValueError, match="encoder of the column 'body' must return an array"):
        fitted(encoders={"body": lambda texts: [1.0]})
    with pytest.raises(ValueError, match=r"encoder of the column 'body' must be a callable .* got 'small'"):
        fitted(encoders={"body": "small"})
    for parameter, value in (("encoders", {"text": lengths}), ("id", "text")):
        with pytest.raises(ValueError, match=f"no column 'text', which {parameter}= names"):
            fitted(**{parameter: value})


def test_tables_that_are_none():
    with pytest.raises(NotFittedError):
        TableFeatures().transform(ROWS)
    with pytest.raises(ValueError, match="two columns called 'a'"):
        TableFeatures().fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(ValueError, match=r"names are text, got 1\.5"):
        TableFeatures().fit([{1.5: 1}])
    with pytest.raises(ValueError, match="columns of equal length"):
        TableFeatures().fit({"a": [1, 2], "b": [1]})
    with pytest.raises(ValueError, match="must be a table"):
        TableFeatures().fit("tickets.csv")
    with pytest.raises(ValueError, match="got 0 sample"):
        TableFeatures().fit(pd.DataFrame({"a": []}))


def test_times_are_local_whatever_library_holds_them():
    times = pd.Series(pd.to_datetime(["2024-05-06 23:30", "2024-05-07 01:15"])).dt.tz_localize("Asia/Tokyo")
    frame = pd.DataFrame({"at": times})
    texts = [{"at": text} for text in ("2024-05-06T23:30:00+09:00", "2024-05-07T01:15:00+09:00")]
    matrices = [TableFeatures().fit(table) for table in (frame, pa.Table.from_pandas(frame), texts)]
    names = [sorted(features.get_feature_names_out()) for features in matrices]
    assert names[0] == names[1] == names[2]
    assert "at: hour=23" in names[0]
