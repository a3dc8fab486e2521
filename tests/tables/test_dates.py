"""Dates whose day and month could be exchanged: one order in a batch, and it is said where it changes."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from labelrace import Tagger
from labelrace.tables.column_blocks import Moments, make_block
from labelrace.tables.column_kinds import batch_pattern, column_of


def days(start, n, pattern, keep=lambda day: True):
    """Make rows that are tagged by whether their day is of a weekend."""
    all_days = (date.fromisoformat(start) + timedelta(number) for number in range(n))
    return [
        {"when": day.strftime(pattern), "tags": ["weekend" if day.weekday() > 4 else "week"]}
        for day in all_days
        if keep(day)
    ]


def tagger():
    return Tagger("tags", random_state=0, skip_known=False)


KEPT = (lambda day: day.day <= 12, lambda day: True)


def test_a_batch_is_read_in_one_order():
    learned = tagger().partial_fit(days("2010-01-01", 3000, "%d/%m/%Y"))
    asked = days("2025-01-01", 360, "%m/%d/%Y")
    with pytest.warns(UserWarning, match=r"'when' holds dates that only '%m/%d/%Y' fits.*read as '%d/%m/%Y'"):
        assert learned.score(asked) == 1
    assert learned.score(days("2025-01-01", 360, "%Y-%m-%d")) == 1
    assert learned.columns_[0].pattern == "%d/%m/%Y"


def test_the_order_stays_open_while_both_fit():
    ambiguous = days("2010-01-01", 6000, "%m/%d/%Y", lambda day: day.day <= 12)
    learned = tagger().partial_fit(ambiguous)
    assert learned.columns_[0].pattern == "%d/%m/%Y"
    assert learned.columns_[0].is_open
    with pytest.warns(UserWarning, match="only '%m/%d/%Y' fits"):
        learned.partial_fit(days("2020-01-01", 1500, "%m/%d/%Y"))
    assert (learned.columns_[0].pattern, learned.columns_[0].is_open) == ("%m/%d/%Y", False)
    # The order is known now: what fits both is read in it.
    asked = days("2025-01-01", 360, "%m/%d/%Y", lambda day: day.day <= 12)
    assert learned.predict(asked[:1]) == [set(asked[0]["tags"])]


def test_merged_taggers_know_the_order_if_one_does():
    open_one, known = (tagger().partial_fit(days("2010-01-01", 6000, "%m/%d/%Y", keep)) for keep in KEPT)
    merged = open_one.merge(known)
    assert (merged.columns_[0].pattern, merged.columns_[0].is_open) == ("%m/%d/%Y", False)


@pytest.mark.parametrize(
    ("cells", "wrong"),
    [
        (["31/01/2024", "02/13/2024"], [1]),
        (["31/01/2024", "14/02/2024 10:30"], []),
        (["31/01/2024", "15.02.2024"], []),
        (["01/31/2024", "02/13/2024", None, "2024-02-14"], []),
        (["01/31/2024", "13/02/2024", "14/02/2024"], [0]),
    ],
)
def test_a_batch_in_both_orders(cells, wrong):
    column = column_of("when", ["31/01/2024", "13/02/2024"])
    assert not column.is_open
    pattern = column._replace(pattern=batch_pattern(column, cells))
    assert make_block(pattern, cells, Moments())[1] == wrong
