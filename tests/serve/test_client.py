"""The client against a stub that answers what a test says: what is sent, what is sent again, what an error tells."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import labelrace
from labelrace import AsyncClient, Client
from labelrace.exceptions import LabelraceError, ServiceError
from labelrace.serve import calls
from labelrace.serve.calls import Event, EventReader, LineReader, json_rows

PROBLEM = {
    "type": "about:blank",
    "title": "Rows cannot be learned",
    "status": 422,
    "detail": "Row 1: tags must be a list of texts, got 5.",
    "errors": [{"row": 1, "field": "tags", "detail": "tags must be a list of texts, got 5."}],
}
HANG_UP = None


class Received(NamedTuple):
    """A request that came to the stub."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Stub(ThreadingHTTPServer):
    """Answers with what it is given, one after the other, and the last one again and again."""

    daemon_threads = True

    def __init__(self, *answers: Any) -> None:
        self.answers, self.received, self.lock = list(answers), list[Received](), threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def keys(self) -> list[str | None]:
        return [one.headers.get("Idempotency-Key") for one in self.received]


class Handler(BaseHTTPRequestHandler):
    """Hands requests to the stub."""

    protocol_version = "HTTP/1.1"
    server: Stub

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.lock:
            body = json.loads(content) if content else None
            self.server.received.append(Received(self.command, self.path, dict(self.headers), body))
            answers = self.server.answers
            status, headers, body = (answers.pop(0) if len(answers) > 1 else answers[0]) or (0, {}, b"")
        self.close_connection = True
        if status:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Connection", "close")
            self.send_header("Content-Length", str(len(content) + int(headers.get("X-Cut", 0))))
            self.end_headers()
            with suppress(ConnectionError):  # a client that did not wait
                self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def stub():
    """Return a function that starts a stub with its answers."""
    started = []

    def start(*answers):
        started.append(Stub(*answers))
        threading.Thread(target=started[-1].serve_forever, args=(0.01,), daemon=True).start()
        return started[-1]

    yield start
    for one in started:
        one.shutdown()
        one.server_close()


@pytest.fixture
def pauses(monkeypatch):
    """Let no client wait, and return the seconds that they would have."""
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    monkeypatch.setattr("labelrace.serve.client.time.sleep", waited.append)
    monkeypatch.setattr("labelrace.serve.client.asyncio.sleep", sleep)
    return waited


def ok(body, **headers):
    return 200, headers, body


LEARNED = ok({"learned": 1, "position": 4})
ROW = {"id": "T-1", "title": "Oven too hot", "tags": ["oven"]}
NO_SERVICE = "http://127.0.0.1:9"


def calling(kind, url, method, *arguments, **settings):
    """Call a method of either client and return its result."""
    client_settings = {name: settings.pop(name) for name in ("token", "user", "retries", "timeout") if name in settings}
    if kind is Client:
        with Client(url, **client_settings) as client:
            return getattr(client, method)(*arguments, **settings)

    async def call():
        async with AsyncClient(url, **client_settings) as client:
            return await getattr(client, method)(*arguments, **settings)

    return asyncio.run(call())


BOTH = pytest.mark.parametrize("kind", [Client, AsyncClient])


@BOTH
def test_predicting(stub, kind):
    answer = {"rows": [{"id": "T-1", "tags": ["oven"], "probabilities": {"oven": 0.9}, "review": False}], "position": 3}
    service = stub(ok(answer))
    found = calling(kind, service.url, "predict", [{"id": "T-1", "title": "Oven"}], True, token="secret", user="Ann")
    assert found == answer["rows"]
    (sent,) = service.received
    assert (sent.method, sent.path) == ("POST", "/v1/predict")
    assert sent.body == {"rows": [{"id": "T-1", "title": "Oven"}], "explain": True}
    assert sent.headers["Authorization"] == "Bearer secret"
    assert sent.headers["X-Labelrace-User"] == "Ann"
    assert sent.headers["Content-Type"] == "application/json"
    assert "Idempotency-Key" not in sent.headers


@BOTH
@pytest.mark.parametrize("method", ["learn", "feedback"])
def test_what_teaches_has_a_key_that_stays_when_it_is_sent_again(stub, pauses, kind, method):
    busy = (503, {"Retry-After": "2"}, {"detail": "The journal cannot be written now."})
    service = stub(HANG_UP, busy, (429, {"Retry-After": "0"}, b""), LEARNED)
    assert calling(kind, service.url, method, [ROW]) == {"learned": 1, "position": 4}
    assert len(service.received) == 4
    assert len(set(service.keys)) == 1
    assert 16 <= len(service.keys[0]) <= 200
    assert 0.1 < pauses[0] <= 0.25
    assert 2.0 <= pauses[1] <= 2.25
    assert 0.0 <= pauses[2] <= 0.25
    calling(kind, service.url, method, [ROW])
    assert service.keys[-1] != service.keys[0]


