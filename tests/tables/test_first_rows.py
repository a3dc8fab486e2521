"""What columns are is not decided by one row."""

from __future__ import annotations

import copy
from datetime import datetime

import numpy as np
import pytest

import labelrace
from labelrace import Tagger
from labelrace.streams.demo import demo_tickets
from labelrace.tables.column_kinds import column_of
from labelrace.tables.merge import as_one_batch

ROWS = [
    {
        "nr": 1000 + i,
        "subject": row["subject"],
        "room": str(i % 5) if i < 3 else f"R{i % 5}",
        "day": datetime(2024, 1 + i % 12, 3, 9),
        "tags": row["tags"],
    }
    for i, row in enumerate(demo_tickets(400))
]


def kinds(tagger):
    return {column.name: column.kind for column in tagger.columns_}


@pytest.mark.parametrize("through_a_file", [False, True])
@pytest.mark.parametrize("size", [1, 7])
def test_row_by_row_the_kinds_become_those_of_many_rows(tmp_path, size, through_a_file):
    expected = Tagger("tags", random_state=0).partial_fit(ROWS[:200])
    tagger = Tagger("tags", random_state=0)
    for start in range(0, 200, size):
        tagger.partial_fit(ROWS[start : min(200, start + size)])
        if through_a_file and start < 120:
            tagger.save(tmp_path / "t")
            tagger = labelrace.load(tmp_path / "t")
    assert kinds(tagger) == kinds(expected)
    assert kinds(tagger) == {"nr": "identifier", "subject": "text", "room": "category", "day": "date"}
    assert tagger.n_rows_ == 200
    assert tagger.state.first is None
    assert {tag: counts.rows for tag, counts in tagger.tags_.items()} == {
        tag: counts.rows for tag, counts in expected.tags_.items()
    }
    assert tagger.score(ROWS[200:]) > expected.score(ROWS[200:]) - 0.05


def test_rows_are_learned_anew_with_other_kinds():
    first, more = ROWS[:3], ROWS[3:40]
    tagger = Tagger("tags", random_state=0).partial_fit(first)
    assert kinds(tagger)["room"] == "number"
    tagger.partial_fit(more)
    assert kinds(tagger)["room"] == "category"
    assert tagger.n_rows_ == 40
    # As if the kinds had been known when the first rows were learned.
    given = {"text": "subject", "category": "room", "date": "day", "id": "nr"}
    told = Tagger("tags", random_state=0, **given).partial_fit(first).partial_fit(more)
    assert tagger.predict_proba(ROWS[200:220]) == told.predict_proba(ROWS[200:220])


def test_a_saved_tagger_keeps_its_first_rows(tmp_path):
    table = {"a": np.array([1.0, np.nan]), "t": np.array(["2024-01-01", "NaT"], "datetime64[s]"), "n": [10**17, 1]}
    tagger = Tagger(random_state=0).partial_fit(table, [["x"], None])
    tagger.save(tmp_path / "t")
    one, two = tagger.state.first, labelrace.load(tmp_path / "t").state.first
    assert one.tags == two.tags == ({"x"}, None)
    assert one.n_learned == two.n_learned == 1
    np.testing.assert_equal(two.table.columns, one.table.columns)
    assert [type(cells) for cells in two.table.columns.values()] == [np.ndarray, np.ndarray, list]


def test_columns_that_come_with_later_rows():
    rows = [{"body": "the oven is hot", "tags": "oven"}, {"body": "a bill to pay", "tags": "bill", "city": "Rome"}]
    tagger = Tagger("tags").partial_fit(rows[:1]).partial_fit(rows[1:])
    assert kinds(tagger) == {"body": "text", "city": "category"}


def test_a_first_batch_that_is_large_decides():
    assert Tagger("tags").partial_fit(ROWS[:100]).state.first is None
    assert Tagger("tags").partial_fit(ROWS[:99]).state.first is not None


def test_explicit_kinds_stay():
    tagger = Tagger("tags", text="room", random_state=0)
    for row in ROWS[:20]:
        tagger.partial_fit([row])
    assert kinds(tagger)["room"] == "text"


def test_a_refused_batch_changes_nothing():
    tagger = Tagger("tags", random_state=0).partial_fit(ROWS[:3])
    before = tagger._known
    with pytest.raises(ValueError, match="'tags', which is to hold tags"):
        tagger.partial_fit([{"room": "R7"}])
    with pytest.raises(ValueError, match="some of the columns"):
        tagger.predict([{"other": 1}])
    assert tagger._known is before


def test_rows_that_were_learned_otherwise_are_not_lost():
    """Shares of rows are learned by the model alone: then the rows kept are not all rows."""
    tagger = Tagger("tags", random_state=0).partial_fit(ROWS[:3])
    table, tags = as_one_batch(tagger, [{**row, "room": "7"} for row in ROWS[3:20]])
    state, X, _, truth = tagger.as_rows(table, tags)
    assert state.first is None
    model = copy.copy(tagger.model_).partial_fit(X, truth)
    shared = tagger.exchanged(state._replace(first=tagger.state.first), model)
    with pytest.warns(UserWarning, match="'room' holds number, but in some cells something else"):
        shared.partial_fit(ROWS[20:21])
    assert shared.n_rows_ == 21
    assert kinds(shared)["room"] == "number"
    assert shared.state.first is None


def test_renamed_tags_are_learned_anew_by_their_names():
    tagger = Tagger("tags", random_state=0).partial_fit(ROWS[:3])
    old = next(iter(tagger.tags_))
    tagger.rename_labels({old: "other name"}).partial_fit(ROWS[3:40])
    assert kinds(tagger)["room"] == "category"
    assert old not in tagger.model_.label_names_


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("subject", ["Oven too hot", "Invoice", "Door", "Wrong amount", "Search"], "text"),
        ("subject", ["Printer"], "text"),
        ("city", ["Rome", "Oslo", "Bern", "Lima", "Kyiv"], "category"),
        ("ticket", ["T-1", "T-2", "T-3"], "identifier"),
        ("what", ["oven is hot", "bill wrong", "new door"], "text"),
        ("product", ["oven", "oven", "toaster"], "category"),
    ],
)
def test_kinds_of_few_cells(name, cells, kind):
    assert column_of(name, cells).kind == kind
