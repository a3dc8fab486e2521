"""The plan of an experiment: its parts, about what each takes, and how they are run and recorded.

Costs follow those of docs/methods.md, in the symbols of its tables, simplified to a formula for each family of models,
with measured constants. They tell how long a comparison takes, and what to leave out of one that has to end within a
given time. They are formulas and not measurements, so that a comparison has the same models on every machine and when
it is resumed. Times are those of one thread of a usual machine, correct within a factor of about five.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from labelrace.evaluation import ModelSpec, Progress, run
from labelrace.experiments.datasets import Source
from labelrace.learners.sums import MOST_COLUMNS
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
    """Rows, features, stored values of a row, labels, batches; seconds of a value for naive Bayes."""

    n: float
    m: float
    z: float
    l: float  # noqa: E741
    batches: float
    value: float


def _naive_bayes(size: _Size, times: float = 1.0, copies: float = 1.0, chained: float = 0.0) -> Cost:
    """Each value of each row for each label, and each feature once a batch; in a chain, labels are features, too."""
    n, m, z, labels, batches, value = size
    features = m + chained * labels
    return Cost(times * value * labels * (n * z + batches * features), copies * 24 * features * labels)


def _sums(size: _Size, cubic: float = 0.0, pairs: float = 0.0) -> Cost:
    """Products of the features of each row, and for each batch an eigenproblem and what the method adds."""
    n, m, z, labels, batches, _ = size
    added = cubic * labels**3 + pairs * min(n, 2000) ** 2
    seconds = 5e-10 * n * z**2 + batches * (2e-10 * m**3 + 2e-10 * m**2 * labels + added)
    return Cost(seconds, 8 * (m**2 + m * labels + min(labels, 10_000) ** 2))


def _neighbours(size: _Size, window: float = 1000, per_label: float = 2e-8) -> Cost:
    """Products of rows with those of the window, to predict and to learn."""
    return Cost(size.n * (window * (2e-9 * size.z + 1e-8) + per_label * size.l), 16 * window * size.z)


def _tree(size: _Size, per_cell: float = 1e-9, per_value: float = 0.0, state: float = 500) -> Cost:
    """Count a row's features for each label."""
    cells = size.m * size.l
    return Cost(size.n * ((per_cell + per_value * size.value) * cells + 1e-7 * size.m), state * cells)


def _linear(size: _Size) -> Cost:
    """Weights of each feature for each label, with a step size each."""
    return Cost(1e-8 * size.n * size.z * size.l, 16 * size.m * size.l)


def _compressed(size: _Size, per_value: float = 2e-7, per_label: float = 0.0) -> Cost:
    """Few codes instead of the labels, and a state that is small."""
    return Cost(per_value * size.n * size.z + per_label * size.n * size.l, 0.0)


# Models that are not named here take little, as a few codes do.
_FAMILIES: dict[Callable[..., Cost], tuple[str, ...]] = {
    _naive_bayes: ("obr", "occ", "oecc", "mbr", "mbr-chunks"),
    _linear: ("arow", "adagrad-logistic", "adagrad-squared"),
    # These keep XᵀX, and refuse more features than that has room for.
    _sums: ("ridge", "plst", "plst-meka", "cplst", "faie", "cssp", "moplms", "cca", "kcca", "cs", "cl", "maniac"),
    _neighbours: ("mlknn", "mlknn-prequential", "mwc"),
    _tree: ("mlht", "mlht-moa", "eaht", "isoup", "isoup-linear"),
}
# What is not as usual in the family.
_CONSTANTS: dict[str, dict[str, float]] = {
    "occ": {"chained": 0.3},
    "oecc": {"chained": 0.3},
    "mbr": {"times": 2.5},
    "mbr-chunks": {"times": 20, "copies": 10},
    "moplms": {"cubic": 4e-9},
    "cl": {"pairs": 1e-7},
    "maniac": {"cubic": 3.9e-9},
    "mwc": {"window": 2000, "per_label": 5e-7},
    "mlht": {"per_value": 0.05},
    "mlht-moa": {"per_cell": 1e-8},
    "eaht": {"per_cell": 1e-8, "per_value": 0.5, "state": 5000},
    "isoup": {"state": 2000},
    "isoup-linear": {"state": 2000},
    "bmad": {"per_value": 1e-6, "per_label": 4e-7},
    "rbm": {"per_label": 2e-7},
}


def cost_of(model: str, source: Source) -> Cost:
    """Estimate what a run of a model takes on a dataset.

    Examples
    --------
    >>> from labelrace.experiments.datasets import drifting_streams
    >>> cost_of("obr", drifting_streams(1000)[0]).seconds < 5
    True
    """
    facts = source.facts
    # A numeric value is looked up in two bins of a normal distribution, a nominal one is a product.
    value = 1e-7 if source.numeric else 3e-9
    batches = facts.rows / source.batch_size
    z = source.row_size or facts.features
    size = _Size(facts.rows, facts.features, z, facts.labels, batches, value)
    family = next((family for family, models in _FAMILIES.items() if model in models), _compressed)
    cost = family(size, **_CONSTANTS.get(model, {}))
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
    minutes = cost.seconds / 60
    if minutes < 90:
        return f"{max(minutes, 0.1):.1f} minutes" if minutes < 10 else f"{minutes:.0f} minutes"
    return f"{minutes / 60:.1f} hours"


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
        folder = part.source.title.replace(", ", "-").replace(" ", "-")
        manifest, records = run(
            part.source.data,
            part.models,
            labels=part.source.labels,
            out=Path(out, "runs", folder, part.kind),
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
    where = ", ".join(filter(None, [part.source.title, part.kind]))
    what = f"{where}: {progress.model}, run {progress.run + 1}"
    on_progress(Step(what, done, total, progress.error or ""))


def possible(parts: Sequence[Part]) -> tuple[list[Part], list[str]]:
    """Leave models out of parts whose data they refuse: those of sums, where features are too many for them.

    The notes name what is left out.
    """
    kept, notes = [], []
    for part in parts:
        features = part.source.facts.features
        refusing = [model for model in part.models if features > MOST_COLUMNS and model.name in _FAMILIES[_sums]]
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
    keys = [(number, model) for number, part in enumerate(parts) for model in part.models]
    costs = {(number, model.label): cost_of(model.name, parts[number].source) for number, model in keys}
    times = {(n, model.label): costs[n, model.label].seconds * (runs if model.is_random else 1) for n, model in keys}
    fitting = [key for key, cost in costs.items() if cost.bytes <= MOST_BYTES and key[1] != reference]
    quickest = sorted(fitting, key=lambda key: -times[key])[::-1]
    spent = accumulate(times[key] for key in quickest)
    stay = {key for key, total in zip(quickest, spent, strict=True) if total <= budget}
    kept, notes = [], []
    for number, part in enumerate(parts):
        models = tuple(m for m in part.models if m.label == reference or (number, m.label) in stay)
        left_out = [f"{m.label} ({as_text(costs[number, m.label])})" for m in part.models if m not in models]
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
