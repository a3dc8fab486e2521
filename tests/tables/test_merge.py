"""Taggers that learned different rows become one: words and tags by name."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import labelrace
from labelrace.exceptions import MergeError
from labelrace.merging import add, gain, join, start
from labelrace.streams.demo import demo_tickets
from labelrace.tables import Tagger
from labelrace.tables.state import MAX_SETS, add_sets

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


@pytest.fixture(scope="module")
def halves():
    return [Tagger("tags", random_state=0).partial_fit(ROWS[i : i + 1200]) for i in (0, 1200)]


def without_names(tagger):
    """Turn off what tags are called, as it counts in what a tagger predicts."""
    off = tagger.state.suggestions._replace(f1=np.array([1.0, 0.0]))
    return tagger.exchanged(tagger.state._replace(suggestions=off), tagger.model_)


def having(*tags):
    return sum(not set(tags).isdisjoint(row["tags"]) for row in ROWS)


@pytest.mark.parametrize("renamed", [0, 1])
def test_tags_that_one_of_two_taggers_changed_are_changed_in_both(halves, renamed):
    taggers = [copy.deepcopy(half) for half in halves]
    taggers[renamed].rename_labels({"login": "access"}).merge_labels(["billing", "returns"], "money")
    taggers[renamed].drop_labels(["search"])
    merged = taggers[0].merge(taggers[1])
    predicted = {tag for tags in merged.predict(ROWS) for tag in tags}
    assert predicted == set(merged.tags_)
    assert not predicted & {"login", "billing", "returns", "search"}
    assert merged.tags_["access"].rows == having("login")
    assert merged.tags_["money"].rows == having("billing", "returns")
    # One label for a tag of both.
    assert "login" not in merged.model_.label_names_
    plain = copy.deepcopy(halves[0]).merge(halves[1])
    names = merged.state.names
    merged, plain = without_names(merged), without_names(plain)
    assert merged.predict(ROWS) == [names.current(tags) for tags in plain.predict(ROWS)]


def test_rows_with_several_of_the_merged_tags_count_once(halves, tmp_path):
    tagger = copy.deepcopy(halves[0]).partial_fit(ROWS[1200:])
    tagger.save(tmp_path / "t.labelrace")
    for one in (tagger, labelrace.load(tmp_path / "t.labelrace")):
        one.merge_labels(["billing", "returns"], into="money")
        assert one.tags_["money"].rows == having("billing", "returns")
        one.drop_labels(["search"]).merge_labels(["money", "login", "mobile"], into="login")
        assert one.tags_["login"].rows == having("billing", "returns", "login", "mobile")


def test_a_name_that_was_dropped_or_merged_away_can_be_used_again(halves, tmp_path):
    tagger = without_names(halves[0])
    before = tagger.predict_proba(ROWS[:50])
    tagger.drop_labels(["login"]).rename_labels({"mobile": "login"})
    tagger.merge_labels(["billing", "returns"], "money").rename_labels({"search": "returns"})
    tagger.save(tmp_path / "t.labelrace")
    for one in (tagger, labelrace.load(tmp_path / "t.labelrace")):
        assert one.tags_["login"] == halves[0].tags_["mobile"]
        for old, new in zip(before, one.predict_proba(ROWS[:50]), strict=True):
            assert (new["login"], new["returns"]) == (old["mobile"], old["search"])
            assert new["money"] == max(old["billing"], old["returns"])
            assert new.keys() == one.tags_.keys()
        # Rows with the name mean the tag that has it now.
        n_rows = one.tags_["login"].rows
        one.partial_fit([{**ROWS[0], "subject": "Another ticket", "tags": ["login"]}])
        assert one.tags_["login"].rows == n_rows + 1
    tagger.drop_labels(["login"]).rename_labels({"money": "login"})
    assert "login" in tagger.tags_


def test_sets_of_tags_are_bounded():
    sets = add_sets({("a", "b"): 5}, (((f"t{i}", f"u{i}"), 1) for i in range(MAX_SETS)))
    assert len(sets) == MAX_SETS // 2
    assert sets["a", "b"] == 5


def test_replicas_of_a_start_that_was_emptied_count_it_once(tmp_path):
    whole = Tagger("tags", random_state=0).partial_fit(ROWS[:2000])
    common = Tagger("tags", random_state=0).partial_fit(ROWS[:800])
    empty = common.emptied()
    assert empty.n_rows_ == 0
    assert set(empty.tags_) == set(common.tags_)
    assert empty.columns_ == common.columns_
    assert empty.state.features.vocabulary.names == common.state.features.vocabulary.names
    empty.save(tmp_path / "empty.labelrace")
    replicas = [common.emptied(), labelrace.load(tmp_path / "empty.labelrace")]
    for number, replica in enumerate(replicas):
        replica.partial_fit(ROWS[800 + 600 * number : 1400 + 600 * number])
    merged = copy.copy(common).merge(replicas[0]).merge(replicas[1])
    assert merged.n_rows_ == 2000
    assert {tag: count.rows for tag, count in merged.tags_.items()} == {
        tag: count.rows for tag, count in whole.tags_.items()
    }
    assert merged.state.features.vocabulary.n_rows == 2000
    assert merged.score(ROWS[2000:]) > whole.score(ROWS[2000:]) - 0.03
    # A replica that has learned nothing yet adds nothing, and takes over all.
    assert copy.copy(common).merge(empty).predict(ROWS[2000:2050]) == common.predict(ROWS[2000:2050])
    assert common.emptied().merge(common).n_rows_ == 800


def test_an_emptied_tagger_of_sums_merges_to_the_model_that_learned_all_rows():
    common = Tagger("tags", model="obr", random_state=0).partial_fit(ROWS[:300])
    replica = common.emptied().partial_fit(ROWS[300:500])
    merged = copy.copy(common).merge(replica)
    assert merged.n_rows_ == 500
    assert {tag: one.rows for tag, one in merged.tags_.items()} == {
        tag: one.rows for tag, one in copy.copy(common).partial_fit(ROWS[300:500]).tags_.items()
    }


def test_rows_that_both_have_learned_are_noticed(tmp_path):
    common = Tagger("tags", random_state=0).partial_fit(ROWS[:800])
    common.save(tmp_path / "common.labelrace")
    one, other = labelrace.load(tmp_path / "common.labelrace").partial_fit(ROWS[800:1200]), copy.copy(common)
    other.partial_fit(ROWS[1200:1600])
    before = one.state
    with pytest.raises(MergeError, match=r"the same first rows, .* start\.emptied\(\)"):
        one.merge(other)
    assert one.state is before
    joined = Tagger("tags", random_state=0).partial_fit(ROWS[1600:2000]).merge(one)
    with pytest.raises(MergeError, match="the same first rows"):
        joined.merge(other)


def separated(name, separator, first):
    """Make rows with two values of a column that are written as one text."""
    rows = []
    for number in range(first, first + 800):
        one, other = f"t{number % 4}", f"w{number // 4 % 3}"
        row = {"body": f"alpha{one} word{other} {number}", "tags": [one, other]}
        rows.append({**row, name: separator.join([one, other])})
    return rows


def test_tags_with_other_separators_are_not_merged():
    one, other = (
        Tagger("tags", random_state=0).partial_fit(separated("tags", separator, first))
        for first, separator in ((0, ";"), (1000, "|"))
    )
    with pytest.raises(MergeError, match=r"separated by ';' in one and by '\|' in the other.*set_params\(separator="):
        one.merge(other)
    assert one.n_rows_ == 800
    one.set_params(separator="|").merge(other).partial_fit(separated("tags", "|", 5000))
    assert len(one.tags_) == 7


def test_lists_with_other_separators_are_not_merged():
    one, other = (
        Tagger("tags", random_state=0).partial_fit(separated("parts", separator, first))
        for first, separator in ((0, ";"), (1000, "|"))
    )
    with pytest.raises(MergeError, match=r"'parts' is list \(separated by ';'\) in one and list \(separated by '\|'\)"):
        one.merge(other)
