"""Services that are killed at random moments: nothing that was answered is lost, and nothing is learned twice.

`python -m benchmarks durability` does the same for longer.
"""

from __future__ import annotations

import json
import os

import pytest

pytest.importorskip("fastapi", reason="labelrace[serve] is not installed")

import sqlalchemy as sql
from helpers.models import ALL_MODELS

from benchmarks.crowd import Sent
from benchmarks.durability import kill_and_compare
from benchmarks.witness import begin, compare_answers, compare_rows
from labelrace.serve.database import checked_url, url_of
from labelrace.serve.journal import Entry

# Kills of each number of processes.
N_KILLS = 10 if ALL_MODELS else 4

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="services are forked")


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_killed_services_lose_nothing(tmp_path, processes):
    figures = kill_and_compare(url_of(tmp_path), tmp_path, N_KILLS, processes, seed=processes)
    # Otherwise nothing was tried.
    assert figures.answered > N_KILLS
    assert figures.compared > N_KILLS
    if ALL_MODELS:
        assert figures.compacted > 0
        assert figures.again > 0 or processes > 1


def test_killed_services_lose_nothing_in_postgresql(tmp_path, postgresql):
    """The database is killed, too."""
    url = checked_url(postgresql.new_database())
    figures = kill_and_compare(url, tmp_path, 4, 2, seed=0, crash=postgresql.crash)
    assert figures.answered > 10
    assert figures.compared > 10


# That the comparison notices.


def lesson(name, position):
    request = Sent(name, "/v1/learn", {"rows": [{"id": name, "body": "x", "tags": ["t"]}]}, True)
    request.status, request.answer = 200, {"position": position, "learned": 1}
    row = {"id": name, "cells": {"body": "x"}, "tags": ["t"], "was": None, "again": False}
    return request, Entry(position, position, 0.0, "learn", name, {"rows": [row]})


def test_what_is_lost_doubled_or_changed_is_noticed():
    (one, first), (two, second) = lesson("a", 1), lesson("b", 2)
    compare_answers([one, two], [first, second])
    again = second._replace(position=3)
    other = second._replace(body={"rows": [{**second.body["rows"][0], "tags": ["u"]}]})
    for entries in (
        [first],
        [first, second, again],
        [first, other],
        [second, first],
        [first, second._replace(who="c")],
    ):
        with pytest.raises(AssertionError):
            compare_answers([one, two], entries)
    two.status = 422
    with pytest.raises(AssertionError, match="refused"):
        compare_answers([one, two], [first, second])
    # Without an answer it may be there or not, but once.
    two.status = None
    compare_answers([one, two], [first])
    with pytest.raises(AssertionError, match="2 times"):
        compare_answers([one, two], [first, second, again])


def test_rows_that_are_lost_or_told_otherwise_are_noticed():
    class Row:
        state, tags = "tagged", json.dumps(["t"])

    _, entry = lesson("a", 1)
    asked = Sent("p", "/v1/predict", {"rows": [{"id": "b"}]}, False)
    asked.status = 200
    compare_rows([asked], [entry], {"a": Row, "b": Row})
    with pytest.raises(AssertionError, match="does not wait"):
        compare_rows([asked], [entry], {"a": Row})
    Row.tags = json.dumps(["u"])
    with pytest.raises(AssertionError):
        compare_rows([], [entry], {"a": Row})


def test_a_journal_under_watch_keeps_what_is_forgotten_and_refuses_changes(tmp_path):
    begin(url_of(tmp_path))
    engine = sql.create_engine(url_of(tmp_path))
    with engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO entries VALUES (1, 1, 0, 'learn', 'a', NULL, '', 1, '{}')")
        connection.exec_driver_sql("UPDATE entries SET body = NULL")
        assert connection.exec_driver_sql("SELECT * FROM witness").all() == [(1, "{}")]
    for statement in ("UPDATE entries SET body = '{}'", "UPDATE entries SET who = 'b'", "DELETE FROM entries"):
        with pytest.raises(sql.exc.IntegrityError, match="an entry is"), engine.begin() as connection:
            connection.exec_driver_sql(statement)
    engine.dispose()
