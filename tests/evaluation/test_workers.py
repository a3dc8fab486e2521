"""Processes that end early, and progress."""

import multiprocessing
import os
import signal

import pytest

from labelrace.evaluation import ModelSpec, read_run, run
from labelrace.evaluation.workers import Task, perform, process_context

needs_kill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")


@pytest.fixture
def settings(data):
    models = ["race-cls-fixed", ("race-cls-adaptive", {"n_components": 4})]
    return {"source": data, "models": models, "batch_size": 20, "runs": 2, "seed": 7}


@needs_kill
def test_a_process_that_dies_is_a_failure(data, dataset, tmp_path):
    tasks = [
        Task(ModelSpec("race-cls-fixed"), number, 0, source, "prequential", 20, ("micro_f1",), {})
        for number, source in enumerate([dataset(n_rows=50_000), dataset(n_rows=50_000), data])
    ]
    last = {}
    for record in perform(tasks, jobs=2):
        if not last:
            for process in multiprocessing.active_children():
                os.kill(process.pid, signal.SIGKILL)
        last[record["run"]] = record
    assert [last[number]["kind"] for number in range(3)] == ["failed", "failed", "done"]
    assert "exit code -9" in last[0]["error"]


def test_interrupted_in_parallel(settings, tmp_path):
    def stop(progress):
        if progress.kind == "batch":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(**settings, out=tmp_path / "out", jobs=2, on_progress=stop)
    assert multiprocessing.active_children() == []
    assert [one["kind"] for one in read_run(tmp_path / "out")[1]] == ["batch"]


def test_progress(settings, tmp_path):
    seen = []
    _, records = run(**settings, out=tmp_path, jobs=1, on_progress=seen.append)
    assert [one.kind for one in seen] == ["started", "batch", "batch", "done"] * 4
    assert [(one.rows, one.total_rows) for one in seen[:4]] == [(0, 60), (40, 60), (60, 60), (60, 60)]
    assert [one.finished for one in seen[3::4]] == [1, 2, 3, 4]
    first, second = (one["measures"]["micro_f1"] for one in records[:2])
    assert seen[2].measures["micro_f1"] == pytest.approx((first + second) / 2)


def test_what_cannot_be_sent_to_another_process_is_a_failure(data, remembers, tmp_path):
    remembers.held = lambda: None
    _, records = run(data, [remembers, "race-cls-fixed"], batch_size=20, out=tmp_path, jobs=2)
    ends = {one["model"]: one for one in records if one["kind"] in ("done", "failed")}
    assert ends["race-cls-fixed"]["kind"] == "done"
    assert "use jobs=1" in ends["Remembers"]["error"]


def test_a_process_that_cannot_be_started_is_a_failure(settings, tmp_path, monkeypatch):
    """As where the server that starts them is killed: what is raised then is what a closed output raises, too."""
    kind = type(process_context().Process())
    start, errors = kind._Popen, [BrokenPipeError(32, "Broken pipe"), EOFError("unexpected EOF")]
    monkeypatch.setattr(
        kind, "_Popen", staticmethod(lambda process: _raise(errors.pop()) if errors else start(process))
    )
    _, records = run(**settings, out=tmp_path, jobs=2)
    ends = [(one["kind"], one.get("error", "")) for one in records if one["kind"] in ("done", "failed")]
    assert sorted(kind for kind, _ in ends) == ["done", "done", "failed", "failed"]
    assert all("could not be started" in error for kind, error in ends if kind == "failed")


def _raise(error):
    raise error
