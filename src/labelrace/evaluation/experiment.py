"""An experiment: models on a source, several runs each, recorded in a folder."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import itertools
import json
import os
import platform
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse
from sklearn.base import clone

from labelrace import __version__
from labelrace.base import parameters
from labelrace.base.progress import progress_bar
from labelrace.base.registry import make_model
from labelrace.evaluation.checkpoint import MANY_LABELS
from labelrace.evaluation.protocol import check_options
from labelrace.evaluation.records import FORMAT, Record, Results, open_folder, read_run
from labelrace.evaluation.workers import Progress, Task, changed_options, default_jobs, perform, progress_of
from labelrace.measures import PAPER_MEASURES, default_zero_division, measure_names
from labelrace.measures.inputs import are_label_sets
from labelrace.streams import Dataset, open_stream
from labelrace.streams.catalog import find_dataset
from labelrace.streams.dataset import collect
from labelrace.streams.synthetic import SyntheticStream

# Files up to this size are loaded once, for all runs; larger ones are read by each run, a batch at a time.
_LOADED_BYTES = 64 * 1024**2
# What is measured, too, where labels are many: users look at the best few then.
_OF_MANY_LABELS = ("precision_at_1", "precision_at_5", "ndcg_at_5")


@dataclass(frozen=True)
class ModelSpec:
    """A model to run: by name, or as an estimator.

    Parameters
    ----------
    name : str, default=""
        What `labelrace.make_model` knows it by.
    parameters : mapping, default={}
        What else it is made with; of an estimator, parameters to set.
    label : str, default=""
        What records and reports call it; by default its name, or the name of its class. It
        distinguishes variants of one model.
    estimator : object, default=None
        Instead of a name, an unfitted model: a scikit-learn estimator, or any object with ``partial_fit`` and
        ``predict``. Each run has a copy of its own, with the seed of the run wherever a ``random_state`` is None.

    Examples
    --------
    >>> from labelrace import RACEClassifier
    >>> ModelSpec(estimator=RACEClassifier(n_components=8), label="8 components").make(seed=1)
    RACEClassifier(n_components=8, random_state=1)
    """

    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    estimator: Any = None

    def __post_init__(self) -> None:
        if bool(self.name) == (self.estimator is not None):
            raise ValueError(
                f"ModelSpec must have either a name or an estimator, got {self.name!r} and {self.estimator!r}"
            )
        object.__setattr__(self, "label", self.label or self.name or type(self.estimator).__name__)

    def make(self, seed: int, categorical: Any = None) -> Any:
        """Make the model, with the seed and the mask of nominal features where it takes them and they are not given.

        Parameters
        ----------
        seed : int
        categorical : mask, default=None

        Returns
        -------
        classifier
        """
        model = self._unseeded()
        offered: dict[str, Any] = dict.fromkeys(_open_seeds(model), seed)
        if _parameters(model).get("categorical_features", "") is None:
            offered["categorical_features"] = categorical
        return model.set_params(**offered) if offered else model

    @property
    def is_random(self) -> bool:
        """Whether the model depends on the seed of a run."""
        return bool(_open_seeds(self._unseeded()))

    def describe(self) -> dict[str, Any]:
        """Return the model as a manifest holds it.

        Returns
        -------
        dict
        """
        if self.estimator is None:
            given, kind = self.parameters, self.name
        else:
            cls = type(self.estimator)
            given, kind = _changed_parameters(self._unseeded()), f"{cls.__module__}:{cls.__qualname__}"
        description = {"name": self.label, "parameters": {key: _jsonable(value) for key, value in given.items()}}
        return description if self.label == kind else {**description, "model": kind}

    def _unseeded(self) -> Any:
        """Make the model with the given parameters only."""
        if self.estimator is None:
            return make_model(self.name, **self.parameters)
        model = clone(self.estimator, safe=False)
        return model.set_params(**self.parameters) if self.parameters else model


AnyModel: TypeAlias = Any
"""A name, (name, parameters), a `ModelSpec`, an estimator, or a callable without arguments that makes one."""


def as_specs(models: AnyModel | Iterable[AnyModel]) -> list[ModelSpec]:
    """Return models as specifications, after making each once, so that a mistake shows before the run begins.

    Estimators are called by the names of their classes, numbered from the second on.

    Parameters
    ----------
    models
        As for `run`.

    Returns
    -------
    list of ModelSpec

    Examples
    --------
    >>> from labelrace import RACEClassifier
    >>> specs = as_specs([("race-reg-fixed", {"n_components": 8}), RACEClassifier(), RACEClassifier(n_components=8)])
    >>> [spec.label for spec in specs]
    ['race-reg-fixed', 'RACEClassifier', 'RACEClassifier-2']
    >>> specs[0].describe()
    {'name': 'race-reg-fixed', 'parameters': {'n_components': 8}}
    """
    # Ensembles of scikit-learn are iterable, too.
    is_one = isinstance(models, (str, ModelSpec)) or hasattr(models, "predict") or not isinstance(models, Iterable)
    specs: list[ModelSpec] = []
    for model in [models] if is_one else models:
        specs.append(_as_spec(model, [spec.label for spec in specs]))
    if not specs:
        raise ValueError("models must be at least one model, got no models; see labelrace.model_names()")
    labels = [spec.label for spec in specs]
    for spec in specs:
        if labels.count(spec.label) > 1:
            raise ValueError(
                f"models must have different labels, got {spec.label!r} twice; give one by ModelSpec(…, label=…)"
            )
        spec.make(seed=0)
    return specs


def _as_spec(model: AnyModel, taken: Sequence[str]) -> ModelSpec:
    if isinstance(model, ModelSpec):
        return model
    if isinstance(model, str):
        return ModelSpec(model)
    if isinstance(model, tuple):
        return ModelSpec(*model)
    if isinstance(model, type) or (callable(model) and not hasattr(model, "predict")):
        model = model()
    if not hasattr(model, "predict"):
        raise TypeError(
            f"a model must be a name, (name, parameters), a ModelSpec or an object with predict, got {model!r}"
        )
    stem = type(model).__name__
    labels = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    return ModelSpec(estimator=model, label=next(label for label in labels if label not in taken))


def _parameters(model: Any, *, deep: bool = False) -> dict[str, Any]:
    """Return a model's parameters; none if it has no ``get_params``."""
    return dict(model.get_params(deep=deep)) if hasattr(model, "get_params") else {}


