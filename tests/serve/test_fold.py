"""The fold: against a tagger that is taught by hand, and against itself in other hands."""

from __future__ import annotations

import pytest
from helpers.serving import TICKETS
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.serve import snapshots
from labelrace.serve.fold import fold, fold_all
from labelrace.serve.journal import Entry
from labelrace.serve.start import empty
from labelrace.tables import Tagger

DAY = 86_400.0


def row(ticket, tags=None, was=None, again=False):
    cells = {name: ticket[name] for name in ("subject", "body")}
    return {
        "id": ticket["id"],
        "cells": cells,
        "tags": ticket["tags"] if tags is None else tags,
        "was": was,
        "again": again,
    }


def batch(position, *bodies, kind="learn", time=0.0):
    return [Entry(position + i, position, time, kind, "", body) for i, body in enumerate(bodies)]


def lessons(tickets, size, start=1):
    """Make batches of single rows, an entry each."""
    parts = ((at, tickets[at : at + size]) for at in range(0, len(tickets), size))
    return [batch(start + at, *({"rows": [row(one)]} for one in part)) for at, part in parts]


def begin():
    return empty({"tags": "tags"})


def test_folding_is_what_a_tagger_learns_that_tests_each_batch_before():
    tagger = begin().tagger
    for at in range(0, 300, 20):
        tagger.prequential_fit(TICKETS[at : at + 20])
    folded = fold_all(begin(), lessons(TICKETS[:300], 20))
    assert folded.position == 300
    assert snapshots.pack(folded._replace(tagger=tagger)) == snapshots.pack(folded)
    total = folded.quality.total
    assert (total.rows, total.tested) == (300, 280)
    assert total.f1 == pytest.approx(tagger.state.sum_f1)


def test_what_people_saw_is_what_is_judged():
    folded = fold_all(begin(), lessons(TICKETS[:200], 50))
    before, ticket = folded.quality.total, TICKETS[300]
    was = {"tags": [*ticket["tags"], "wrong"], "probabilities": {ticket["tags"][0]: 0.75, "wrong": 0.5}}
    after = fold(folded, batch(201, {"rows": [row(ticket, was=was)]}, kind="feedback"))
    change = after.quality.total.plus(before, -1)
    assert (change.tested, change.right, change.given, change.true) == (
        1,
        len(ticket["tags"]),
        len(was["tags"]),
        len(ticket["tags"]),
    )
    assert after.quality.recent[-1].likely == {ticket["tags"][0]: 0.75}, "a tag that nobody has used is not calibrated"
    assert after.tagger.tags_[ticket["tags"][0]].right == folded.tagger.tags_[ticket["tags"][0]].right + 1


def test_a_correction_is_learned_and_no_test():
    folded = fold_all(begin(), lessons(TICKETS[:200], 50))
    again = fold(folded, batch(201, {"rows": [row(TICKETS[0], tags=["billing", "zoo"], again=True)]}, kind="feedback"))
    assert again.quality.total.tested == folded.quality.total.tested
    assert again.quality.total.corrections == 1
    assert again.tagger.n_rows_ == 201
    assert "zoo" in again.tagger.tags_


def test_what_is_withdrawn_counts_no_more():
    folded = fold_all(begin(), lessons(TICKETS[:200], 50))
    told = fold(folded, batch(201, {"rows": [row(TICKETS[300])]}, kind="feedback"))
    withdrawn = {**row(TICKETS[300]), "tags": None}
    after = fold(told, batch(202, {"rows": [withdrawn]}, kind="feedback"))
    assert after.quality.total == folded.quality.total
    assert after.quality.recent == folded.quality.recent
    assert after.tagger.n_rows_ == told.tagger.n_rows_


def test_an_entry_that_cannot_be_learned_costs_itself_alone(monkeypatch):
    learn = Tagger.after_batch

    def picky(tagger, table, *given, **named):
        if "Refuse me" in table.columns["subject"]:
            raise ValueError("It is refused.\nAnd more is said.")
        return learn(tagger, table, *given, **named)

    monkeypatch.setattr(Tagger, "after_batch", picky)
    folded = fold_all(begin(), lessons(TICKETS[:50], 50))
    good = [{"rows": [row(ticket)]} for ticket in TICKETS[180:183]]
    wrong = {"rows": [row(TICKETS[190]), row({**TICKETS[191], "subject": "Refuse me"})]}
    after = fold(folded, batch(51, good[0], wrong, *good[1:]))
    assert after.refused == ((52, "It is refused."),)
    assert after.why_refused(51) is None
    assert after.position == 54
    assert after.tagger.n_rows_ == folded.tagger.n_rows_ + 3
    by_one = fold_all(folded, [batch(51, good[0]), batch(52, wrong), batch(53, good[1]), batch(54, good[2])])
    assert snapshots.pack(after) == snapshots.pack(by_one)
    assert snapshots.unpack(snapshots.pack(after)).refused == after.refused


