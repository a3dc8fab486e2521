"""Quality: against counting by hand, and scikit-learn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score

from labelrace.serve import quality
from labelrace.serve.quality import Mark, NewTag, Quality, Sums, Verdict

TAGS = ["a", "b", "c", "d"]
SETS = st.sets(st.sampled_from(TAGS)).map(lambda tags: tuple(sorted(tags)))
TESTS = st.lists(st.tuples(SETS, SETS, st.integers(0, 3)), max_size=60)


def judged(rows):
    value = Quality()
    for number, (true, given_, day) in enumerate(rows):
        value = value.after([Verdict(f"T-{number}", day, true, given_, {})], Sums(rows=1), day)
    return value


def matrix(sets):
    return np.array([[tag in one for tag in TAGS] for one in sets])


@given(TESTS)
@settings(max_examples=100, deadline=None)
def test_shares_are_those_of_scikit_learn(rows):
    value = judged(rows).as_json()
    assert value["tested"] == len(rows)
    if not rows:
        assert value["example_f1"] is None
        return
    true, given_ = matrix([row[0] for row in rows]), matrix([row[1] for row in rows])
    assert value["example_f1"] == pytest.approx(f1_score(true, given_, average="samples", zero_division=1.0))
    if given_.any():
        assert value["precision"] == pytest.approx(precision_score(true, given_, average="micro", zero_division=0.0))
    if true.any():
        assert value["recall"] == pytest.approx(recall_score(true, given_, average="micro", zero_division=0.0))
    assert value["agreement"] == pytest.approx((true == given_).all(axis=1).mean())


@given(TESTS)
@settings(max_examples=50, deadline=None)
def test_days_add_up_and_packing_keeps_all(rows):
    value = judged(rows)
    total = Sums()
    for sums in value.days.values():
        total = total.plus(sums)
    assert total == pytest.approx(value.total)
    assert quality.unpack(json.loads(json.dumps(quality.pack(value)))) == value


@given(TESTS.filter(bool), st.data())
@settings(max_examples=50, deadline=None)
def test_withdrawing_is_as_if_it_was_never_said(rows, data):
    at = data.draw(st.integers(0, len(rows) - 1))
    value = judged(rows).without(f"T-{at}")
    others = [row for number, row in enumerate(rows) if number != at]
    assert value.total == pytest.approx(judged(others).total)
    assert value.without("T-none") is value


def test_windows_are_full_hundreds():
    rows = [(("a",), ("a",) if number % 2 else ("b",), 0) for number in range(250)]
    windows = judged(rows).as_json()["windows"]
    assert [(one["row"], one["rows"], one["agreement"]) for one in windows] == [(100, 100, 0.5), (200, 100, 0.5)]


def test_calibration_counts_what_was_shown():
    tests = [Verdict("x", 0, ("a",) if number < 7 else (), ("a",), {"a": 0.72, "b": 0.05}) for number in range(10)]
    low, high = Quality().after(tests, Sums(), 0).calibration()
    assert (low["low"], low["right"], low["count"]) == (0.0, 0.0, 10)
    assert (high["low"], high["high"], high["count"]) == (0.7, 0.8, 10)
    assert high["probability"] == pytest.approx(0.72)
    assert high["right"] == pytest.approx(0.7)


def test_tags_that_get_better_and_worse_are_named():
    def half(good, bad):
        rows = [(("up",), ("up",) if number < good else (), 0) for number in range(10)]
        return rows + [(("down",), ("down",) if number < bad else (), 0) for number in range(10)]

    tags = judged(half(2, 9) + half(9, 2)).as_json()["tags"]
    assert [one["tag"] for one in tags["rising"]] == ["up"]
    assert [one["tag"] for one in tags["falling"]] == ["down"]
    assert tags["rising"][0]["f1"] > tags["rising"][0]["before"]
    assert {one["tag"] for one in tags["best"]}.isdisjoint(one["tag"] for one in tags["worst"])


def test_what_is_kept_is_bounded():
    value = Quality()
    for number in range(1200):
        test = Verdict("x", number, ("a",), ("a",), {})
        value = value.after([test], Sums(rows=1), number).marked(
            [Mark("alarm", number, number, 0.0)], [NewTag(f"t{number}", number, 0.0)]
        )
    assert len(value.recent) == quality.N_RECENT
    assert len(value.days) == quality.MAX_DAYS
    assert len(value.marks) == quality.MAX_MARKS
    assert len(value.new_tags) == quality.MAX_NEW_TAGS
    assert value.total.tested == 1200
    assert max(value.days) == 1199
