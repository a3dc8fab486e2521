"""People who ask services, which are killed meanwhile, and teach them: the load of `benchmarks.durability`."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from functools import cache
from typing import Any

from benchmarks.kills import Nursery
from labelrace.streams.demo import demo_tickets

_ANSWER_SECONDS = 120.0

Json = dict[str, Any]


@cache
def tickets() -> list[Json]:
    """Return rows with tags, without ids."""
    return [{name: one[name] for name in ("subject", "body", "tags")} for one in demo_tickets(2000)]


class Sent:
    """A request that teaches, or predicts rows that wait.

    Parameters
    ----------
    name : str
        Its own: it is the user in the journal, and the key.
    path : str
    body : dict
    has_key : bool
    """

    def __init__(self, name: str, path: str, body: Json, has_key: bool) -> None:
        self.name = name
        self.path = path
        self.body = body
        self.has_key = has_key
        self.times = 0
        self.status: int | None = None  # of the answer; None if there was none
        self.answer: Json = {}


class Person(threading.Thread):
    """Asks services, and teaches them; what gets no answer is sent again, most times.

    Parameters
    ----------
    number : int
    seed : int
    nursery : Nursery
    services : list of str
        The names of the services to ask.
    pause : float
        Seconds between requests.
    """

    def __init__(self, number: int, seed: int, nursery: Nursery, services: list[str], pause: float) -> None:
        super().__init__(name=f"person-{number}", daemon=True)
        self.number = number
        self.sent: list[Sent] = []
        self.error: BaseException | None = None
        self.stops = threading.Event()
        self._draw = random.Random(f"{seed} {number}")
        self._nursery = nursery
        self._services = services
        self._at = number
        self._pause = pause
        self._connection: http.client.HTTPConnection | None = None
        self._waiting: list[str] = []
        self._told: list[str] = []

    def run(self) -> None:
        """Send requests until it is enough; the last one is not given up."""
        try:
            while not self.stops.is_set():
                self._send(self._next())
                time.sleep(self._pause * self._draw.random() * 2)
        except BaseException as error:
            self.error = error
        finally:
            self._disconnect()

    # What is sent.

    def _next(self) -> Sent:
        """Return a request, of any kind."""
        draw = self._draw
        kind = draw.choices(["learn", "predict", "feedback", "correct", "take back", "change"], [40, 25, 20, 8, 3, 2])[
            0
        ]
        if kind == "feedback" and not self._waiting:
            kind = "predict"
        if kind in ("correct", "take back") and not self._told:
            kind = "learn"
        name = f"p{self.number}-{len(self.sent)}"
        if kind == "learn":
            rows = [self._row(f"{name}-{at}", draw.random() < 0.5) for at in range(draw.randint(1, 3))]
            return Sent(name, "/v1/learn", {"rows": rows}, draw.random() < 0.8)
        if kind == "predict":
            rows = [self._row(f"{name}-{at}", True) for at in range(draw.randint(1, 2))]
            rows = [{key: cell for key, cell in row.items() if key != "tags"} for row in rows]
            return Sent(name, "/v1/predict", {"rows": rows}, False)
        if kind == "change":
            return Sent(name, *self._change(), True)
        listed = self._waiting if kind == "feedback" else self._told
        row = {"id": listed.pop(draw.randrange(len(listed)))}
        if kind == "take back":
            return Sent(name, "/v1/feedback", {"rows": [{**row, "tags": None}]}, True)
        said = (
            {"tags": draw.choice(tickets())["tags"]}
            if draw.random() < 0.6
            else {"add": [f"topic {draw.randint(1, 9)}"]}
        )
        return Sent(name, "/v1/feedback", {"rows": [row | said]}, True)

    def _row(self, name: str, has_id: bool) -> Json:
        row = dict(self._draw.choice(tickets()))
        row["tags"] = [*row["tags"], f"topic {self._draw.randint(1, 9)}"]
        row["subject"] = f"{row['subject']} {name}"
        return {"id": name, **row} if has_id else row

    def _change(self) -> tuple[str, Json]:
        one, two = (f"topic {number}" for number in self._draw.sample(range(1, 10), 2))
        changes: list[tuple[str, Json]] = [
            ("/v1/tags/rename", {"names": {one: f"{two} and more"}}),
            ("/v1/tags/merge", {"tags": [one], "into": two}),
            ("/v1/tags/retire", {"tags": [one]}),
            ("/v1/tags/describe", {"tags": {one: {"synonyms": [f"{one} too {len(self.sent)}"]}}}),
        ]
        return self._draw.choice(changes)

    # How it is sent.

    def _send(self, request: Sent) -> None:
        """Send a request until there is an answer; without a key, or sometimes with one, only once."""
        self.sent.append(request)
        until = time.monotonic() + _ANSWER_SECONDS
        while request.status in (None, 503):
            lost = not self._try(request)
            is_predicted = request.path == "/v1/predict"
            if lost and (not (request.has_key or is_predicted) or self._draw.random() < 0.1):
                return
            if request.status == 503 and not request.has_key and not is_predicted:
                return
            if time.monotonic() > until:
                raise AssertionError(f"No answer to {request.path}: {request.status} {request.answer}")
        self._learn_from(request)

    def _try(self, request: Sent) -> bool:
        """Send a request once; return whether there was an answer, or nothing was sent."""
        headers = {"Content-Type": "application/json", "X-Labelrace-User": request.name}
        if request.has_key:
            headers["Idempotency-Key"] = request.name
        request.status = None
        try:
            if self._connection is None:
                name = self._services[self._at % len(self._services)]
                port = self._nursery.port(name)
                if port is None:
                    raise ConnectionRefusedError
                self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                self._connection.connect()
        except OSError:
            # It has not begun again: the next one may have.
            self._disconnect()
            self._at += 1
            time.sleep(0.02)
            return True
        request.times += 1
        try:
            self._connection.request("POST", request.path, json.dumps(request.body), headers)
            answer = self._connection.getresponse()
            content = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            self._disconnect()
            self._at += 1
            return False
        request.status, request.answer = answer.status, content
        if answer.status == 503:
            time.sleep(0.02)
        return True

    def _learn_from(self, request: Sent) -> None:
        """Remember the rows of which more can be said."""
        if request.status != 200:
            return
        ids = [row["id"] for row in request.body.get("rows", ()) if "id" in row]
        (self._waiting if request.path == "/v1/predict" else self._told).extend(ids)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