@BOTH
def test_a_key_of_ones_own(stub, kind):
    service = stub(LEARNED)
    calling(kind, service.url, "learn", [ROW], key="import-2024")
    assert service.keys == ["import-2024"]


@BOTH
@pytest.mark.parametrize(
    ("key", "rows", "words"),
    [
        ("Mai für", 1, "ASCII"),
        ("a\nb", 1, "ASCII"),
        (7, 1, "ASCII"),
        (200 * "a" + "b", 1, "at most 200 characters, got 201"),
        (199 * "a", 501, "at most 198 characters for so many rows"),
    ],
)
def test_a_key_that_cannot_be_sent_is_refused_before_anything_is(stub, kind, key, rows, words):
    service = stub(LEARNED)
    with pytest.raises(ValueError, match=words) as raised:
        calling(kind, service.url, "learn", [ROW] * rows, key=key)
    assert type(raised.value) is ValueError
    assert service.keys == []


@BOTH
def test_large_tables_go_in_parts_each_with_its_key(stub, kind):
    service = stub(
        ok({"learned": 500, "position": 1}), ok({"learned": 500, "position": 2}), ok({"learned": 5, "position": 3})
    )
    answer = calling(kind, service.url, "learn", [ROW] * 1005, key="all")
    assert answer == {"learned": 1005, "position": 3}
    assert [len(one.body["rows"]) for one in service.received] == [500, 500, 5]
    assert service.keys == ["all-0", "all-1", "all-2"]


@BOTH
def test_what_is_wrong_is_said_once(stub, pauses, kind):
    service = stub((422, {}, PROBLEM))
    with pytest.raises(ServiceError, match="Row 1: tags must be a list of texts, got 5") as raised:
        calling(kind, service.url, "learn", [ROW])
    assert (raised.value.status, raised.value.errors) == (422, tuple(PROBLEM["errors"]))
    assert len(service.received) == 1
    assert not pauses
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.status, copy.errors) == (PROBLEM["detail"], 422, tuple(PROBLEM["errors"]))
    assert isinstance(raised.value, LabelraceError | RuntimeError)


@BOTH
def test_it_gives_up_in_the_end(stub, pauses, kind):
    service = stub((503, {}, {"detail": "The disk is full."}))
    with pytest.raises(ServiceError, match="The disk is full"):
        calling(kind, service.url, "learn", [ROW], retries=3)
    assert len(service.received) == 4
    assert len(pauses) == 3
    assert pauses == sorted(pauses)


@BOTH
def test_nobody_there(pauses, kind):
    with pytest.raises(ServiceError, match=r"service at http://127\.0\.0\.1:9 cannot be reached .*check") as raised:
        calling(kind, NO_SERVICE, "status", retries=2)
    assert raised.value.status is None
    assert len(pauses) == 2


@BOTH
def test_no_answer_in_time(stub, pauses, kind):
    service = stub(ok({}))
    service.lock.acquire()  # it reads the request and does not answer
    try:
        with pytest.raises(ServiceError, match=r"cannot be reached"):
            calling(kind, service.url, "status", retries=0, timeout=0.2)
    finally:
        service.lock.release()


@BOTH
@pytest.mark.parametrize(
    ("status", "body", "words"),
    [(200, b"<html>", "is not JSON"), (404, b"<html>", "status 404"), (403, {"message": "no"}, "status 403")],
)
def test_something_else_answers(stub, kind, status, body, words):
    with pytest.raises(ServiceError, match=words) as raised:
        calling(kind, stub((status, {}, body)).url, "status")
    assert raised.value.status == status


def test_a_token_is_not_sent_elsewhere(stub):
    other = stub(ok({}))
    service = stub((307, {"Location": f"{other.url}/v1/status"}, b""))
    with pytest.raises(ServiceError, match="status 307"):
        calling(Client, service.url, "status", token="secret")
    assert not other.received


@BOTH
def test_rows_are_listed_page_by_page(stub, kind):
    page = [{"id": str(number)} for number in range(200)]
    service = stub(
        ok({"rows": page, "waiting": 450, "next": "b"}), ok({"rows": page[:50], "waiting": 450, "next": "c"})
    )
    found = calling(kind, service.url, "rows", "all", order="useful", search="hot & cold", tag="oven", limit=250)
    assert len(found) == 250
    assert [one.path for one in service.received] == [
        "/v1/rows?state=all&order=useful&search=hot+%26+cold&tag=oven&limit=200",
        "/v1/rows?state=all&order=useful&search=hot+%26+cold&tag=oven&limit=50&after=b",
    ]
    last = stub(ok({"rows": [], "waiting": 0, "next": None}))
    assert calling(kind, last.url, "rows") == []
    assert len(last.received) == 1