def _open_seeds(model: Any) -> list[str]:
    """List the parameters ``random_state`` of a model and of its parts that are None."""
    values = _parameters(model, deep=True).items()
    return [name for name, value in values if value is None and name.split("__")[-1] == "random_state"]


def _changed_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters that are not at their defaults."""
    declared = inspect.signature(type(model)).parameters
    return {
        name: value
        for name, value in _parameters(model).items()
        if name not in declared or repr(declared[name].default) != repr(value)
    }


def _jsonable(value: Any) -> Any:
    """Return a parameter as JSON can hold it: itself, or what it looks like."""
    if isinstance(value, (list, tuple)):
        return [_jsonable(entry) for entry in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value if isinstance(value, (str, int, float, type(None))) else repr(value)


class Source(NamedTuple):
    """Data that can be sent to another process, and its description."""

    data: Any
    description: dict[str, Any]


def open_source(source: Any, labels: Any = None) -> Source:
    """Open a source and describe it; a file that is not large is loaded.

    Parameters
    ----------
    source : str, path, Dataset, or object with ``batches(size)``
        A dataset's name or file, a dataset in memory, or a stream that gives the same rows each time.
    labels : default=None
        Which attributes of a file are labels, as `labelrace.load_dataset` takes it.

    Returns
    -------
    Source
        Its checksum is that of the file, of the rows in memory, or of the parameters of a `SyntheticStream`; other
        streams have none.

    Examples
    --------
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> description = open_source(SyntheticStream(n_rows=100, n_features=5, n_labels=2, cardinality=1.5)).description
    >>> {key: value for key, value in description.items() if key != "checksum"}
    {'name': 'synthetic', 'kind': 'synthetic', 'rows': 100, 'features': 5, 'labels': 2, 'cardinality': 1.5,
     'label_names': ['label0', 'label1']}
    """
    if isinstance(source, (str, os.PathLike)):
        stream = open_stream(source, labels)
        path = Path(source) if Path(source).is_file() else find_dataset(os.fspath(source))
        data = stream if path.stat().st_size > _LOADED_BYTES else collect(stream)
        with path.open("rb") as file:
            return Source(data, _describe(data, f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"))
    if labels is not None:
        raise ValueError(
            "labels must be None for data in memory and streams; it names the attributes of a file that are labels"
        )
    if isinstance(source, Dataset):
        return Source(source, _describe(source, _rows_digest(source)))
    if not hasattr(source, "batches"):
        raise TypeError(f"source must be a name, a file, a Dataset or a stream with batches(size), got {source!r}")
    if not isinstance(source, SyntheticStream):
        return Source(source, _describe(source, None))
    settings = json.dumps(dataclasses.asdict(source), sort_keys=True)
    return Source(source, _describe(source, f"sha256:{hashlib.sha256(settings.encode()).hexdigest()}"))


def _describe(data: Any, checksum: str | None) -> dict[str, Any]:
    """Describe a dataset or stream by its attributes; one without them, by its first row."""
    names = getattr(data, "label_names", None)
    if hasattr(data, "n_features") and hasattr(data, "n_labels"):
        n_features, n_labels = int(data.n_features), int(data.n_labels)
    else:
        X, Y = next(iter(data.batches(1)))
        if are_label_sets(Y):
            raise TypeError(
                "source must give labels as matrices, got sets of label names; evaluate these by prequential"
            )
        n_features, n_labels = int(X.shape[1]), int(Y.shape[1])
    in_memory = isinstance(data, Dataset)
    cardinality = data.present.sum() / max(len(data), 1) if in_memory else getattr(data, "cardinality", None)
    spent = getattr(data, "feature_seconds", None)
    return {
        "name": getattr(data, "name", type(data).__name__),
        "kind": "synthetic" if isinstance(data, SyntheticStream) else "file",
        "checksum": checksum,
        "rows": len(data) if hasattr(data, "__len__") else None,
        "features": n_features,
        "labels": n_labels,
        "cardinality": None if cardinality is None else float(cardinality),
        "label_names": None if names is None else list(map(str, names)),
        **({} if spent is None else {"feature_seconds": spent}),
    }


def _rows_digest(data: Dataset) -> str:
    digest = hashlib.sha256()
    for matrix in (data.X, data.Y):
        digest.update(repr(matrix.shape).encode())
        parts = [matrix]
        if scipy.sparse.issparse(matrix):  # SciPy's indices may have 32 or 64 bits
            parts = [matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)]
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
    return f"sha256:{digest.hexdigest()}"


def run(
    source: Any,
    models: AnyModel | Iterable[AnyModel],
    *,
    out: str | os.PathLike[str],
    labels: Any = None,
    protocol: Literal["prequential", "holdout"] = "prequential",
    batch_size: int = 500,
    runs: int = 1,
    seed: int = 0,
    measures: str | Iterable[str] = "auto",
    zero_division: float | None = None,
    jobs: int | None = None,
    resume: bool = False,
    skip_repeats: bool = False,
    calibration: bool = False,
    progress: bool = False,
    on_progress: Callable[[Progress], object] | None = None,
    performer: Callable[[list[Task]], Generator[Record, None, None]] | None = None,
    **options: Any,
) -> Results:
    """Evaluate models on a source, several times each, and record everything in a folder.

    Parameters
    ----------
    source : str, path, Dataset, or stream
        A dataset's name or file, a dataset in memory, or an object with ``batches(size)`` that gives the same rows each
        time and can be pickled.
    models : iterable of str, (str, dict), ModelSpec, estimators or callables
        Names for `labelrace.make_model`, alone or with parameters; or models of one's own: unfitted objects with
        ``partial_fit`` and ``predict``, of which each run has a copy, or callables that make one. `ModelSpec` gives
        them labels. To work in other processes, their classes must be importable there.
    out : path
        The folder, which must be empty or not exist. See `read_run`.
    labels : default=None
        Which attributes of a file are labels, as `labelrace.load_dataset` takes it.
    protocol : {"prequential", "holdout"}, default="prequential"
        The evaluation, see the functions of these names.
    batch_size : int, default=500
        Rows in a batch.
    runs : int, default=1
        How many times each model is run, with a seed of its own for each run, the same for all models. Models without
        randomness run as often as the others.
    seed : int, default=0
        What the runs' seeds are derived from.
    measures : str or iterable of str, default="auto"
        As `labelrace.measures.evaluate` takes them; "auto" is "paper", and with more than 1,000 labels also
        ``precision_at_1``, ``precision_at_5`` and ``ndcg_at_5``.
    zero_division : float, default=None
        What a label that is neither there nor predicted counts in macro averages: by default 0, as in scikit-learn, and
        1, as in the original evaluation, for the sets "paper" and "all".
    jobs : int or None, default=None
        How many processes work at a time; by default as many as there are processors. 1 works in this process. A script
        that calls this with more must do so under ``if __name__ == "__main__"``.
    resume : bool, default=False
        Whether to continue the run in the folder, which must be the same but for machine and time. What is done
        stays; what was cut off or failed is run again. A folder that is empty or does not exist is begun.
    skip_repeats : bool, default=False
        Whether to leave out what could only repeat run 0: further runs of a model without randomness, where nothing
        else depends on the seed.
    calibration : bool, default=False
        Whether to ask the models for probabilities too, those that give any, and to record how far these can be
        trusted: a record of kind "calibration" with the sums of a `labelrace.measures.calibration.Reliability`. The
        times are those without. Prequential only.
    progress : bool, default=False
        Whether to show how far the run is, in a terminal or a notebook.
    on_progress : callable, default=None
        Called with a `Progress` when a pair of model and run starts, after each batch, and when it is done or fails.
    performer : callable, default=None
        What does the tasks instead of ``jobs`` processes and yields their records, as `labelrace.distributed` has it.
    **options
        Parameters of the protocol: `delay`, `missing` and `memory`, or `test_share`, `iterations` and so on.

    Returns
    -------
    manifest : dict
    records : list of dict
        As `read_run` gives them: the pair shows itself as the report of the run. A model that fails, for whatever
        reason, has a record that says so; the others go on.

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
    specs = as_specs(models)
    if zero_division is None:
        zero_division = default_zero_division(measures)
    if measures != "auto":
        measures = measure_names(measures)
    parameters.check_whole("runs", runs, 1)
    parameters.check_whole("jobs", 1 if jobs is None else jobs, 1)
    if calibration and protocol != "prequential":
        raise ValueError(f"calibration must be False with protocol {protocol!r}; it is recorded in prequential runs")
    check_options(batch_size=batch_size)
    changed = changed_options(protocol, options)
    if calibration:
        changed["calibration"] = True
    data, description = open_source(source, labels)
    if measures == "auto":
        measures = [*PAPER_MEASURES, *(_OF_MANY_LABELS if description["labels"] > MANY_LABELS else ())]
    names = tuple(measures)
    manifest = {
        "format": FORMAT,
        "version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "protocol": protocol,
        "source": description,
        "models": [spec.describe() for spec in specs],
        "runs": runs,
        "seed": seed,
        "batch_size": batch_size,
        "measures": list(names),
        "zero_division": zero_division,
        "machine": _machine(),
        **({"options": changed} if changed else {}),
    }
    # Nothing but the models' own draws depends on the seed then.
    skip_repeats = skip_repeats and protocol == "prequential" and not options.get("missing")
    seeds = [int(np.random.SeedSequence(seed, spawn_key=(i,)).generate_state(1)[0]) for i in range(runs)]
    settings = {**options, "zero_division": zero_division}
    pairs = [
        Task(spec, number, seeds[number], data, protocol, batch_size, names, settings, calibration)
        for number in range(runs)
        for spec in specs
        if number == 0 or not skip_repeats or spec.is_random
    ]
    with open_folder(out, manifest, resume=resume) as folder:
        tasks = [task for task in pairs if (task.model.label, task.run) not in folder.done]
        performed = perform(tasks, jobs or default_jobs()) if performer is None else performer(tasks)
        with closing(performed) as records, progress_bar(progress, len(tasks)) as show:
            active = dict[tuple[str, int], float]()
            for record, so_far in progress_of(records, description["rows"], len(tasks)):
                if record["kind"] != "started":
                    folder.append(record)
                if record["kind"] in ("labels", "calibration"):
                    continue
                if on_progress is not None:
                    on_progress(so_far)
                active[so_far.model, so_far.run] = so_far.share
                show(sum(active.values()), f"{so_far.model}, run {so_far.run + 1}: {so_far.rows} rows")
    return read_run(out)


def _machine() -> dict[str, Any]:
    """Describe the machine that the times of a run are from."""
    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"platform": platform.platform(), "python": platform.python_version(), **libraries, "cpus": os.cpu_count()}
