"""``labelrace serve`` from the shell: what is wrong is said, what is ready is said, and Ctrl-C keeps everything."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

pytest.importorskip("fastapi", reason="labelrace[serve] is not installed")

import labelrace
from labelrace.serve.lessons import Lesson
from labelrace.serve.service import open_service
from labelrace.streams.demo import demo_tickets

ROWS = [{"id": row.pop("ticket"), **row} for row in demo_tickets(60)]
NEW = ("serve", "--new", "--tags", "tags", "--data", "d")


@pytest.fixture
def tagger_file(tmp_path):
    path = tmp_path / "tagger.labelrace"
    labelrace.Tagger("tags", random_state=0).fit(ROWS).save(path)
    return path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--new"], "--data must be the folder of the journal, or --database"),
        (["--data", "d"], "--new --tags"),
        (["--data", "d", "--tags", "tags"], "--tags needs --new"),
        (["--data", "d", "--set", "threshold=.5"], "--set needs --new"),
        (["tagger.labelrace", "--new", "--data", "d"], "TAGGER and --new must not be given together"),
        (["nothing.labelrace", "--data", "d"], "nothing.labelrace"),
        (["--new", "--data", "file"], "--data must be a folder, got the file"),
        (["--new", "--data", "d", "--set", "nonsense=1"], "nonsense"),
        (["--new", "--data", "d", "--precision", "2"], "--precision must be"),
        (["--new", "--database", "mysql://host/db"], "PostgreSQL or SQLite"),
        (["--new", "--database", "nonsense"], "database must be a URL"),
        (["--new", "--data", "d", "--database", "sqlite:///d/j"], "--data and --database must not be given together"),
        (["--new", "--data", "d", "--host", "0.0.0.0"], "Give --token-file"),
        (["--new", "--data", "d", "--host", "192.0.2.1", "--token-file", "tokens"], "choose another with --host"),
        (["--new", "--data", "d", "--host", "no such host"], "Give --token-file"),
        (["--new", "--data", "d", "--token-file", "nothing"], "nothing"),
        (["--new", "--data", "d", "--token-file", "file"], "Line 1 of the token file must be a role"),
        (["--new", "--data", "d", "--token-file", "short"], "at least 16 ASCII characters"),
        (["--new", "--data", "d", "--token-file", "empty"], "at least one token"),
    ],
)
def test_wrong_calls_are_told_and_leave_nothing(refuses, tmp_path, arguments, words):
    (tmp_path / "file").write_text("no token")
    (tmp_path / "short").write_text("admin secret")
    (tmp_path / "empty").write_text("# nobody\n")
    (tmp_path / "tokens").write_text("admin 0123456789abcdef Ann\n")
    told = refuses("serve", *arguments, "--port", "0")
    assert words in told
    assert "secret" not in told
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("arguments", [["--port", "70000"], ["--rate", "0"], ["--max-body", "0"], ["--unknown"]])
def test_wrong_options_are_told(command, tmp_path, arguments):
    status, out, err = command(*NEW, *arguments)
    assert (status, out) == (2, "")
    assert arguments[0] in err
    assert not (tmp_path / "d").exists()


def test_a_port_that_is_used(refuses, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as used:
        told = refuses(*NEW, "--port", used.getsockname()[1])
    assert told.endswith("another program uses this port: choose another with --port.")
    assert not (tmp_path / "d").exists()


def test_a_model_is_no_tagger(refuses, tmp_path, model_file):
    assert "agger" in refuses("serve", model_file, "--data", "d", "--port", "0")
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        ("fastapi", ["serve", "--new", "--data", "d"], "serve"),
        ("sqlalchemy", ["serve", "export", "--data", "d"], "serve"),
        ("psycopg", ["serve", "--new", "--database", "postgresql://localhost:9/x", "--port", "0"], "serve,postgresql"),
        ("httpx", ["watch", "http://127.0.0.1:9"], "serve"),
    ],
)
def test_an_extra_that_is_missing_is_named(tmp_path, missing, arguments, extra):
    program = f"import sys; sys.modules[{missing!r}] = None; from labelrace.cli import command; command()"
    ended = subprocess.run([sys.executable, "-c", program, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.startswith("Error: ")
    assert f"pip install 'labelrace[{extra}]'" in ended.stderr
    assert "Traceback" not in ended.stderr


# --- Running ----------------------------------------------------------------------------------------------------------


def address_of(started):
    """Wait until a service says that it is ready, and return its address."""
    started.wait_until(lambda: "The journal is in" in started.stdout.read_text())
    told = started.stdout.read_text()
    found = re.search(r"labelrace serves (http://\S+) until Ctrl-C\.", told)
    assert found, told + started.end().err
    return found[1]


def test_it_serves_until_it_is_told_to_end_and_keeps_everything(start):
    first = start(*NEW, "--port", 0)
    with labelrace.Client(address_of(first), user="Ann") as client:
        client.learn(ROWS[:40])
        client.predict([{"id": "W-1", "subject": "waits"}])
        expected = client.predict([{"subject": row["subject"]} for row in ROWS[40:]])
    os.kill(first.pid, signal.SIGINT)
    ended = first.end()
    assert ended.status == 0, ended.err
    assert ended.out.splitlines()[1] == "The journal is in d."
    lines = [json.loads(line) for line in ended.err.splitlines()]
    assert {line["path"] for line in lines} == {"/v1/learn", "/v1/predict"}
    # It goes on where it was.
    again = start("serve", "--data", "d", "--port", 0)
    with labelrace.Client(address_of(again)) as client:
        assert client.status()["rows"] == 40
        assert [row["id"] for row in client.rows()] == ["W-1"]
        assert client.row(ROWS[0]["id"])["who"] == "Ann"
        assert client.predict([{"subject": row["subject"]} for row in ROWS[40:]]) == expected
    os.kill(again.pid, signal.SIGTERM)
    assert again.end().status == 0


def test_another_beginning_is_refused(refuses, tagger_file):
    open_service("d", new={"tags": "tags"}).close()
    assert "with other parameters: leave out --new" in refuses(
        "serve", "--new", "--tags", "labels", "--data", "d", "--port", 0
    )
    assert "was started with another tagger" in refuses("serve", tagger_file, "--data", "d", "--port", 0)


def test_a_tagger_with_tokens_a_precision_and_another_name(start, tmp_path, tagger_file):
    (tmp_path / "tokens").write_text("teach 0123456789abcdef Theo\n")
    options = ("--host", "0.0.0.0", "--token-file", "tokens", "--allow-host", "tags.example.org", "--rate", 100)
    started = start("serve", tagger_file, "--data", "d", "--port", 0, "--precision", ".9", *options)
    url = address_of(started)
    assert url.startswith("http://0.0.0.0:")
    local = url.replace("0.0.0.0", "127.0.0.1")
    with labelrace.Client(local, token="0123456789abcdef") as client:
        assert client.status()["rows"] == 60
        assert client.quality()["precision_curve"]["target"] == 0.9
    with labelrace.Client(local) as client, pytest.raises(labelrace.exceptions.ServiceError, match="token") as raised:
        client.status()
    assert raised.value.status == 401
    os.kill(started.pid, signal.SIGTERM)
    ended = started.end()
    assert ended.status == 0
    assert "0123456789abcdef" not in ended.out + ended.err


def test_further_ctrl_cs_do_not_lose_anything(start):
    started = start(*NEW, "--port", 0)
    with labelrace.Client(address_of(started)) as client:
        client.learn(ROWS[:10])
    for _ in range(3):
        os.kill(started.pid, signal.SIGINT)
    ended = started.end()
    assert ended.status in (0, 130), ended.err
    assert "Traceback" not in ended.err
    service = open_service("d")
    try:
        assert service.wait_for(1, 10)
        assert service.status()["rows"] == 10
    finally:
        service.close()


# --- The journal ------------------------------------------------------------------------------------------------------


def test_a_journal_is_exported_imported_backed_up_and_compacted(works, tmp_path):
    service = open_service("d", new={"tags": "tags"})
    for first in range(0, 60, 10):
        service.teach([Lesson("learn", {"rows": ROWS[first : first + 10]})])
    service.close()
    assert works("serve", "export", "--data", "d", "-o", "j.jsonl") == "6 entries: j.jsonl\n"
    assert works("serve", "export", "--data", "d") == (tmp_path / "j.jsonl").read_text()
    assert works("serve", "import", "j.jsonl", "--data", "e") == "Imported up to position 6: e\n"
    assert works("serve", "import", "-", "--data", "f", stdin=(tmp_path / "j.jsonl").read_text()).endswith("6: f\n")
    (tmp_path / "g").mkdir()
    assert works("serve", "backup", "g/journal.sqlite", "--data", "d") == "The journal is copied: g/journal.sqlite\n"
    for folder in "efg":
        assert works("serve", "export", "--data", folder) == (tmp_path / "j.jsonl").read_text()
    done = json.loads(works("serve", "compact", "--data", "d", "--json"))
    assert {"entries", "position", "before", "after"} <= done.keys()


@pytest.mark.parametrize("name", ["export", "compact"])
def test_a_journal_that_is_not_there(refuses, tmp_path, name):
    refuses("serve", name, "--data", "nothing")
    assert not (tmp_path / "nothing").exists()
    assert "--data" in refuses("serve", name)
