"""Taggers that learned different rows become one: words and tags by name."""

from __future__ import annotations

import numpy as np
import pytest

import labelrace
from labelrace.exceptions import MergeError
from labelrace.merging import add, gain, join, start
from labelrace.streams.demo import demo_tickets
from labelrace.tables import Tagger

ROWS = demo_tickets()[:2400]


def test_two_taggers_and_shares_of_one_come_close_to_the_tagger_that_learned_all_rows(tmp_path):
    whole = Tagger("tags", random_state=0).partial_fit(ROWS[:2000])
    one = Tagger("tags", random_state=0).partial_fit(ROWS[:900])
    one.merge(Tagger("tags", random_state=0).partial_fit(ROWS[900:2000]))
    common = Tagger("tags", random_state=0).partial_fit(ROWS[:600])
    gains = [gain(common, start(common).partial_fit(ROWS[i : i + 400])) for i in (600, 1000, 1400)]
    total = add(gains[0], add(gains[1], gains[2]))
    joint = join(common, total, ROWS[1800:2000])
    for merged in (one, joint, join(common, total)):
        assert set(merged.tags_) == set(whole.tags_)
        assert merged.score(ROWS[2000:]) > whole.score(ROWS[2000:]) - 0.03
    assert joint.n_rows_ == one.n_rows_ == whole.n_rows_
    assert {tag: count.rows for tag, count in joint.tags_.items()} == {
        tag: count.rows for tag, count in whole.tags_.items()
    }
    words = [tagger.state.features.vocabulary for tagger in (joint, whole)]
    assert words[0].n_rows == words[1].n_rows == 2000
    assert np.isfinite(words[0].seen).all()
    # It is a tagger like any other.
    joint.save(tmp_path / "joint.labelrace")
    assert labelrace.load(tmp_path / "joint.labelrace").partial_fit(ROWS[2000:]).n_rows_ == 2400


def test_columns_that_hold_something_else():
    one = Tagger("tags").partial_fit([{"body": "the oven is too hot", "tags": "oven; hot"}] * 300)
    before = one.state
    other = Tagger("tags", number="body").partial_fit([{"body": 3.5, "tags": "oven; hot"}] * 300)
    with pytest.raises(MergeError, match="'body' is category in one and number in the other"):
        one.merge(other)
    assert one.state is before
    with pytest.raises(MergeError, match="other must be a Tagger"):
        one.merge(None)
