"""The engine: a client that is given, one for an address, or a cluster on this machine; and what can go wrong there."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from labelrace import __version__
from labelrace.base import parameters
from labelrace.evaluation.workers import default_jobs
from labelrace.exceptions import DistributedError

# Deaths of workers after which their task is given up: Dask's 3 are few for tasks that wait in a row for workers that
# die for other reasons.
_ALLOWED_FAILURES = 20
_TIMEOUT = "10s"
# Seconds between two looks at the workers, and for which there may be none of them.
_INTERVAL, _MAX_SECONDS_ALONE = 2.0, 300.0
# On one machine a process that is slow to answer is busy, and not lost: those that are lost close their connections.
_PATIENCE = {
    "distributed.scheduler.allowed-failures": _ALLOWED_FAILURES,
    "distributed.comm.timeouts.tcp": "10 minutes",
    "distributed.scheduler.worker-ttl": "1 hour",
    # A worker's guard starts it again whenever it dies. The cluster would end a guard whose worker is not back in time.
    "distributed.deploy.lost-worker-timeout": "1 hour",
}
_THRIFT = {
    "distributed.worker.daemon": True,
    # Nobody looks at the profiles that workers take of themselves a hundred times a second, nor at long logs.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.low-level-log-length": 100,
    # Each process would look fifty times a second how late it is, and ten times how much memory is used.
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.memory.monitor-interval": "500ms",
    # A task goes to a worker that is free: a second one that waits beside the first would wait while others have none.
    "distributed.scheduler.worker-saturation": 1.0,
    # Dask lets its workers give all that is freed back to the system at once. Products of batches need arrays of a
    # megabyte again and again, and to get their pages back takes a third as long as to learn.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}


def engine() -> Any:
    """Import Dask's engine, or say what to install."""
    try:
        import distributed
    except ImportError:
        raise DistributedError(
            "labelrace.distributed, --workers and --scheduler need Dask, which is not installed here: pip install "
            "'labelrace[dask]'."
        ) from None
    return distributed


def losses() -> tuple[type[BaseException], tuple[type[BaseException], ...]]:
    """Return the errors of a task whose workers died again and again, and those of a scheduler that is gone."""
    distributed = engine()
    from asyncio import CancelledError
    from concurrent.futures import CancelledError as FutureCancelledError

    from distributed.comm import CommClosedError

    killed: type[BaseException] = distributed.KilledWorker
    closed: type[BaseException] = getattr(distributed.client, "ClosedClientError", CommClosedError)
    return killed, (CommClosedError, CancelledError, FutureCancelledError, TimeoutError, closed)


class LostError(Exception):
    """What tasks need has gone with the workers that held it."""


def wait_for(client: Any, future: Any, parts: Sequence[Any] = (), needed: Any = None) -> Any:
    """Wait for a result for as long as there are workers for it.

    Parameters
    ----------
    client : distributed.Client
    future : distributed.Future
        What is awaited.
    parts : sequence of Future, default=()
        Tasks that it needs: each that is done shows that workers get on.
    needed : distributed.Future, default=None
        A result that these tasks need, of which the caller has a copy.

    Raises
    ------
    LostError
        If nobody has ``needed`` any more. Dask would compute it again, and all that it came from.
    DistributedError
        If workers are lost one after the other before any finishes a task, or if there are none for minutes. Dask
        gives up tasks whose workers die, but would wait for ever if they die before they get a task.
    """
    distributed = engine()
    known, most_done, n_lost, seen = set(client.nthreads()), 0, 0, time.monotonic()
    patience = _INTERVAL
    while True:
        with suppress(TimeoutError):
            distributed.wait([future], timeout=_INTERVAL)
        if future.done():
            # The worker that has it may die meanwhile: then it is computed again, or what it needs is lost.
            with suppress(TimeoutError):
                return future.result(timeout=patience)
            patience *= 2
        if needed is not None and not needed.done():
            raise LostError
        workers, n_done = set(client.nthreads()), sum(part.done() for part in parts)
        n_lost += len(known - workers)
        if n_done > most_done:
            most_done, n_lost = n_done, 0
        known, seen = workers, time.monotonic() if workers else seen
        if n_lost > _ALLOWED_FAILURES:
            raise DistributedError(f"{n_lost} workers were lost before any finished a task.")
        if time.monotonic() - seen > _MAX_SECONDS_ALONE:
            raise DistributedError(f"There have been no workers for {_MAX_SECONDS_ALONE:.0f} seconds.")


def send(client: Any, value: Any) -> Any:
    """Send a value to the workers, once, and again if all that have it die; return its future."""
    with warnings.catch_warnings():
        # Dask would have us load it there: it is made here.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return client.submit(_identity, value, pure=False)


def _identity(value: Any) -> Any:
    return value


@contextmanager
def connect(client: Any = None, *, workers: int | None = None, scheduler: str | None = None) -> Iterator[Any]:
    """Yield a client: the given one, one for a scheduler's address, or that of processes on this machine.

    What is started here is ended here. Processes have one thread each, of Python and of BLAS.

    Raises
    ------
    DistributedError
        If there is no scheduler at the address, or a worker cannot be used.
    """
    distributed = engine()
    if workers is not None:
        parameters.check_whole("workers", workers, 1)
    if client is not None:
        _check_workers(client)
        yield client
        return
    if scheduler is not None:
        try:
            with distributed.Client(scheduler, timeout=_TIMEOUT) as remote:
                _check_workers(remote)
                yield remote
        except (OSError, TimeoutError) as error:
            raise DistributedError(
                f"There is no Dask scheduler at {scheduler} ({type(error).__name__}): start one with 'dask scheduler', "
                "or leave out --scheduler to use processes on this machine."
            ) from None
        return
    with local_cluster(default_jobs() if workers is None else workers) as local:
        yield local


@contextmanager
def local_cluster(n_workers: int, **options: Any) -> Iterator[Any]:
    """Yield the client of processes on this machine, of one thread each; ``options`` are those of `LocalCluster`."""
    distributed = engine()
    import dask

    with (
        dask.config.set({**_PATIENCE, **_THRIFT}),
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
            **options,
        ) as cluster,
        distributed.Client(cluster) as local,
    ):
        local.register_plugin(_uninterrupted())
        yield local


def _uninterrupted() -> Any:
    """Make a plugin by which workers, also restarted ones, leave Ctrl-C to this process, which ends them."""
    distributed = engine()

    class Uninterrupted(distributed.WorkerPlugin):  # type: ignore[name-defined, misc]
        name = "labelrace-uninterrupted"

        def setup(self, worker: Any) -> None:
            import signal

            signal.signal(signal.SIGINT, signal.SIG_IGN)

    return Uninterrupted()


def _check_workers(client: Any) -> None:
    """Refuse workers without labelrace, or with another version of it: they would learn another model."""

    def version() -> str:
        # Sent as code, as all that is defined within a function: a worker without labelrace could not look it up.
        from labelrace import __version__ as installed

        return installed

    client.wait_for_workers(1, timeout=_TIMEOUT)
    ours = __version__
    found: dict[str, Any] = client.run(version, on_error="return")
    for address, answer in found.items():
        if isinstance(answer, ImportError):
            raise DistributedError(
                f"The worker {address} cannot import labelrace ({answer}): install labelrace {ours} there, with the "
                "extra dask."
            )
        # A worker that dies meanwhile is Dask's to replace.
        if isinstance(answer, str) and answer != ours:
            raise DistributedError(
                f"The worker {address} has labelrace {answer}, this process has {ours}: install the same on all."
            )
