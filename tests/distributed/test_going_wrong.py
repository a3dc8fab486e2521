"""What goes wrong on a cluster: workers that die, workers that do not fit, and sources of all kinds."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import dask
import dask.bag
import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.sparse import csr_array

import labelrace
from labelrace.distributed import cluster, fit
from labelrace.distributed.cluster import connect
from labelrace.distributed.sources import pieces_of, read_batches
from labelrace.exceptions import DataFormatError, DistributedError
from labelrace.streams.demo import demo_tickets
from labelrace.streams.synthetic import SyntheticStream

PARTS = [(X, csr_array(Y)) for X, Y in SyntheticStream(n_rows=4000, n_features=15, n_labels=12, seed=3).batches(20)]
N_KILLS = 6


def test_workers_that_are_killed_change_nothing(client):
    """SIGKILL of a worker some times, at random moments of some fits: Dask repeats what was lost, to the bit.

    Half of the fits have rows that are sent with their tasks, and half have rows that are read where they are learned,
    in rounds that start from one another.
    """
    X, rng = np.vstack([X for X, _ in PARTS[:50]]), np.random.default_rng(0)
    read = [dask.delayed(_read_slowly)(index) for index in range(len(PARTS))]

    def learned(on, source):
        model = labelrace.LabelRaceClassifier(random_state=0)
        return fit(model, source, client=on, rounds=4, shares=4).decision_function(X)

    expected, n_killed = [learned(client, source) for source in (PARTS, read)], 0
    with connect(workers=2) as own:
        for turn in itertools.count():
            own.wait_for_workers(1, timeout=120)
            killer = _Killer(own, rng.uniform(0.02, 2.0, 10), limit=N_KILLS - n_killed)
            try:
                found = learned(own, (PARTS, read)[turn % 2])
            finally:
                n_killed += killer.end()
            np.testing.assert_array_equal(found, expected[turn % 2])
            if n_killed >= N_KILLS:
                break
    assert n_killed == N_KILLS


def _read_slowly(index):
    time.sleep(0.01)
    return PARTS[index]


class _Killer:
    """Kills a worker, one of those that are there, after every pause."""

    def __init__(self, client, pauses, limit):
        self._client, self._pauses, self._limit = client, pauses.tolist(), limit
        self._ended, self._killed = threading.Event(), set()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        for pause in self._pauses:
            if self._ended.wait(pause) or len(self._killed) == self._limit:
                return
            known, nannies = self._client.cluster.scheduler.workers, list(self._client.cluster.workers.values())
            alive = [nanny.pid for nanny in nannies if nanny.worker_address in known]
            alive = [pid for pid in alive if pid and pid not in self._killed]
            if alive:
                pid = alive[len(self._killed) % len(alive)]
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self._killed.add(pid)

    def end(self):
        """Wait for the thread, and return how many were killed."""
        self._ended.set()
        self._thread.join()
        return len(self._killed)


def test_ctrl_c_is_left_to_the_process_that_started_the_workers(client):
    """A terminal sends it to all of them, and each worker would print where it was."""
    client.wait_for_workers(2, timeout=120)
    before = set(client.run(os.getpid).values())
    for pid in before:
        os.kill(pid, signal.SIGINT)
    time.sleep(0.5)
    assert set(client.run(os.getpid).values()) == before


def test_workers_that_die_faster_than_they_start_end_the_fit(monkeypatch):
    monkeypatch.setattr(cluster, "_MAX_SECONDS_ALONE", 0.5)
    monkeypatch.setattr(cluster, "_INTERVAL", 0.1)
    model = labelrace.LabelRaceClassifier(random_state=0)
    with connect(workers=1) as own:

        def kill_for_good(_):
            # As if each that is started were killed before it is there: the cluster is to start no other.
            nannies = list(own.cluster.workers.values())
            own.cluster.scale(0)
            for nanny in nannies:
                nanny.auto_restart = False
                with suppress(ProcessLookupError):
                    os.kill(nanny.pid, signal.SIGKILL)

        with pytest.raises(DistributedError, match=r"Round 2 failed: There .* no workers .* The model holds the"):
            fit(model, PARTS, client=own, rounds=4, shares=4, on_progress=kill_for_good)
    assert model.is_fitted


def test_workers_that_are_lost_one_after_the_other_end_the_fit(monkeypatch):
    """They die with whatever they are given, and nothing is done."""
    monkeypatch.setattr(cluster, "_ALLOWED_FAILURES", 1)
    monkeypatch.setattr(cluster, "_INTERVAL", 0.1)
    ended = threading.Event()
    with connect(workers=1) as own:
        own.cluster.scheduler.allowed_failures = 1000

        def kill_on_and_on():
            while not ended.wait(0.1):
                for nanny in list(own.cluster.workers.values()):
                    if nanny.pid and nanny.worker_address in own.cluster.scheduler.workers:
                        with suppress(ProcessLookupError):
                            os.kill(nanny.pid, signal.SIGKILL)

        killer = threading.Thread(target=kill_on_and_on)
        killer.start()
        try:
            slow = [dask.delayed(_slowly)(part) for part in PARTS[:30]]
            with pytest.raises(
                DistributedError, match=r"2 workers were lost before any finished a task.* Nothing was merged"
            ):
                fit(labelrace.LabelRaceClassifier(random_state=0), slow, client=own, rounds=1, shares=2)
        finally:
            ended.set()
            killer.join()


def _slowly(part):
    time.sleep(5)
    return part


def test_memory_that_is_used_up_names_the_share_and_what_to_do(client):
    """As the system does it, by SIGKILL, with the worker that takes the task."""

    def exhaust():
        os.kill(os.getpid(), signal.SIGKILL)

    scheduler = client.cluster.scheduler
    before, scheduler.allowed_failures = scheduler.allowed_failures, 0
    try:
        parts = [dask.delayed(part) for part in PARTS[:30]] + [dask.delayed(exhaust)()]
        model = labelrace.LabelRaceClassifier(random_state=0)
        # Without another try, any task that its worker had at that moment is given up, too.
        with pytest.raises(
            DistributedError, match=r"Round 2 .* with (piece \d+|share \d+|a task) .*memory.*Give smaller pieces"
        ):
            fit(model, parts, client=client, rounds=2, shares=3)
        assert model.is_fitted
    finally:
        scheduler.allowed_failures = before


def test_workers_that_do_not_fit_are_refused_at_the_start(client):
    def pretend(version):
        import labelrace

        labelrace.__version__ = version

    client.wait_for_workers(2, timeout=120)
    client.run(pretend, "0.0.1", workers=[next(iter(client.scheduler_info()["workers"]))])
    with pytest.raises(DistributedError, match=r"The worker tcp://\S+ has labelrace 0\.0\.1, this process has"):
        fit(labelrace.make_model("majority"), PARTS, client=client)
    client.run(pretend, labelrace.__version__)
    started = "import sys; sys.modules['labelrace'] = None; from distributed.cli.dask_worker import main; main()"
    given = [client.scheduler.address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
    worker = subprocess.Popen([sys.executable, "-c", started, *given], stderr=subprocess.DEVNULL)
    try:
        client.wait_for_workers(3, timeout=120)
        with pytest.raises(DistributedError, match=r"cannot import labelrace .*: install labelrace"):
            fit(labelrace.make_model("majority"), PARTS, client=client)
    finally:
        worker.kill()
        worker.wait()


def test_data_frames_bags_and_addresses_are_sources(client, tmp_path):
    rows = demo_tickets()[:900]
    frame = pd.DataFrame(rows)
    sources = {
        "delayed": [dask.delayed(rows[start : start + 225]) for start in range(0, 900, 225)],
        "bag": dask.bag.from_sequence(rows, npartitions=4),
    }
    with dask.config.set({"dataframe.convert-string": False}):
        # Otherwise Dask makes texts of the lists of tags.
        sources["data frame"] = dask.dataframe.from_pandas(frame, npartitions=4, sort=False)
    taggers = {
        name: fit(labelrace.Tagger("tags", random_state=0), source, client=client, rounds=1, shares=2)
        for name, source in sources.items()
    }
    expected = taggers["delayed"].predict(rows[:100])
    for tagger in taggers.values():
        assert tagger.n_rows_ == 900
        assert tagger.predict(rows[:100]) == expected
    import fsspec

    table = pa.Table.from_pylist(rows)
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=300)
    with fsspec.open("memory://rows.parquet", "wb") as file:
        parquet.write_table(table, file, row_group_size=300)
    for address in ("memory://rows.par*", f"file://{tmp_path}/*.parquet"):
        pieces = pieces_of(address, as_tables=True)
        assert sum(batch.n_rows for piece in pieces for batch in read_batches(piece, 100, as_tables=True)) == 900
    with pytest.raises(DataFormatError, match="only Parquet files with tags can be read from there"):
        pieces_of(f"file://{tmp_path}/*.parquet", as_tables=False)
