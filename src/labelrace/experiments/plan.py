"""The plan of an experiment: its parts, about what each takes, and how they are run and recorded.

Costs are those of docs/methods.md, in the symbols of its tables, with measured constants. They tell how long a
comparison takes, and what to leave out of one that has to end within a given time. They are formulas and not
measurements, so that a comparison has the same models on every machine and when it is resumed. Times are those of one
thread of a usual machine, correct within a factor of two or three.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from labelrace.core.sums import MOST_COLUMNS
from labelrace.evaluation import ModelSpec, Progress, run
from labelrace.experiments.datasets import Source
from labelrace.report.text import listing

# A line of a CSV file, with all digits.
Record: TypeAlias = dict[str, Any]
# Models whose state would be larger are left out.
MOST_BYTES = 2e9


class Cost(NamedTuple):
    """Seconds of a run, and bytes of the model's state."""

    seconds: float
    bytes: float


class _Size(NamedTuple):
    """Rows, features, stored values of a row, labels, labels of a row, rows of a batch; seconds a naive Bayes value."""

    n: float
    m: float
    z: float
    l: float  # noqa: E741
    y: float
    b: float
    value: float

    @property
    def batches(self) -> float:
        return self.n / self.b


def _naive_bayes(size: _Size, times: float = 1.0) -> Cost:
    """Each value of each row for each label, and each feature once a batch."""
    n, m, z, labels, *_ = size
    return Cost(times * size.value * labels * (n * z + size.batches * m), 24 * m * labels)


def _chains(size: _Size, chains: int) -> Cost:
    bayes = _naive_bayes(size)
    return Cost(bayes.seconds + chains * 1e-10 * size.n * size.l**2, bayes.bytes + 8 * size.l**2)


def _sums(size: _Size, each: Callable[[_Size], float] = lambda size: 0.0) -> Cost:
    """Products of the features of each row, an eigenproblem for each batch, and what the method adds."""
    n, m, z, labels, *_ = size
    seconds = 5e-10 * n * z**2 + size.batches * (2e-10 * m**3 + 2e-10 * m**2 * labels + each(size))
    return Cost(seconds, 8 * (m**2 + m * labels + min(labels, 10_000) ** 2))


def _neighbours(size: _Size, window: float = 1000, per_label: float = 2e-8) -> Cost:
    """Products of rows with those of the window, to predict and to learn."""
    n, _, z, labels, y, *_ = size
    products = 2e-9 * z * n * window
    return Cost(
        products + 1e-8 * (n * window + size.batches * window * y) + per_label * n * labels, 16 * window * (z + y)
    )


def _tree(size: _Size, per_cell: float, state: float) -> Cost:
    """Count a row's features for each label, and some five leaves."""
    n, m, _, labels, *_ = size
    return Cost(per_cell * n * m * labels + 1e-7 * n * m, 5 * state * m * labels)


def _linear(size: _Size) -> Cost:
    """Weights of each feature for each label, with a step size each."""
    return Cost(1e-8 * size.n * size.z * size.l, 16 * size.m * size.l)


