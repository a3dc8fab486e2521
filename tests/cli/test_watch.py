"""``labelrace watch``: what it shows of a service, what it says where there is none, and how it ends."""

from __future__ import annotations

import io
import json
import os
import signal

import pytest
from helpers.http import PREDICT, TOKENS, listening
from helpers.serving import TICKETS, serving, teach
from rich.console import Console

from labelrace.cli.watch import Known, View, read_token
from labelrace.exceptions import ServiceError
from labelrace.serve.calls import Event

HOSTILE = "\x1b[31mred\x1b]0;title\x07\u202e"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("journal")) as service:
        teach(service, [*TICKETS[:80], {"id": "H", "subject": "x", "tags": [HOSTILE]}], 20)
        yield service


@pytest.fixture(scope="module")
def url(service):
    with pytest.MonkeyPatch.context() as patch:
        # The service, which runs here, would write its requests among what the command says.
        patch.setattr("labelrace.serve.logs._to_stderr", lambda text: None)
        with listening(service) as port:
            yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "url must be the address of a service"),
        (["http://127.0.0.1:9", "--once"], "cannot be reached"),
        (["http://127.0.0.1:9", "--token-file", "nothing"], "nothing"),
        (["http://127.0.0.1:9", "--token-file", "empty"], "must hold a token"),
    ],
)
def test_wrong_calls_are_told(refuses, tmp_path, monkeypatch, arguments, words):
    monkeypatch.setattr("labelrace.serve.client.time.sleep", lambda seconds: None)
    (tmp_path / "empty").write_text("# nothing\n\n")
    assert words in refuses("watch", *arguments)


def test_once(works, url):
    shown = works("watch", url, "--once")
    assert "81" in shown
    assert "billing" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    known = json.loads(works("watch", url, "--once", "--json"))
    assert known["status"]["rows"] == 81
    assert known["url"] == url
    assert len(known["tags"]) == 8


def test_a_token_is_read_from_a_file(command, service, tmp_path):
    (tmp_path / "token").write_text(f"# mine\n{PREDICT}\n")
    (tmp_path / "tokens").write_text("\n".join(TOKENS[:1]) + "\n")
    (tmp_path / "wrong").write_text("0123456789abcdef\n")
    assert read_token(tmp_path / "token") == read_token(tmp_path / "tokens") == PREDICT
    with listening(service, TOKENS) as port:
        address = f"http://127.0.0.1:{port}"
        for name in ("token", "tokens"):
            told = command("watch", address, "--once", "--json", "--token-file", name)
            assert json.loads(told.out)["status"]["rows"] == 81
        for options in ((), ("--token-file", "wrong")):
            # The service logs to the same standard error here.
            told = command("watch", address, "--once", *options)
            assert told.status == 1
            assert "Error: This needs a token with the role predict.\n" in told.err


@pytest.mark.parametrize("options", [("--json",), ()], ids=["JSON", "lines"])
def test_events_until_ctrl_c(start, tmp_path_factory, options):
    with serving(tmp_path_factory.mktemp("journal")) as service, listening(service) as port:
        started = start("watch", f"http://127.0.0.1:{port}", *options)
        started.wait_until(lambda: service._listeners)
        teach(service, [TICKETS[0], TICKETS[1]])
        word = TICKETS[1]["id"]
        started.wait_until(lambda: word in started.stdout.read_text())
        os.kill(started.pid, signal.SIGINT)
        ended = started.end()
    assert ended.status == 130, ended.err
    assert "Traceback" not in ended.err
    if options:
        told = [json.loads(line) for line in ended.out.splitlines()]
        assert told[0]["event"] == "position"
        assert {"event": "row", "id": word, "state": "tagged", "who": None} in told
    else:
        assert f"{word}: tagged" in ended.out.splitlines()


def test_all_numbers_of_a_large_service_fit_into_80_columns():
    names = "rows", "position", "tags", "waiting", "corrections"
    status = dict(zip(names, (1_234_567, 2_345_678, 9_876, 100_000, 34_567), strict=True))
    shares = dict(zip(("example_f1", "precision", "recall", "agreement"), (0.81, 0.82, 0.73, 0.54), strict=True))
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(View(Known("http://host", status, {"recent": shares}, [])).picture())
    text = console.export_text().split()
    assert {*(f"{number:,}" for number in status.values()), *map(str, shares.values())} <= {*text}
    assert {"learned", "position", "tags", "waiting", "corrected", "F1", "precision", "recall", "suggested"} <= {*text}


def test_the_picture_cannot_control_the_terminal():
    tag = {"tag": HOSTILE, "rows": 3, "f1": None, "recent_f1": 0.5, "trend": "rising"}
    quality = {"recent": {"example_f1": 0.5}, "windows": [{"example_f1": 0.1 * n} for n in range(60)], "marks": []}
    view = View(Known("http://host", {"rows": 5}, quality, [tag]))
    for event in (
        Event("row", {"id": HOSTILE, "state": "tagged", "who": HOSTILE}),
        Event("open", {"id": "a", "open_by": HOSTILE}),
        Event("open", {"id": "a", "open_by": None}),
        Event("mark", {"kind": "drift", "row": 7}),
        Event("position", {"rows": 6}),
        Event("unknown", {}),
    ):
        view.take(event)
    view.take(ServiceError(f"It is gone: {HOSTILE}"))
    console = Console(width=150, force_terminal=False, record=True, file=io.StringIO())
    console.print(view.picture())
    text = console.export_text()
    assert not {char for char in text if not char.isprintable()} - {"\n"}
    assert "6" in text
    assert "Drift confirmed at row 7" in text
    assert "opened by" in text
    assert "It is gone" in text
