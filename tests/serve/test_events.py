"""Events: in order, to all who listen, and no more of them than a listener takes."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from helpers.http import FakeService, asking, get, is_problem, listening, until
from helpers.serving import TICKETS, serving

from labelrace import Client
from labelrace.serve import events
from labelrace.serve.problems import Problem


def parsed(text):
    """Read server-sent events by the words of their specification: fields of lines, an empty line ends one."""
    found, one = [], {}
    for line in text.split("\n"):
        if not line:
            if "data" in one:
                found.append((one.get("event", "message"), json.loads(one["data"])))
            one = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            one[name] = value.removeprefix(" ")
    return found


def heard(service, tell, wanted, headers=None, **options):
    """Listen, have something told, and return what was heard up to some number of events."""
    with (
        listening(service, **options) as port,
        httpx.stream("GET", f"http://127.0.0.1:{port}/v1/events", headers=headers, timeout=10) as stream,
    ):
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.headers["cache-control"] == "no-store"
        text = ""
        for part in stream.iter_text():
            if not text:
                tell(service)
            text += part
            if len(parsed(text)) >= wanted:
                return parsed(text)
    return parsed(text)


def tell_rows(service, n=50):
    for number in range(n):
        service.tell("row", {"id": f"T-{number}", "state": "tagged", "who": None})


@pytest.mark.parametrize("headers", [None, {"Last-Event-ID": "7"}, {"Last-Event-ID": "x\ty" * 100}])
def test_events_are_in_order_and_begin_with_what_is_known(headers):
    """What happened before is not told: the first event has all that is current."""
    found = heard(FakeService(), tell_rows, 51, headers)
    assert found[0] == ("position", {"position": 1, "rows": 1, "tags": 1, "waiting": 1})
    assert [data["id"] for _, data in found[1:]] == [f"T-{number}" for number in range(50)]


def test_positions_are_told_now_and_then_and_the_last_one_always():
    def tell(service):
        for number in range(500):
            service.tell("position", {"position": number})

    found = heard(FakeService(), tell, 2)
    assert found[-1] == ("position", {"position": 499})
    assert len(found) < 10


def test_texts_cannot_make_events():
    hostile = "a\n\nevent: mark\ndata: {}\n\n\r\r\u2028"
    found = heard(FakeService(), lambda service: service.tell("row", {"id": hostile, "f1": float("nan")}), 2)
    assert found[1:] == [("row", {"id": hostile, "f1": None})]


def test_all_who_listen_hear_what_is_taught(tmp_path):
    with serving(tmp_path) as service, listening(service) as port:
        url = f"http://127.0.0.1:{port}"
        with Client(url, user="Ann") as teacher, Client(url) as one, Client(url) as other:
            streams = [one.events(), other.events()]
            for stream in streams:
                assert next(stream).name == "position"
            teacher.predict([{"id": "T-1", "subject": "x"}])
            teacher.learn(TICKETS[:2])
            for stream in streams:
                told = [next(stream) for _ in range(4)]
                rows = [event.data for event in told if event.name == "row"]
                assert {"id": "T-1", "state": "waiting", "who": None} in rows
                assert {"id": TICKETS[0]["id"], "state": "tagged", "who": "Ann"} in rows
                stream.close()
        until(lambda: "labelrace_listeners 0" in get(port, "/metrics").text)


def test_listeners_are_limited_and_come_back():
    service = FakeService()
    with listening(service, max_listeners=2) as port:
        url = f"http://127.0.0.1:{port}/v1/events"
        with httpx.stream("GET", url), httpx.stream("GET", url):
            answer = get(port, "/v1/events")
            is_problem(answer, 503, "2 listen already")
            assert answer.headers["retry-after"] == "10"
            assert "labelrace_listeners 2" in get(port, "/metrics").text

        def is_heard():
            with httpx.stream("GET", url) as stream:
                return stream.status_code == 200

        until(is_heard)


def test_a_listener_that_is_far_behind_is_sent_away():
    """It gets no more than its queue held, and the others hear all."""

    async def run():
        service = FakeService()
        told = events.Events(service, 10)
        slow, quick = await told.stream(), await told.stream()
        for number in range(2 * events._MAX_BEHIND):
            service.tell("row", {"id": str(number)})
            await asyncio.sleep(0)
            while not quick._queue.empty():
                assert quick._queue.get_nowait() is not None
        assert len(told) == 1
        assert slow._queue.qsize() == 1
        assert await slow._next() is None
        told.close()
        assert await quick._next() is None
        assert not service.listeners
        with pytest.raises(Problem, match="ends"):
            await told.stream()

    asyncio.run(run())


@pytest.mark.parametrize("behind", [3, events._MAX_BEHIND])
def test_a_listener_that_goes_away_is_none_any_more(behind):
    """However much waits for it."""

    async def run():
        service, sent = FakeService(), []
        told = events.Events(service, 10)
        stream, is_gone = await told.stream(), asyncio.Event()

        async def receive():
            await is_gone.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            # The other side reads nothing until it goes away.
            sent.append(message)
            if message.get("body"):
                await is_gone.wait()

        answering = asyncio.create_task(stream({"type": "http"}, receive, send))
        for number in range(behind):
            service.tell("row", {"id": str(number)})
        await asyncio.sleep(0)
        assert stream._queue.qsize() == behind
        is_gone.set()
        await asyncio.wait_for(answering, 10)
        assert len(told) == 0
        assert sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}
        told.close()

    asyncio.run(run())


def test_a_listener_is_kept_alive(monkeypatch):
    monkeypatch.setattr(events, "_HEARTBEAT_SECONDS", 0.05)
    with (
        listening(FakeService()) as port,
        httpx.stream("GET", f"http://127.0.0.1:{port}/v1/events", timeout=10) as stream,
    ):
        text = ""
        for part in stream.iter_text():
            text += part
            if text.count(":\n\n") + text.count(": \n\n") >= 3:
                break
    assert len(parsed(text)) == 1


def test_who_cannot_be_told_the_position_does_not_count_as_a_listener():
    service = FakeService(error=Problem(503, "Gone", "The disk is full."))
    with asking(service, max_listeners=1) as client:
        for _ in range(3):
            is_problem(client.get("/v1/events"), 503, "The disk is full.")
