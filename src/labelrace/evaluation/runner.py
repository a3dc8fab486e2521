"""Many models, many runs: an experiment, recorded in a folder."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import Any, Literal

import numpy as np

from labelrace.evaluation.folder import open_folder
from labelrace.evaluation.manifest import make_manifest
from labelrace.evaluation.models import AnyModel, ModelSpec, as_specs
from labelrace.evaluation.pool import default_jobs, perform
from labelrace.evaluation.progress import Progress, Watcher
from labelrace.evaluation.records import Record, read_run
from labelrace.evaluation.sources import open_source
from labelrace.evaluation.worker import PROTOCOLS, Task
from labelrace.measures import measure_names

__all__ = ["run"]

# Parameters of an evaluation that are not options of a run: it sets them itself.
_SET_BY_RUN = ("model", "data", "batch_size", "measures", "seed", "untested", "observer", "probability_observer")


def run(
    source: Any,
    models: str | Iterable[AnyModel],
    *,
    out: str | os.PathLike[str],
    labels: Any = None,
    protocol: Literal["prequential", "holdout"] = "prequential",
    batch_size: int = 500,
    runs: int = 1,
    seed: int = 0,
    measures: str | Iterable[str] = "paper",
    jobs: int | None = None,
    resume: bool = False,
    skip_repeats: bool = False,
    calibration: bool = False,
    on_progress: Callable[[Progress], object] | None = None,
    **options: Any,
) -> tuple[dict[str, Any], list[Record]]:
    """Evaluate models on a source, several times each, and record everything in a folder.

    Parameters
    ----------
    source : str, path, Dataset, or stream
        A dataset's name or file, a dataset in memory, or an object with ``batches(size)`` that gives the same rows each
        time and can be pickled.
    models : iterable of str, (str, dict) or ModelSpec
        Names for `labelrace.make_model`, alone or with parameters.
    out : path
        The folder, which must be empty or not exist. See `read_run`.
    labels : optional
        Which attributes of a file are labels, as `labelrace.load_dataset` takes it.
    protocol : {"prequential", "holdout"}
        The evaluation, see the functions of these names.
    batch_size : int
        Rows in a batch.
    runs : int
        How many times each model is run, with a seed of its own for each run, the same for all models. Models without
        randomness run as often as the others.
    seed : int
        What the runs' seeds are derived from.
    measures : str or iterable of str
        As `labelrace.measures.evaluate` takes them.
    jobs : int or None
        How many processes work at a time; by default as many as there are processors. 1 works in this process. A script
        that calls this with more must do so under ``if __name__ == "__main__"``.
    resume : bool
        Whether to go on with the run in the folder, which must be the same but for machine and time. What is done
        stays; what was cut off or failed is run anew. A folder that is empty or does not exist is begun.
    skip_repeats : bool
        Whether to leave out what could only repeat run 0: further runs of a model without randomness, where nothing
        else depends on the seed.
    calibration : bool
        Whether to ask the models for probabilities too, those that give any, and to record how far these can be
        trusted: a record of kind "calibration" with the sums of a `labelrace.measures.calibration.Reliability`. The
        times are those without. Prequential only.
    on_progress : callable, optional
        Called with a `Progress` when a pair of model and run starts, after each batch, and when it is done or fails.
    **options
        Parameters of the evaluation: `delay`, `missing` and `memory`, or `test_share`, `iterations` and so on.

    Returns
    -------
    manifest : dict
    records : list of dict
        As `read_run` gives them. A model that fails, for whatever reason, has a record that says so; the others go on.

    Raises
    ------
    FileExistsError, ValueError, BlockingIOError
        If the folder is not empty, holds another run, or is being written to by another process.
    KeyboardInterrupt
        At Ctrl-C, after the processes have ended. What is in the folder can be read, and resumed.

    Examples
    --------
    >>> import tempfile
    >>> from labelrace.evaluation import run
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=300, n_features=20, n_labels=12, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     manifest, records = run(stream, ["race-cls-fixed"], out=folder, batch_size=100, jobs=1)
    >>> [record["kind"] for record in records]
    ['batch', 'batch', 'labels', 'done']
    """
    specs, names = as_specs(models), tuple(measure_names(measures))
    if runs < 1 or (jobs is not None and jobs < 1):
        raise ValueError(f"there must be at least 1 run and 1 job, got runs={runs!r} and jobs={jobs!r}")
    if calibration and protocol != "prequential":
        raise ValueError(f"calibration is recorded in prequential runs, not in those of protocol {protocol!r}")
    changed = _check_options(protocol, batch_size, options)
    if calibration:
        changed["calibration"] = True
    data, description = open_source(source, labels)
    manifest = make_manifest(
        protocol, description, specs, runs=runs, seed=seed, batch_size=batch_size, measures=names, options=changed
    )
    pairs = [
        Task(spec, number, _run_seed(seed, number), data, protocol, batch_size, names, options, calibration)
        for number in range(runs)
        for spec in specs
        if number == 0 or not (skip_repeats and _only_repeats(spec, protocol, options))
    ]
    with open_folder(out, manifest, resume=resume) as folder:
        tasks = [task for task in pairs if (task.model.label, task.run) not in folder.done]
        watcher = Watcher(on_progress, description["rows"], len(tasks))
        with closing(perform(tasks, jobs or default_jobs())) as records:
            for record in records:
                if record["kind"] != "started":
                    folder.append(record)
                watcher.tell(record)
    return read_run(out)


def _run_seed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1)[0])


def _only_repeats(spec: ModelSpec, protocol: str, options: Mapping[str, Any]) -> bool:
    return protocol == "prequential" and not options.get("missing") and not spec.is_random


def _check_options(protocol: str, batch_size: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ from the defaults and may change a measure."""
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    evaluation = PROTOCOLS[protocol]
    parameters = inspect.signature(evaluation).parameters
    known = {name: parameter.default for name, parameter in parameters.items() if name not in _SET_BY_RUN}
    for name in options:
        if name not in known:
            raise TypeError(f"{protocol} has no option {name!r}; it has {', '.join(known)}")
    # An evaluation checks its parameters when it is called, and does nothing until it is iterated over.
    rows = np.zeros((100, 1))
    evaluation(object(), [(rows, rows)], batch_size, **options)
    return {name: value for name, value in options.items() if value != known[name] and name != "memory"}