_COSTS: dict[str, Callable[[_Size], Cost]] = {
    "obr": _naive_bayes,
    "arow": _linear,
    "adagrad-logistic": _linear,
    "adagrad-squared": _linear,
    "occ": lambda size: _chains(size, 1),
    "oecc": lambda size: _chains(size, 5),
    "mbr": lambda size: _naive_bayes(size, 2.5),
    "mbr-chunks": lambda size: _naive_bayes(size, 20.0)._replace(bytes=10 * _naive_bayes(size).bytes),
    "ridge": _sums,
    "plst": lambda size: _sums(size, lambda s: 2e-11 * s.l**3),
    "plst-meka": lambda size: _sums(size, lambda s: 2e-11 * s.l**3),
    "cplst": _sums,
    "faie": lambda size: _sums(size, lambda s: 5e-11 * (s.l + s.m) ** 3),
    "cssp": lambda size: _sums(size, lambda s: 2e-11 * s.l**3),
    "moplms": lambda size: _sums(size, lambda s: 4e-9 * s.l**3),
    "cca": lambda size: _sums(size, lambda s: 5e-11 * s.l**3),
    "kcca": lambda size: _sums(size, lambda s: 5e-11 * (s.l + 64) ** 3),
    "cs": lambda size: _sums(size, lambda s: 1e-8 * s.b * s.l * s.y),
    "cl": lambda size: _sums(size, lambda s: 1e-7 * min(s.n, 2000) ** 2),
    "maniac": lambda size: _sums(size._replace(l=0.9 * size.l), lambda s: 3e-7 * s.b**2 * s.l**2 / s.n),
    "bmad": lambda size: Cost(4e-7 * size.n * size.l + _naive_bayes(size._replace(l=20)).seconds, 480 * size.m),
    "mlknn": _neighbours,
    "mlknn-prequential": _neighbours,
    "mwc": lambda size: _neighbours(size, 2000, 5e-7),
    "mlht": lambda size: _tree(size, 1e-9 + size.value / 20, 100),
    "mlht-moa": lambda size: _tree(size, 1e-8, 100),
    "eaht": lambda size: Cost(*(10 * part for part in _tree(size, 1e-9 + size.value / 20, 100))),
    "isoup": lambda size: _tree(size, 1e-9, 8 * 51),
    "isoup-linear": lambda size: _tree(size, 1e-9, 8 * 52),
    "rbm": lambda size: Cost(2e-7 * 100 * size.b * size.z + _naive_bayes(size._replace(m=10, z=10)).seconds, 800),
}


# Models that keep XᵀX, and refuse more features than that has room for.
_OF_SUMS = ("ridge", "plst", "plst-meka", "cplst", "faie", "cssp", "moplms", "cca", "kcca", "cs", "cl", "maniac")


def cost_of(model: str, source: Source) -> Cost:
    """Estimate what a run of a model takes on a dataset; models without a formula take very little.

    Examples
    --------
    >>> from labelrace.experiments.datasets import drifting_streams
    >>> cost_of("obr", drifting_streams(1000)[0]).seconds < 5
    True
    """
    facts = source.facts
    z = source.row_size or facts.features
    # A numeric value is looked up in two bins of a normal distribution, a nominal one is a product.
    value = 1e-7 if source.numeric else 3e-9
    size = _Size(facts.rows, facts.features, z, facts.labels, facts.cardinality, source.batch_size, value)
    cost = _COSTS[model](size) if model in _COSTS else Cost(2e-7 * size.n * size.z, 0.0)
    # Labels and probabilities are measured, too.
    return cost._replace(seconds=cost.seconds + 6e-8 * size.n * size.l)


def as_text(cost: Cost) -> str:
    """Say what a run takes.

    Examples
    --------
    >>> as_text(Cost(5400.0, 0.0)), as_text(Cost(20.0, 3e10))
    ('1.5 hours', '30 GB')
    """
    if cost.bytes > MOST_BYTES:
        return f"{cost.bytes / 1e9:,.0f} GB"
    if cost.seconds < 5400:
        return (
            f"{max(cost.seconds / 60, 0.1):.1f} minutes" if cost.seconds < 600 else f"{cost.seconds / 60:.0f} minutes"
        )
    return f"{cost.seconds / 3600:.1f} hours"


@dataclass(frozen=True)
class Part:
    """One call of `labelrace.evaluation.run`: some models on a dataset, under one protocol.

    Each kind of part is recorded in a folder of its own, so that a later call for more can continue there.
    """

    source: Source
    models: tuple[ModelSpec, ...]
    options: Mapping[str, Any] = field(default_factory=dict)  # protocol, measures, calibration
    kind: str = ""
    runs: int | None = None  # at the most

    @property
    def folder(self) -> str:
        """Where its records go, below the benchmark's folder."""
        return "/".join(filter(None, ["runs", self.source.folder, self.kind]))

    @property
    def title(self) -> str:
        """What progress calls it."""
        return ", ".join(filter(None, [self.source.title, self.kind]))

    @property
    def cost(self) -> float:
        """About how many seconds one run of all its models takes."""
        return sum(cost_of(model.name, self.source).seconds for model in self.models)