@BOTH
@pytest.mark.parametrize(
    ("method", "arguments", "path", "body"),
    [
        ("row", ("a/b?c",), "/v1/rows/a%2Fb%3Fc", None),
        ("status", (), "/v1/status", None),
        ("quality", (), "/v1/quality", None),
        ("rename", ({"a": "b"},), "/v1/tags/rename", {"names": {"a": "b"}, "preview": False}),
        ("merge", (["a", "b"], "c"), "/v1/tags/merge", {"tags": ["a", "b"], "into": "c", "preview": False}),
        ("retire", (["a"],), "/v1/tags/retire", {"tags": ["a"], "preview": False}),
        (
            "describe",
            ({"a": {"parent": "b"}},),
            "/v1/tags/describe",
            {"tags": {"a": {"parent": "b"}}, "preview": False},
        ),
    ],
)
def test_paths(stub, kind, method, arguments, path, body):
    service = stub(ok({"position": 1}))
    assert calling(kind, service.url + "/", method, *arguments) == {"position": 1}
    (sent,) = service.received
    assert (sent.path, sent.body) == (path, body)
    assert ("Idempotency-Key" in sent.headers) == (body is not None)


@BOTH
def test_tags(stub, kind):
    service = stub(ok({"tags": [{"tag": "oven"}], "position": 1}))
    assert calling(kind, service.url, "tags", "ov") == [{"tag": "oven"}]
    assert service.received[0].path == "/v1/tags?search=ov&limit=1000"


def test_a_preview_changes_nothing_and_has_no_key(stub):
    service = stub(ok({"changed": 1}))
    calling(Client, service.url, "rename", {"a": "b"}, preview=True)
    assert service.received[0].body["preview"] is True
    assert service.keys == [None]


def collect(kind, url, method, n, **settings):
    """Return the first of what a client yields."""
    if kind is Client:
        with Client(url, **settings) as client:
            return [one for _, one in zip(range(n), getattr(client, method)(), strict=False)]

    async def call():
        found = []
        async with AsyncClient(url, **settings) as client:
            async for one in getattr(client, method)():
                found.append(one)
                if len(found) == n:
                    break
        return found

    return asyncio.run(call())


@BOTH
def test_events_go_on_after_a_break(stub, pauses, kind):
    first = b': hello\n\nevent: position\ndata: {"rows": 1}\n\nevent: row\nda'
    second = b'event: mark\r\ndata: {"kind": "alarm",\r\ndata: "row": 7}\r\n\r\nevent: row\ndata: no json\n\n'
    service = stub(ok(first), HANG_UP, ok(second + first))
    found = collect(kind, service.url, "events", 3)
    assert found == [
        Event("position", {"rows": 1}),
        Event("mark", {"kind": "alarm", "row": 7}),
        Event("position", {"rows": 1}),
    ]
    assert [one.path for one in service.received] == ["/v1/events"] * 3
    assert len(pauses) == 2


@BOTH
def test_events_end_with_an_error(stub, pauses, kind):
    with pytest.raises(ServiceError, match="status 403") as raised:
        collect(kind, stub((403, {}, b"")).url, "events", 1)
    assert raised.value.status == 403
    with pytest.raises(ServiceError, match="cannot be reached"):
        collect(kind, NO_SERVICE, "events", 1, retries=1)
    assert len(pauses) == 1


@BOTH
def test_export(stub, kind):
    journal = b'{"position": 1}\n{"position": 2}\n{"position": 3}'
    found = collect(kind, stub(ok(journal)).url, "export", 9)
    assert found == [b'{"position": 1}\n', b'{"position": 2}\n', b'{"position": 3}']
    with pytest.raises(ServiceError, match="cannot be reached"):
        collect(kind, stub((200, {"X-Cut": "5"}, journal)).url, "export", 9)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_streams_come_in_any_parts(size):
    text = 'event: row\ndata: {"id": "Ä\u2028"}\n\n: nothing\n\ndata: {}\n\n'.encode()
    events, lines = EventReader(), LineReader()
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    assert [one for part in parts for one in events.read(part)] == [
        Event("row", {"id": "Ä\u2028"}),
        Event("message", {}),
    ]
    found = [line for part in parts for line in lines.read(part)] + list(lines.rest())
    assert b"".join(found) == text
    assert all(line.endswith(b"\n") for line in found)


