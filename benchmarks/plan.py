"""The plan of a benchmark: its parts, about what each takes, and how they are run and recorded.

What a run takes is a formula for each family of models, so that a benchmark leaves out the same models on every
machine. Times are those of one thread of a usual machine, correct within a factor of about five; docs/methods.md has
the costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from benchmarks.datasets import Source
from labelrace.cli.messages import as_line
from labelrace.cli.options import option
from labelrace.evaluation import ModelSpec, Progress, run
from labelrace.learners.sums import MOST_COLUMNS
from labelrace.report.document import Document, print_document, write_document
from labelrace.report.text import listing

# A line of a CSV file, with all digits.
Record: TypeAlias = dict[str, Any]
# Models whose state would be larger are left out.
MOST_BYTES = 2e9

RUNS = Path("labelrace-runs")
Data = Annotated[
    list[Path] | None, option(help="A folder with datasets, besides LABELRACE_DATA and the cache; repeatable.")
]
Out = Annotated[Path, typer.Option(help="Folder for records, page, tables and figures.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the runs in --out.")]
Everything = Annotated[
    bool, typer.Option("--all", help="Also run what takes long; otherwise notes name what is left out.")
]


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


# Each value of each row for each label, and each feature once a batch.
def _naive_bayes(s: _Size) -> Cost:
    return Cost(s.value * s.l * (s.n * s.z + s.batches * s.m), 24 * s.m * s.l)


# Weights of each feature for each label, with a step size each.
def _linear(s: _Size) -> Cost:
    return Cost(1e-8 * s.n * s.z * s.l, 16 * s.m * s.l)


# Products of the features of each row, and for each batch an eigenproblem.
def _sums(s: _Size) -> Cost:
    seconds = 5e-10 * s.n * s.z**2 + s.batches * 2e-10 * s.m**2 * (s.m + s.l)
    return Cost(seconds, 8 * (s.m**2 + s.m * s.l + min(s.l, 10_000) ** 2))


# The same, with a problem of all labels in each batch.
def _dense_labels(s: _Size) -> Cost:
    cost = _sums(s)
    return cost._replace(seconds=cost.seconds + s.batches * 4e-9 * s.l**3)


# Products of rows with those of a window, to predict and to learn.
def _neighbours(s: _Size) -> Cost:
    return Cost(1000 * s.n * (2e-9 * s.z + 1e-8) + 2e-8 * s.n * s.l, 16_000 * s.z)


# Counts of each feature for each label.
def _trees(s: _Size) -> Cost:
    return Cost(s.n * (1e-9 * s.m * s.l + 1e-7 * s.m), 2000 * s.m * s.l)


# Few codes instead of the labels, and a small state.
def _compressed(s: _Size) -> Cost:
    return Cost(2e-7 * s.n * s.z, 0.0)


# Models that are not named here take little, as a few codes do.
_FAMILIES: dict[Callable[[_Size], Cost], tuple[str, ...]] = {
    _naive_bayes: ("obr", "occ", "oecc", "mbr", "mbr-chunks"),
    _linear: ("arow", "adagrad-logistic", "adagrad-squared"),
    _sums: ("ridge", "plst", "plst-meka", "cplst", "faie", "cssp", "cca", "kcca", "cs", "cl"),
    _dense_labels: ("moplms", "maniac"),
    _neighbours: ("mlknn", "mlknn-prequential", "mwc"),
    _trees: ("mlht", "mlht-moa", "eaht", "isoup", "isoup-linear"),
}
# How many times its family's seconds a model takes, where that is far from one.
_TIMES = {"mbr": 2.5, "mbr-chunks": 20, "mwc": 10, "mlht": 5, "mlht-moa": 10, "eaht": 50, "bmad": 20}


def cost_of(model: str, source: Source) -> Cost:
    """Estimate what a run of a model takes on a dataset.

    Examples
    --------
    >>> from benchmarks.published import Facts
    >>> cost_of("obr", Source("tiny", Path("tiny.arff"), facts=Facts(1000, 20, 10))).seconds < 5
    True
    """
    facts = source.facts
    # A numeric value is looked up in two bins of a normal distribution, a nominal one is a product.
    value = 1e-7 if source.numeric else 3e-9
    values = source.row_size or facts.features
    size = _Size(facts.rows, facts.features, values, facts.labels, facts.rows / source.batch_size, value)
    family = next((family for family, models in _FAMILIES.items() if model in models), _compressed)
    cost = family(size)
    # Labels and probabilities are measured, too.
    return cost._replace(seconds=_TIMES.get(model, 1) * cost.seconds + 6e-8 * size.n * size.l)


@dataclass(frozen=True)
class Part:
    """One call of `labelrace.evaluation.run`: some models on a dataset, under one protocol.

    Each kind of part is recorded in a folder of its own, so that a later call for more can continue there.
    """

    source: Source
    models: tuple[ModelSpec, ...]
    options: Mapping[str, Any] = field(default_factory=dict)  # protocol, measures, calibration
    kind: str = ""
    max_runs: int | None = None

    @property
    def cost(self) -> float:
        """About how many seconds one run of all its models takes."""
        return sum(cost_of(model.name, self.source).seconds for model in self.models)


def run_plan(
    plan: Sequence[Part], out: Path, *, runs: int, **settings: Any
) -> Iterator[tuple[Part, Record, list[Record]]]:
    """Run the parts of a plan, recorded in their folders below `out`; yield each with its manifest and records.

    The settings are seed, jobs and resume, as `labelrace.evaluation.run` takes them. With resume, a part that has not
    begun is begun. A bar on standard error shows the progress, in which each part is as long as it is expected to take.
    """
    done = 0.0
    with progress_bar(sum(part.cost for part in plan)) as show:
        for part in plan:

            def tell(progress: Progress, part: Part = part, done: float = done) -> None:
                where = ", ".join(filter(None, [part.source.name, part.kind]))
                share = progress.finished / max(progress.total, 1)
                show(
                    f"{where}: {progress.model}, run {progress.run + 1}", done + part.cost * share, progress.error or ""
                )

            manifest, records = run(
                part.source.data,
                part.models,
                labels=part.source.labels,
                out=out / "runs" / part.source.name / part.kind,
                batch_size=part.source.batch_size,
                skip_repeats=True,
                on_progress=tell,
                runs=min(runs, part.max_runs or runs),
                **part.options,
                **settings,
            )
            yield part, manifest, records
            done += part.cost


@contextmanager
def progress_bar(total: float) -> Iterator[Callable[[str, float, str], None]]:
    """Show on standard error how far a benchmark is; yields what to call with text, amount done and error."""
    columns = BarColumn(bar_width=30), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn(compact=True)
    console = Console(stderr=True)
    text = TextColumn("{task.description}", markup=False)
    # The speed is that of the last ten minutes: parts are of different lengths, and so are their runs.
    with Bars(*columns, text, console=console, speed_estimate_period=600, disable=not console.is_terminal) as bars:
        task = bars.add_task("", total=total)

        def show(what: str, done: float, error: str = "") -> None:
            bars.update(task, description=as_line(what), completed=done)
            if error:
                console.print(as_line(f"{what}: {error}"), style="red", markup=False, soft_wrap=True)

        yield show


def publish(document: Document, out: Path) -> None:
    """Write page, tables, figures and records, and print the tables."""
    page = write_document(document, out)[f"{document.name}.html"]
    print_document(document)
    print(f"\nThe page: {page}")


def possible(parts: Sequence[Part]) -> tuple[list[Part], list[str]]:
    """Leave models out of parts whose data they refuse: those of sums, where features are too many for them.

    The notes name what is left out.
    """
    kept, notes = [], []
    for part in parts:
        features = part.source.facts.features
        sums = (*_FAMILIES[_sums], *_FAMILIES[_dense_labels])
        refusing = [model for model in part.models if features > MOST_COLUMNS and model.name in sums]
        models = tuple(model for model in part.models if model not in refusing)
        kept += [replace(part, models=models)] if models else []
        if refusing:
            names = listing([model.label for model in refusing])
            notes.append(
                f"Left out on {part.source.name}, as they take at most {MOST_COLUMNS:,} features and it has "
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
    quickest = sorted(fitting, key=times.__getitem__)
    spent = accumulate(times[key] for key in quickest)
    stay = {key for key, total in zip(quickest, spent, strict=True) if total <= budget}
    kept, notes = [], []
    for number, part in enumerate(parts):
        models = tuple(m for m in part.models if m.label == reference or (number, m.label) in stay)
        left_out = [model.label for model in part.models if model not in models]
        if any(model.label != reference for model in models):
            kept.append(replace(part, models=models))
        if left_out:
            where = f"Left out on {part.source.name}, as they take long or much memory"
            notes.append(f"{where}: {listing(left_out)}. --all runs them.")
    return kept, notes
