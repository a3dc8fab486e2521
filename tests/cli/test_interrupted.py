"""Ctrl-C and kills: files are valid, what was done is kept, and nothing is left running."""

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from helpers.records import lasting

import labelrace
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.fitted import Fitted
from labelrace.evaluation import read_run

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="the system has no process groups")

SETTINGS = ("-m", "race-cls-fixed", "-m", "majority", "--batch-size", 4, "--runs", 2, "--seed", 2)
SAID = "Interrupted.\n"


def size(path):
    return path.stat().st_size if path.exists() else 0


def running(group):
    """Return which processes of a group are alive."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = path.parent.name, path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if rest[0] != "Z" and int(rest[2]) == group:
            found.append(number)
    return found


@pytest.fixture
def interrupt_in(monkeypatch):
    """Send Ctrl-C to this process in the middle of a method of a model, at one of its calls."""

    def patch(method, at, owner=OnlineClassifier):
        original, calls = getattr(owner, method), []

        def interrupted(self, *arguments):
            result = original(self, *arguments)
            calls.append(1)
            if len(calls) == at:
                signal.raise_signal(signal.SIGINT)
            return result

        monkeypatch.setattr(owner, method, interrupted)

    return patch


@pytest.mark.parametrize("at", [1, 40])
def test_interrupted_run(command, works, files, interrupt_in, at):
    settings = ("run", files(".arff"), *SETTINGS, "--jobs", 1)
    works(*settings, "--out", "complete")
    interrupt_in("predict", at)
    kept = "Nothing was finished yet."
    if at > 1:
        kept = "What was finished is in cut: repeat the command with --out cut --resume to continue."
    assert command(*settings, "--out", "cut") == (130, "", f"Interrupted. {kept}\n")
    expected = lasting(read_run("complete")[1])
    partial = lasting(read_run("cut")[1])
    assert all(record in expected for record in partial)
    assert sum(record["kind"] == "batch" for record in partial) == at - 1
    works("report", "cut", "--out", "report")
    works(*settings, "--out", "cut", "--resume")
    assert lasting(read_run("cut")[1]) == expected


def test_interrupted_training_keeps_what_was_learned(command, files, interrupt_in, data):
    interrupt_in("learn", 4, Fitted)  # in the middle of the fourth batch, which then does not count
    outcome = command("train", files(".csv"), "-o", "model", "-m", "race-cls-fixed", "--batch-size", 20)
    assert outcome == (130, "", "Interrupted. 60 rows were learned and saved to model.\n")
    model = labelrace.make_model("race-cls-fixed", random_state=0)
    for start in range(0, 60, 20):
        model.partial_fit(data.X[start : start + 20], data.Y[start : start + 20])
    np.testing.assert_array_equal(labelrace.load("model").decision_function(data.X), model.decision_function(data.X))


def test_interrupted_before_anything_was_learned(command, files, interrupt_in, tmp_path):
    interrupt_in("learn", 1, Fitted)
    status, out, err = command("train", files(".csv"), "-o", "model", "-m", "race-cls-fixed")
    assert (status, out, err) == (130, "", "Interrupted. Nothing was learned yet, and no file was written.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_interrupted_predicting_writes_no_file(command, files, model_file, interrupt_in, tmp_path, suffix):
    interrupt_in("predict_labels", 3)
    arguments = ("predict", model_file, files(".arff"), "--batch-size", 20, "-o", f"new{suffix}")
    assert command(*arguments) == (130, "", SAID)
    assert list(tmp_path.iterdir()) == []


def test_interrupted_predicting_has_printed_whole_lines(command, files, model_file, interrupt_in):
    interrupt_in("predict_labels", 3)
    status, out, err = command("predict", model_file, files(".arff"), "--batch-size", 20)
    assert (status, err) == (130, SAID)
    assert [json.loads(line)["row"] for line in out.splitlines()] == list(range(40))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_killed_while_predicting(start, model_file, tmp_path, suffix):
    old = tmp_path / f"old{suffix}"
    old.write_text("old")
    for name in (f"old{suffix}", f"new{suffix}"):
        arguments = ("predict", model_file, "-", "--batch-size", 1, "-o", name)
        started = start(*arguments, stdin="1,2,3,4,5\n" * 100_000)
        started.wait_until(lambda name=name: any(map(size, tmp_path.glob(f".{name}.*.part"))))
        os.kill(started.pid, signal.SIGKILL)
        assert started.end().status == -signal.SIGKILL
    assert old.read_text() == "old"
    assert not (tmp_path / f"new{suffix}").exists()


@pytest.mark.parametrize(
    ("send", "number"),
    # Ctrl-C in a terminal goes to all processes of the group; a kill goes to one.
    [(getattr(os, "killpg", None), signal.SIGINT), (os.kill, getattr(signal, "SIGKILL", None))],
    ids=["ctrl-c", "kill"],
)
def test_no_worker_is_left(start, works, tmp_path, send, number):
    works("data", "make", "new.csv", "--rows", 1500, "--features", 5, "--labels", 6, "--cardinality", 2)
    settings = ("run", "new.csv", "-m", "obr", "--batch-size", 10, "--runs", 2, "--out", "out")
    started = start(*settings, "--jobs", 2)
    started.wait_until(lambda: size(tmp_path / "out" / "records.jsonl"))
    send(started.pid, number)
    ended = started.end()
    if number == signal.SIGINT:
        assert (ended.status, ended.out) == (130, "")
        assert ended.err.startswith("Interrupted. What was finished is in out")
    else:
        assert ended == (-number, "", "")
    deadline = time.monotonic() + 30
    while running(started.pid) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert running(started.pid) == []
    partial = lasting(read_run("out")[1])
    works(*settings, "--jobs", 1, "--resume")
    complete = lasting(read_run("out")[1])
    assert 0 < len(partial) < len(complete)
    assert all(record in complete for record in partial)


def test_interrupted_while_waiting_for_rows(start, model_file):
    started = start("predict", model_file, "-", "--batch-size", 1, stdin=None)
    with started.stdin.open("w") as pipe:
        print("1,2,3,4,5", file=pipe, flush=True)
        started.wait_until(started.stdout.read_text)
        os.kill(started.pid, signal.SIGINT)
        status, out, err = started.end()
    assert (status, err) == (130, SAID)
    assert json.loads(out)["row"] == 0