FRAME = pd.DataFrame(
    {
        "id": [7, 8],
        "title": ["Oven", None],
        "price": [1.5, np.nan],
        "when": pd.to_datetime(["2024-05-06 07:08:09", None]),
        "tags": [["oven"], {"b", "a"}],
    }
)
ROWS = [
    {"id": 7, "title": "Oven", "price": 1.5, "when": "2024-05-06T07:08:09", "tags": ["oven"]},
    {"id": 8, "tags": ["a", "b"]},
]


def test_tables_of_any_kind_are_the_same_rows():
    assert json_rows(FRAME) == ROWS
    assert json_rows(pa.Table.from_pylist(ROWS)) == ROWS
    assert json_rows(ROWS) == ROWS
    assert json_rows({name: [row.get(name) for row in ROWS] for name in ROWS[0]}) == ROWS


def test_what_a_dict_has_as_none_is_said():
    rows = [{"id": "a", "tags": None}, {"id": "b", "add": ["x"], "remove": ("y",)}]
    assert json_rows(rows) == [{"id": "a", "tags": None}, {"id": "b", "add": ["x"], "remove": ["y"]}]


def test_cells_of_numpy_and_others():
    row = {
        "a": np.float32(0.1),
        "b": np.int64(5),
        "c": np.bool_(True),
        "d": np.array(["x"]),
        "e": 5.0,
        "f": float("nan"),
    }
    assert json_rows([row]) == [{"a": 0.1, "b": 5, "c": True, "d": ["x"], "e": 5, "f": None}]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"a": b"x"}], "got bytes in the column 'a'"),
        ([{"a": {"b": 1}}], "got dict in the column 'a'"),
        ([{"a": float("inf")}], "finite"),
        (np.zeros((2, 2)), "columns with names"),
        (5, "must be a table"),
    ],
)
def test_rows_that_cannot_be_sent(rows, words):
    with pytest.raises(ValueError, match=words):
        json_rows(rows)


@pytest.mark.parametrize(
    ("url", "settings", "words"),
    [
        ("127.0.0.1:8080", {}, "url must be the address"),
        ("ftp://host", {}, "url must be the address"),
        (None, {}, "url must be the address"),
        (NO_SERVICE, {"retries": -1}, "retries must be"),
        (NO_SERVICE, {"timeout": 0}, "timeout must be"),
        (NO_SERVICE, {"token": "a\nb"}, "token must be a text in one line"),
        (NO_SERVICE, {"token": "Ä"}, "ASCII"),
        (NO_SERVICE, {"user": ""}, "user must be a text in one line"),
    ],
)
@BOTH
def test_wrong_parameters(kind, url, settings, words):
    with pytest.raises(ValueError, match=words) as raised:
        kind(url, **settings)
    assert settings.get("token", "?") not in str(raised.value)


@pytest.mark.parametrize(("asked", "seconds"), [("5", 5.0), ("soon", None), ("-3", 0.0), ("inf", None), (None, None)])
def test_retry_after(asked, seconds):
    assert calls._retry_seconds(asked) == seconds


def test_retry_after_as_a_date():
    assert calls._retry_seconds("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert calls._retry_seconds("Wed, 21 Oct 2115 07:28:00 GMT") > 1e9


def test_names_in_any_script_can_be_sent(stub):
    service = stub(ok({}))
    calling(Client, service.url, "status", user="Zoë Ωmega")
    assert service.received[0].headers["X-Labelrace-User"] == "Zo%C3%AB %CE%A9mega"


def test_one_client_for_several_threads(stub):
    service = stub(LEARNED)
    with Client(service.url) as client:
        threads = [threading.Thread(target=client.learn, args=([ROW],)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(service.keys)) == 8


def test_no_proxy_is_asked_on_this_machine(stub, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", NO_SERVICE)
    monkeypatch.setenv("http_proxy", NO_SERVICE)
    assert calling(Client, stub(ok({"rows": 5})).url, "status", retries=0) == {"rows": 5}


def test_httpx_is_imported_where_it_is_used():
    code = (
        "import sys, labelrace; labelrace.Client; assert 'httpx' not in sys.modules;"
        "sys.modules['httpx'] = None\n"
        "try:\n    labelrace.Client('http://host')\n"
        "except ImportError as error:\n    print(error)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "labelrace.Client needs httpx: pip install 'labelrace[serve]'.\n"


def test_a_file_cannot_name_a_client(tmp_path):
    model = labelrace.make_model("majority").partial_fit(np.eye(2), np.eye(2))
    model.save(tmp_path / "model.safetensors")
    content = (tmp_path / "model.safetensors").read_bytes()
    assert b"ConstantClassifier" in content
    (tmp_path / "model.safetensors").write_bytes(content.replace(b"ConstantClassifier", b"Client            "))
    with pytest.raises(labelrace.exceptions.ModelFileError):
        labelrace.load(tmp_path / "model.safetensors")
