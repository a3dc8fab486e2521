"""Services for tests: a journal in a folder, tickets, and what people say of them."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

pytest.importorskip("fastapi", reason="labelrace[serve] is not installed")

from labelrace.serve.follower import Options
from labelrace.serve.lessons import Lesson, Prediction
from labelrace.serve.problems import Problem
from labelrace.serve.service import open_service
from labelrace.streams.demo import demo_tickets

TICKETS = [{"id": row.pop("ticket"), **row} for row in demo_tickets(1200)]


def without_tags(rows):
    return [{name: cell for name, cell in row.items() if name != "tags"} for row in rows]


@contextmanager
def serving(folder, **options):
    """Yield a service on a journal in a folder, which begins from nothing if there is none."""
    service = open_service(folder, new={"tags": "tags"}, options=Options(**options))
    try:
        yield service
    finally:
        service.close()


def teach(service, rows, size=10, key=None, who=""):
    """Teach rows in requests of some size, one commit each, and return the last answer."""
    answer = None
    for start in range(0, len(rows), size):
        named = None if key is None else f"{key}-{start}"
        [answer] = service.teach([Lesson("learn", {"rows": rows[start : start + size]}, named, who)])
        assert not isinstance(answer, Problem), answer.detail
    return answer


def predict(service, rows, explain=False):
    [answer] = service.predict([Prediction(rows, explain)])
    assert not isinstance(answer, Problem), answer.detail
    return answer


def feedback(service, *rows, who="", key=None):
    """Give feedback, and return the answer or the problem."""
    [answer] = service.teach([Lesson("feedback", {"rows": list(rows)}, key, who)])
    return answer
