"""Rows that come again: against a dict that remembers them one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labelrace
from labelrace import Tagger
from labelrace.streams.demo import demo_tickets
from labelrace.tables import known_rows
from labelrace.tables.column_kinds import Column
from labelrace.tables.known_rows import KnownRows, hash_tags, meet, pack, row_keys, unpack
from labelrace.tables.read import Table

ROWS = [{**row, "priority": number % 3} for number, row in enumerate(demo_tickets(900))]
COLUMNS = [Column("id", "identifier"), Column("body", "text")]
BATCHES = st.lists(st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abc")), max_size=12), max_size=12)


def met(known, batch):
    """Meet rows that are given as (number, tag)."""
    table = Table({"id": [str(number) for number, _ in batch], "body": ["text"] * len(batch)}, len(batch))
    return meet(known, COLUMNS, table, range(len(batch)), [{tag} for _, tag in batch])


@given(BATCHES)
@settings(max_examples=200, deadline=None)
def test_rows_are_remembered_as_a_dict_does(batches):
    known, expected = KnownRows(), {}
    for batch in batches:
        found = met(known, batch)
        known = found.rows
        for (number, tag), same, other in zip(batch, found.is_known, found.is_correction, strict=True):
            assert (same, other) == (expected.get(number) == tag, expected.get(number, tag) != tag)
            expected[number] = tag
    keys = row_keys(COLUMNS, Table({"id": list(map(str, expected)), "body": ["text"] * len(expected)}, len(expected)))
    for remembered in (known, unpack(**pack(known))):
        is_there, tags = remembered.find(keys)
        assert is_there.all()
        np.testing.assert_array_equal(tags, hash_tags(expected.values()))


def test_the_oldest_rows_are_forgotten(monkeypatch):
    monkeypatch.setattr(known_rows, "MAX_ROWS", 1000)
    monkeypatch.setattr(known_rows, "MAX_RUN", 100)
    keys = np.arange(1, 5001, dtype=np.uint64) * 7919
    known = KnownRows()
    for start in range(0, 5000, 7):
        known = known.plus(keys[start : start + 7], keys[start : start + 7])
    assert 900 <= known.n_rows <= 1000
    assert len(known.runs) < 30
    is_there, tags = known.find(keys)
    assert is_there[-900:].all()
    assert not is_there[:-1000].any()
    assert (tags[is_there] == keys[is_there]).all()


@given(BATCHES, BATCHES)
@settings(max_examples=50, deadline=None)
def test_what_was_learned_since_and_the_start_make_the_end(first, second):
    start = KnownRows()
    for batch in first:
        start = met(start, batch).rows
    end = start
    for batch in second:
        end = met(end, batch).rows
    batch = [(number, "a") for number in range(31)]
    again, expected = met(start.merged(end.since(start)), batch), met(end, batch)
    np.testing.assert_array_equal(again.is_known, expected.is_known)
    np.testing.assert_array_equal(again.is_correction, expected.is_correction)


def test_damaged_rows_are_refused():
    parts = pack(met(KnownRows(), [(number, "a") for number in range(20)]).rows)
    for name, wrong in {
        "keys": parts["keys"][::-1].copy(),
        "tags": parts["tags"][1:],
        "lengths": parts["lengths"] + np.uint64(1),
    }.items():
        with pytest.raises(ValueError, match="its known rows"):
            unpack(**(parts | {name: wrong}))


def test_the_same_table_three_times_does_not_raise_the_quality():
    tagger = Tagger("tags", random_state=0)
    tagger.prequential_fit(ROWS)
    quality, proba = tagger.quality_, tagger.predict_proba(ROWS[:20])
    for times in (1, 2):
        assert len(tagger.prequential_fit(ROWS)) == 900
        assert tagger.quality_ == quality
        assert (tagger.n_rows_, tagger.n_known_, tagger.n_corrections_) == (900, 900 * times, 0)
    assert tagger.predict_proba(ROWS[:20]) == proba
    learned_again = Tagger("tags", random_state=0, skip_known=False)
    for _ in range(2):
        learned_again.prequential_fit(ROWS)
    assert learned_again.quality_["example_f1"] > quality["example_f1"] + 0.05
    assert learned_again.n_rows_ == 1800


def test_corrections_are_learned_and_not_tested(tmp_path):
    tagger = Tagger("tags", random_state=0)
    tagger.prequential_fit(ROWS)
    quality, suggestions = tagger.quality_, tagger.state.suggestions
    corrected = [{**row, "tags": ["mended"]} for row in ROWS[:100]]
    tagger.save(tmp_path / "tagger")
    for one in (tagger, labelrace.load(tmp_path / "tagger")):
        one.prequential_fit(corrected + ROWS[100:200])
        assert (one.n_rows_, one.n_known_, one.n_corrections_) == (1000, 100, 100)
        assert one.quality_ == quality
        assert one.tags_["mended"].rows == 100
        assert one.tags_["mended"].tested == 0
        assert one.state.suggestions is suggestions or one is not tagger
        # As corrected they are known.
        assert one.partial_fit(corrected).n_known_ == 200
        assert one.partial_fit(ROWS[:1]).n_corrections_ == 101


@pytest.mark.filterwarnings("ignore:Columns that are new are ignored")
def test_what_identifies_a_row():
    tagger = Tagger("tags", random_state=0).partial_fit(ROWS)
    known = lambda rows: tagger.partial_fit(rows).n_known_  # noqa: E731
    n_known = 0
    # Another order of columns, another column, another status.
    for same in (dict(reversed(ROWS[0].items())), {**ROWS[0], "export": 3}, {**ROWS[0], "priority": 7}):
        n_known += 1
        assert known([same]) == n_known
    # The same identifier with another text, and the same text with another identifier, are other rows.
    assert known([{**ROWS[0], "body": "Something else is broken"}, {**ROWS[0], "ticket": "T-x"}]) == n_known
    assert tagger.n_corrections_ == 0
    # Rows of categories alone are alike.
    alike = Tagger("tags", category="product").partial_fit([{"product": "oven", "tags": "a"}] * 30)
    assert (alike.n_rows_, alike.n_known_) == (30, 0)
    alike = Tagger("tags", text="body").partial_fit([{"body": "too hot", "tags": "a"}] * 30)
    assert (alike.n_rows_, alike.n_known_) == (1, 29)


def test_a_row_without_its_identifier_is_told_by_all_its_cells():
    rows = [{"ticket": None, "body": "too hot", "price": number, "tags": "ab"[number % 2]} for number in range(30)]
    tagger = Tagger("tags", id="ticket", text="body", number="price").partial_fit(rows)
    assert (tagger.n_rows_, tagger.n_known_, tagger.n_corrections_) == (30, 0, 0)
    tagger.partial_fit([rows[0], rows[1] | {"tags": "c"}, rows[2] | {"ticket": "T-1"}, rows[3] | {"ticket": ""}])
    assert (tagger.n_rows_, tagger.n_known_, tagger.n_corrections_) == (32, 2, 1)
    # Without texts they are alike.
    tagger = Tagger("tags", id="ticket", number="price", category="kind")
    tagger.partial_fit([{"ticket": None, "kind": "x", "price": 1, "tags": "a"}] * 30)
    assert (tagger.n_rows_, tagger.n_known_) == (30, 0)


def test_rows_stay_known_when_tags_get_other_names():
    tagger = Tagger("tags", random_state=0).partial_fit(ROWS)
    tagger.rename_labels({"login": "access"}).merge_labels(["billing", "returns"], into="money").drop_labels(["search"])
    tagger.partial_fit(ROWS)
    assert (tagger.n_known_, tagger.n_corrections_) == (900, 0)
    current = [{**row, "tags": sorted(tagger.state.names.current(row["tags"]))} for row in ROWS]
    tagger.partial_fit([row for row in current if row["tags"]])
    assert tagger.n_corrections_ == 0


def test_merged_taggers_know_the_rows_of_both():
    one, two = (Tagger("tags", random_state=0).partial_fit(part) for part in (ROWS[:500], ROWS[500:]))
    one.merge(two)
    assert one.n_known_ == 0
    assert one.partial_fit(ROWS).n_known_ == 900
