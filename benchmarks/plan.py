"""The plan of a benchmark: its parts, about what each takes, and how they are run and recorded.

What a run takes is a formula for each family of models, so that a benchmark leaves out the same models on every
machine. Times are those of one thread of a usual machine, correct within a factor of about five;
docs/methods/index.md has the costs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import typer
from rich.console import Console

from benchmarks.datasets import Source
from labelrace.cli.options import option
from labelrace.cli.progress import run_bars
from labelrace.evaluation import ModelSpec, run
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
Datasets = Annotated[str | None, option(help="Which datasets, separated by commas, if not all available.")]
Out = Annotated[Path, typer.Option(help="Folder for records, page, tables and figures.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the runs in --out.")]
Everything = Annotated[
    bool, typer.Option("--all", help="Also run what takes long; otherwise notes name what is left out.")
]


class Cost(NamedTuple):
    """Seconds of a run, and bytes of the model's state."""

    seconds: float
    bytes: float = 0.0


class _Size(NamedTuple):
    """Rows, features, stored values of a row, labels, batches; seconds of a value for naive Bayes."""

    n: float
    m: float
    z: float
    l: float  # noqa: E741
    batches: float
    value: float


def _sums(s: _Size) -> Cost:
    seconds = 5e-10 * s.n * s.z**2 + s.batches * 2e-10 * s.m**2 * (s.m + s.l)
    return Cost(seconds, 8 * (s.m**2 + s.m * s.l + min(s.l, 10_000) ** 2))


# What each family of models takes.
_FAMILIES: dict[tuple[str, ...], Callable[[_Size], Cost]] = {
    # Naive Bayes: each value of each row for each label, and each feature once a batch.
    ("obr", "occ", "oecc", "mbr", "mbr-chunks"): lambda s: Cost(
        s.value * s.l * (s.n * s.z + s.batches * s.m), 24 * s.m * s.l
    ),
    # Weights of each feature for each label, with a step size each.
    ("arow", "adagrad-logistic", "adagrad-squared"): lambda s: Cost(1e-8 * s.n * s.z * s.l, 16 * s.m * s.l),
    # Products of the features of each row, and for each batch an eigenproblem.
    ("ridge", "plst", "plst-meka", "cplst", "faie", "cssp", "cca", "kcca", "cs", "cl"): _sums,
    # The same, with a problem of all labels in each batch.
    ("moplms", "maniac"): lambda s: Cost(_sums(s).seconds + s.batches * 4e-9 * s.l**3, _sums(s).bytes),
    # Products of rows with those of a window, to predict and to learn.
    ("mlknn", "mlknn-prequential", "mwc"): lambda s: Cost(
        1000 * s.n * (2e-9 * s.z + 1e-8) + 2e-8 * s.n * s.l, 16_000 * s.z
    ),
    # Trees: counts of each feature for each label.
    ("mlht", "mlht-moa", "eaht", "isoup", "isoup-linear"): lambda s: Cost(
        s.n * (1e-9 * s.m * s.l + 1e-7 * s.m), 2000 * s.m * s.l
    ),
}
# How many times its family's seconds a model takes, where that is far from one.
_TIMES = {"mbr": 2.5, "mbr-chunks": 20, "mwc": 10, "mlht": 5, "mlht-moa": 10, "eaht": 50, "bmad": 20}


def cost_of(model: str, source: Source) -> Cost:
    """Estimate what a run of a model takes on a dataset; models of no family take little, as a few codes do.

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
    families = (cost for models, cost in _FAMILIES.items() if model in models)
    cost = next(families, lambda s: Cost(2e-7 * s.n * s.z))(size)
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


def run_plan(
    plan: Sequence[Part], out: Path, *, runs: int, **settings: Any
) -> Iterator[tuple[Part, Record, list[Record]]]:
    """Run the parts of a plan, recorded in their folders below `out`; yield each with its manifest and records.

    The settings are seed, jobs and resume, as `labelrace.evaluation.run` takes them. With resume, a part that has not
    begun is begun. Standard error has the progress.
    """
    for number, part in enumerate(plan, 1):
        where = " ".join(filter(None, [part.source.name, part.kind]))
        print(f"{number} of {len(plan)}: {where}", file=sys.stderr)
        with run_bars(Console(stderr=True)) as show:
            manifest, records = run(
                part.source.data,
                part.models,
                labels=part.source.labels,
                out=out / "runs" / part.source.name / part.kind,
                batch_size=part.source.batch_size,
                skip_repeats=True,
                zero_division=1.0,  # as the paper counts: its tables and ours are compared
                on_progress=show,
                runs=min(runs, part.max_runs or runs),
                **part.options,
                **settings,
            )
        yield part, manifest, records


def publish(document: Document, out: Path) -> None:
    """Write page, tables, figures and records, and print the tables."""
    page = write_document(document, out)[f"{document.name}.html"]
    print_document(document)
    print(f"\nThe page: {page}")


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