class Step(NamedTuple):
    """How far an experiment is, as it is passed to ``on_progress``: what runs now, and how much is done of how much.

    ``error`` tells why a run has failed; it is empty for a step without a failure.
    """

    what: str
    done: float
    total: float
    error: str = ""


OnProgress: TypeAlias = Callable[[Step], object]


def run_plan(
    plan: Sequence[Part], out: str | os.PathLike[str], on_progress: OnProgress | None = None, **settings: Any
) -> Iterator[tuple[Part, dict[str, Any], list[dict[str, Any]]]]:
    """Run the parts of a plan, recorded in their folders below `out`; yield each with its manifest and records.

    The settings are runs, seed, jobs and resume, as `labelrace.evaluation.run` takes them. With resume, a part that
    has not begun is begun. In the progress, each part is as long as it is expected to take.
    """
    total, done = sum(part.cost for part in plan), 0.0
    for part in plan:
        report = None if on_progress is None else partial(_report, on_progress, part, done, total)
        runs = settings["runs"] if part.runs is None else min(settings["runs"], part.runs)
        manifest, records = run(
            part.source.data,
            part.models,
            labels=part.source.labels,
            out=Path(out, part.folder),
            batch_size=part.source.batch_size,
            skip_repeats=True,
            on_progress=report,
            **part.options,
            **settings | {"runs": runs},
        )
        yield part, manifest, records
        done += part.cost


def _report(on_progress: OnProgress, part: Part, before: float, total: float, progress: Progress) -> None:
    done = before + part.cost * progress.finished / max(progress.total, 1)
    what = f"{part.title}: {progress.model}, run {progress.run + 1}"
    on_progress(Step(what, done, total, progress.error or ""))


def possible(parts: Sequence[Part]) -> tuple[list[Part], list[str]]:
    """Leave models out of parts whose data they refuse: those of sums, where features are too many for them.

    The notes name what is left out.
    """
    kept, notes = [], []
    for part in parts:
        features = part.source.facts.features
        refusing = [model for model in part.models if features > MOST_COLUMNS and model.name in _OF_SUMS]
        models = tuple(model for model in part.models if model not in refusing)
        kept += [replace(part, models=models)] if models else []
        if refusing:
            names = listing([model.label for model in refusing])
            notes.append(
                f"Left out on {part.source.title}, as they take at most {MOST_COLUMNS:,} features and it has "
                f"{features:,}: {names}."
            )
    return kept, notes


def within(parts: Sequence[Part], runs: int, budget: float, reference: str = "") -> tuple[list[Part], list[str]]:
    """Leave models out of parts, those first that take longest, until all runs end within a number of seconds.

    Models whose state would not fit into memory are left out, too; the reference is not, unless it would be alone. The
    notes name what is left out.
    """
    costs, seconds = {}, {}
    for number, part in enumerate(parts):
        for model in part.models:
            cost = costs[number, model.label] = cost_of(model.name, part.source)
            seconds[number, model.label] = cost.seconds * (runs if model.is_random else 1)
    out = {key for key, cost in costs.items() if cost.bytes > MOST_BYTES and key[1] != reference}
    waiting = {key: time for key, time in seconds.items() if key not in out and key[1] != reference}
    total = sum(waiting.values())
    for key in sorted(waiting, key=lambda key: -waiting[key]):
        if total <= budget:
            break
        out.add(key)
        total -= waiting[key]
    kept, notes = [], []
    for number, part in enumerate(parts):
        models = tuple(model for model in part.models if (number, model.label) not in out)
        left_out = [
            f"{label} ({as_text(costs[of, label])})" for of, label in costs if of == number and (of, label) in out
        ]
        if any(model.label != reference for model in models):
            kept.append(replace(part, models=models))
            where = f"Left out on {part.source.title}, with what a run would take"
            notes += [f"{where}: {listing(left_out)}. --all runs them."] if left_out else []
        else:
            least = min((cost for (of, _), cost in costs.items() if of == number), key=lambda cost: cost.seconds)
            notes.append(
                f"{part.source.title} was left out: each run would take {as_text(least)} or more. --all runs it."
            )
    return kept, notes