def test_all_refused_entries_of_a_batch_are_known(monkeypatch):
    folded = fold_all(begin(), lessons(TICKETS[:50], 50))

    def refusing(*given, **named):
        raise ValueError("It is refused.")

    monkeypatch.setattr(Tagger, "after_batch", refusing)
    refused = batch(51, *({"rows": [row(one)]} for one in TICKETS[50:250]))
    assert fold(folded, refused).refused_of(refused) == refused


@pytest.mark.parametrize("error", [KeyError("x"), ZeroDivisionError(), AssertionError("It is not so.")])
def test_an_error_that_nobody_foresaw_costs_its_entry_alone(monkeypatch, error):
    folded = fold_all(begin(), lessons(TICKETS[:50], 50))
    learn = Tagger.after_batch

    def faulty(tagger, table, *given, **named):
        if "Refuse me" in table.columns["subject"]:
            raise error
        return learn(tagger, table, *given, **named)

    monkeypatch.setattr(Tagger, "after_batch", faulty)
    wrong = {"rows": [row({**TICKETS[191], "subject": "Refuse me"})]}
    after = fold(folded, batch(51, wrong, {"rows": [row(TICKETS[180])]}))
    assert after.why_refused(51)
    assert (after.position, after.tagger.n_rows_) == (52, 51)


@pytest.mark.parametrize("error", [MemoryError(), OSError("No space left"), ImportError()])
def test_what_is_the_fault_of_the_machine_is_tried_again(monkeypatch, error):
    folded = fold_all(begin(), lessons(TICKETS[:50], 50))

    def faulty(*given, **named):
        raise error

    monkeypatch.setattr(Tagger, "after_batch", faulty)
    with pytest.raises(type(error)):
        fold(folded, batch(51, {"rows": [row(TICKETS[180])]}))


def test_what_is_said_and_taken_back_in_one_commit_counts_in_its_order():
    folded = fold_all(begin(), lessons(TICKETS[:200], 50))
    said = {"rows": [row(TICKETS[300])]}
    withdrawn = {"rows": [{**row(TICKETS[300]), "tags": None}]}
    for bodies in ([said, withdrawn], [said, withdrawn, said], [withdrawn, said]):
        together = fold(folded, batch(201, *bodies))
        apart = fold_all(folded, [batch(201 + at, body) for at, body in enumerate(bodies)])
        assert snapshots.pack(together) == snapshots.pack(apart)


def test_nothing_changes_a_value_that_was_folded():
    folded = fold_all(begin(), lessons(TICKETS[:100], 25))
    before = snapshots.pack(folded)
    fold_all(folded, lessons(TICKETS[100:200], 25, start=101))
    fold(folded, batch(101, {"names": {"billing": "money"}}, kind="rename"))
    assert snapshots.pack(folded) == before


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(0, 8))
@settings(max_examples=15, deadline=None)
def test_a_snapshot_in_between_changes_nothing(sizes, at):
    start, batches = 0, []
    for size in sizes:
        batches += lessons(TICKETS[start : start + size], size, start=start + 1)
        start += size
    whole = fold_all(begin(), batches)
    first = fold_all(begin(), batches[:at])
    loaded = snapshots.unpack(snapshots.pack(first)) if first.tagger.is_fitted else first
    assert snapshots.pack(fold_all(loaded, batches[at:])) == snapshots.pack(whole)


def test_tags_change_in_their_order():
    folded = fold_all(begin(), lessons(TICKETS[:200], 50))
    rows = folded.tagger.tags_["billing"].rows
    folded = fold(folded, batch(201, {"names": {"billing": "money"}}, kind="rename"))
    assert folded.tagger.tags_["money"].rows == rows
    assert not any("billing" in test.true + test.given for test in folded.quality.recent)
    assert not any(one.tag == "money" for one in folded.quality.new_tags), "a new name is no new tag"
    folded = fold(folded, batch(202, {"tags": {"oven": {"synonyms": ["stove"]}}}, kind="describe"))
    assert [one.tag for one in folded.quality.new_tags][-1] == "oven"
    folded = fold(folded, batch(203, {"tags": ["money"]}, kind="retire"))
    assert "money" not in folded.tagger.tags_


def test_tags_may_be_described_before_the_first_row():
    folded = fold(begin(), batch(1, {"tags": {"oven": {"synonyms": ["stove"]}}}, kind="describe"))
    folded = fold_all(folded, lessons(TICKETS[:20], 20, start=2))
    assert folded.tagger.state.details["oven"].synonyms == ("stove",)


def test_a_kind_of_entry_that_is_not_known_is_refused():
    folded = fold_all(begin(), lessons(TICKETS[:20], 20))
    assert "upgrade" in str(fold(folded, batch(21, {}, kind="later")).why_refused(21))


def test_days_are_those_of_the_journal():
    folded = fold_all(begin(), lessons(TICKETS[:20], 20))
    folded = fold(folded, batch(21, *({"rows": [row(one)]} for one in TICKETS[20:30]), time=3 * DAY + 5))
    assert {day: sums.rows for day, sums in folded.quality.days.items()} == {0: 20, 3: 10}
