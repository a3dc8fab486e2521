"""Pages of rows: what they have, compared with all rows sorted and searched one by one; none looks at all rows."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
import sqlalchemy as sql
from helpers.serving import TICKETS, feedback, predict, serving, teach, without_tags

from labelrace.serve import listing
from labelrace.serve.problems import Problem

STATES = ("waiting", "tagged", "all")
SEARCHES = [{}, {"search": "invoice"}, {"tag": "billing"}, {"search": "the printer", "tag": "printing"}]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """Yield a service with 150 rows that are tagged and 100 that wait, one of which was tagged for a while."""
    with serving(tmp_path_factory.mktemp("journal")) as service:
        teach(service, TICKETS[:150], 50)
        predict(service, without_tags(TICKETS[150:250]))
        predict(service, [{"id": f"odd {i}", "subject": "Qqq", "body": "Xyzzy!"} for i in range(5)])
        feedback(service, {"id": TICKETS[200]["id"], "tags": ["billing"]})
        feedback(service, {"id": TICKETS[200]["id"], "tags": None})
        yield service


def stored(service):
    with closing(sqlite3.connect(service.database.url.database)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute("SELECT * FROM rows")]


def reference(service, state, order, search="", tag=""):
    """Return the ids of the rows that are wanted, by Python alone."""
    rows = [row for row in stored(service) if state in (row["state"], "all")]
    rows = [row for row in rows if all(word in row["words"] for word in search.split())]
    if tag:
        texts = ([row["tags"], row["suggested"]] for row in rows)
        kept = [any(json.dumps(tag) in text for text in both if text) for both in texts]
        rows = [row for row, is_kept in zip(rows, kept, strict=True) if is_kept]
    keys = {
        "newest": lambda row: -row["arrived"],
        "oldest": lambda row: row["arrived"],
        "review": lambda row: (-row["review"], -row["arrived"]),
        "useful": lambda row: (-row["useful"], -row["arrived"]),
    }
    return [row["id"] for row in sorted(rows, key=keys[order])]


def walk(service, **query):
    """Return the ids on all pages, and the number of pages."""
    ids, cursor, n_pages = [], "", 0
    while cursor is not None:
        page = service.rows(**query, after=cursor)
        ids += [row["id"] for row in page["rows"]]
        cursor, n_pages = page["next"], n_pages + 1
        assert n_pages < 500
    return ids, n_pages


@pytest.mark.parametrize("searched", [20_000, 9])
@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("order", listing.ORDERS)
@pytest.mark.parametrize("state", STATES)
def test_pages_are_all_rows_in_order(service, state, order, search, searched, monkeypatch):
    monkeypatch.setattr(listing, "SEARCHED", searched)
    ids, n_pages = walk(service, state=state, order=order, limit=17, **search)
    wanted = reference(service, state, order, **search)
    assert ids == wanted
    # A search that may look at few rows at once needs more pages, some of which are not full.
    assert n_pages >= (len(wanted) // 17 if searched > 9 or not search else 100 // 9)


def test_a_page_has_the_rows_after_its_cursor_also_if_others_come_meanwhile(tmp_path):
    with serving(tmp_path) as service:
        predict(service, without_tags(TICKETS[:20]))
        first = service.rows(limit=5)
        predict(service, without_tags(TICKETS[20:30]))
        second = service.rows(limit=5, after=first["next"])
        assert [row["id"] for row in first["rows"] + second["rows"]] == [row["id"] for row in TICKETS[19:9:-1]]


@pytest.mark.parametrize(
    ("order", "after"),
    [("newest", after) for after in ("-1", "x", "1,2", "[1]", "1.5", "true", f"{2**70}", "NaN", "[" * 400, '"1"')]
    + [("review", "2,1"), ("review", "0.5,1"), ("useful", "1e999,1"), ("useful", "0.5,1.0"), ("useful", "7")],
)
def test_a_cursor_that_is_none_is_refused(service, order, after):
    with pytest.raises(Problem, match="after must be what next was"):
        service.rows(order=order, after=after)


@pytest.mark.parametrize("search", SEARCHES[1:], ids=str)
def test_no_request_looks_at_all_rows(service, search):
    asked = []

    def note(connection, cursor, statement, parameters, context, executemany):
        if statement.startswith("SELECT"):
            asked.append((statement, parameters))

    sql.event.listen(service.database.engine, "before_cursor_execute", note)
    try:
        for state in STATES:
            for order in listing.ORDERS:
                cursor = service.rows(state=state, order=order, limit=2)["next"]
                service.rows(state=state, order=order, limit=2, after=cursor, **search)
        predict(service, [{"id": "new", "body": "Hello"}])
        service._waiting = (0.0, 0)
        service.status()
    finally:
        sql.event.remove(service.database.engine, "before_cursor_execute", note)
    assert len(asked) > 50
    with closing(sqlite3.connect(service.database.url.database)) as connection:
        for statement, parameters in asked:
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
            steps = [step for step in plan if "SCAN" in step or "TEMP B-TREE" in step]
            assert set(steps) <= {"SCAN CONSTANT ROW"}, (statement, plan)


def test_the_most_useful_rows_are_told_by_the_newest_model(tmp_path):
    with serving(tmp_path) as service:
        pool = TICKETS[150:250]
        predict(service, without_tags(pool))
        assert {row["useful"] for row in stored(service)} == {1.0}, "nothing is known yet"
        for start in (0, 50, 100):
            teach(service, TICKETS[start : start + 50], 50)
            listed = [row["id"] for row in service.rows(order="useful", limit=100)["rows"]]
            found = predict(service, [{"subject": row["subject"], "body": row["body"]} for row in pool])["rows"]
            useful = {row["id"]: expected_loss(one) for row, one in zip(pool, found, strict=True)}
            assert [useful[id] for id in listed] == pytest.approx(sorted(useful.values(), reverse=True))


def expected_loss(suggested):
    """Return one minus the expected F1, less where few tags are expected, as the documents state it."""
    likely = suggested["probabilities"]
    hits = sum(likely[tag] for tag in suggested["tags"])
    f1 = 2 * hits / (len(suggested["tags"]) + sum(likely.values()))
    return (1 - f1) * min(1, sum(likely.values()))
