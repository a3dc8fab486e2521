"""The benchmarks of the service: small runs, and what they count."""

from __future__ import annotations

import csv
import os
import re
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from helpers.http import FakeService, listening
from helpers.serving import TICKETS, serving
from typer.testing import CliRunner

from benchmarks import asking, load
from benchmarks.__main__ import app
from benchmarks.load_generator import Load, drive, get, post


def lines_of(*arguments):
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout.splitlines()


def test_every_request_is_sent_once_and_measured():
    with listening(FakeService()) as port:
        requests = [post("/v1/predict", [{"title": f"row {number}"}]) for number in range(50)]
        one, other = drive(port, [Load(4, iter(requests)), Load(1, iter([get("/v1/status")] * 7))])
    assert (len(one.latencies), len(other.latencies)) == (50, 7)
    assert one.rate == pytest.approx(50 / one.seconds)
    assert 0 < max(one.latencies) <= one.seconds


def test_an_answer_that_is_no_success_ends_a_benchmark():
    with listening(FakeService()) as port, pytest.raises(ValueError, match="404"):
        drive(port, [Load(1, iter([get("/nothing")]))])


def test_tickets_are_the_same_for_a_seed_and_have_fifty_tags():
    assert list(load.tickets(20, seed=1)) == list(load.tickets(20, seed=1)) != list(load.tickets(20, seed=2))
    assert len({tag for row in load.tickets(3000) for tag in row["tags"]}) == load.N_TAGS


def test_ratios_and_latency_are_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(load, "_BEFORE", 300)
    with serving(tmp_path, snapshot_seconds=0.0) as service, listening(service) as port:
        # Of the service with itself.
        load.ratios(port, port, rounds=1, seconds=0.1)
        load.latency(port, seconds=0.1)
    told = capsys.readouterr().out
    assert len(re.findall(r"[\d,]+ requests a second +\d\.\d\d of bare", told)) == 4
    assert re.search(r"nobody teaches +[\d,]+ requests: median [\d.]+ ms, p99 [\d.]+ ms", told)
    assert re.search(r"2 snapshots written\n", told)


def test_a_journal_is_filled_and_looked_at(tmp_path, capfd, monkeypatch):
    @contextmanager
    def started(command):
        with serving(tmp_path) as service, listening(service) as port:
            yield load.Started(port, SimpleNamespace(pid=os.getpid()))

    monkeypatch.setattr(load, "_BEFORE", 300)
    monkeypatch.setattr(load, "_started", started)
    load.many_rows([], ["--data", str(tmp_path)], 40)
    told = capfd.readouterr().out
    assert len(re.findall(r"rows after +\d+ s: +\d+ MB", told)) == 10
    assert re.search(r"/v1/rows\?state=all&order=newest +[\d.]+ ms", told)
    assert re.findall(r"^(\w+) +[\d.]+ s$", told, re.M) == ["export", "start", "compact"]


def test_servers_are_started_and_ended():
    with load._started(load._BARE) as bare:
        [found] = drive(bare.port, [Load(1, iter([post("/v1/predict", [{"title": "An oven"}])]))])
        assert len(found.latencies) == 1
        assert bare.memory() > 1e7
    assert bare.process.poll() is not None
    with (
        pytest.raises(ValueError, match=r"does not start: (.|\n)*No such option"),
        load._started([*load._BARE, "--nothing"]),
    ):
        pass


def test_an_unknown_part_is_refused():
    assert isinstance(CliRunner().invoke(app, ["load", "nothing"]).exception, ValueError)


def test_rows_are_asked_for_in_both_orders(tmp_path):
    path = tmp_path / "tickets.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["subject", "body", "tags"])
        writer.writeheader()
        writer.writerows(
            {"subject": row["subject"], "body": row["body"], "tags": " ".join(row["tags"])} for row in TICKETS[:300]
        )
    told = lines_of("asking", str(path), "--seeds", "1", "--first", ".1", "--at-once", "10", "--asked", "80")
    assert told[1].split() == [str(n) for n in range(0, 81, 10)]
    assert [line.split()[0] for line in told[2:4]] == ["random", "useful"]
    values = [[float(value) for value in line.split()[1:]] for line in told[2:4]]
    assert values[0][0] == values[1][0] < min(values[0][-1], values[1][-1])


def test_every_row_is_asked_for_once(tmp_path, monkeypatch):
    asked = []
    teach = asking._teach
    monkeypatch.setattr(asking, "_teach", lambda service, kind, rows: asked.extend(rows) or teach(service, kind, rows))
    rows = [{"body": row["body"], "tags": row["tags"]} for row in TICKETS[:100]]
    asking.asked_for(rows, "useful", 0, asking.Sizes(0.1, 0.2, 7, 70))
    assert len({row["id"] for row in asked}) == len(asked) == 80


@pytest.mark.parametrize(("wanted", "rows"), [(0.2, 5.0), (0.3, 10.0), (0.5, 20.0), (0.6, None)])
def test_how_many_rows_an_f1_has_needed(wanted, rows):
    assert asking.labels_for([0, 10, 20], [0.1, 0.3, 0.5], wanted) == (None if rows is None else pytest.approx(rows))
