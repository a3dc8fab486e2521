"""The search that settled the default: its choices one at a time, each against what it was chosen over.

Every variant is the default with one thing changed, or another model; each is run test then train on every dataset, the
paper's five measures averaged over whole batches and over seeds. Times are ratios to the fast form of race-cls-fixed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, NamedTuple
from unittest.mock import patch

import numpy as np

import labelrace
from benchmarks.datasets import find_datasets
from labelrace import BinaryRelevanceClassifier, HashedRACEClassifier, LabelRaceClassifier, RACEClassifier
from labelrace.cli.options import argument
from labelrace.decisions import monitoring, rules
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.linear import blocks, rls, warm_up
from labelrace.measures import PAPER_MEASURES, evaluate

SEEDS = 3
# Where a dataset has more cells of features and labels than this, one seed is enough.
MANY = 10_000_000

# What is taken away: where a part of the design is, its name there, and what takes its place.
PARTS: dict[str, tuple[Any, str, Any]] = {
    "exact start": (warm_up, "MAX_EXACT_ROWS", 64),
    "marginal precision": (blocks, "marginal_precision", lambda precision, q, squares: precision + squares),
    "hinge": (rls, "_learn_block", lambda *block, binary, learn=rls._learn_block: learn(*block, binary=False)),
    "generations": (rls.RLS, "_with_recent_labels", lambda bank, state, H: state),
    "share of the best": (rules, "OF_BEST", 0.0),
    "offsets": (monitoring, "_MOST_OFFSET", 0.0),
}


class Variant(NamedTuple):
    """One line of the table: how to make the model, and what to change while it runs."""

    group: str
    name: str
    make: Callable[..., Any]
    change: Callable[[], AbstractContextManager[Any]] = nullcontext


def default(**changed: Any) -> Callable[..., Any]:
    """Return what makes the default with other parameters."""
    return lambda **given: LabelRaceClassifier(**given, **changed)


def without(part: str) -> Callable[[], AbstractContextManager[Any]]:
    """Take a part of the design away."""
    return lambda: patch.object(*PARTS[part])


def relevance(bank: Any) -> Callable[..., Any]:
    """Return what makes binary relevance with a bank of learners."""
    return lambda random_state, **given: BinaryRelevanceClassifier(learner=bank, **given)


VARIANTS = (
    Variant("", "the default", default()),
    Variant("Other learners", "the paper's form: naive Bayes, ⌈log₂ l⌉ pseudo labels", RACEClassifier),
    Variant("Other learners", "naive Bayes on every label", relevance(NaiveBayes())),
    Variant("Other learners", "exact ridge on every label, α = 1", relevance(Ridge())),
    Variant("Other learners", "exact ridge on every label, α = 100", relevance(Ridge(100.0))),
    *(Variant("Penalty", f"α = {alpha:g}", default(alpha=alpha)) for alpha in (0.1, 1.0, 10.0)),
    *(Variant("Random features", str(n or "none"), default(n_random_features=n)) for n in (0, 64, 300)),
    Variant("Without", "the exact start of 512 rows: 64", default(), without("exact start")),
    Variant("Without", "the marginal precision", default(), without("marginal precision")),
    Variant("Without", "the hinge", default(), without("hinge")),
    Variant("Without", "generations", default(), without("generations")),
    Variant("Without", "the share of the best score", default(), without("share of the best")),
    Variant("Without", "offsets", default(), without("offsets")),
    Variant("Without", "drift detection", default(detect_drift=False)),
    Variant("Compressed", "labels in codes, `race-hashed` with 100 MB", HashedRACEClassifier),
    Variant("Forgetting", "none", default(half_life=None, detect_drift=False)),
    Variant("Forgetting", "half-life of 500 rows", default(half_life=500.0)),
    Variant("Forgetting", "half-life of 2,000 rows", default(half_life=2000.0)),
    Variant("Aim", "example F1", default(optimise="example_f1")),
    Variant("Aim", "micro F1", default(optimise="micro_f1")),
    Variant("Aim", "macro F1", default(optimise="macro_f1")),
    Variant("Aim", "Hamming loss", default(optimise="hamming_loss")),
)


class Result(NamedTuple):
    """Averages of the measures, and the model's seconds."""

    values: tuple[float, ...]
    seconds: float


def search(
    datasets: Annotated[list[str] | None, argument(help="Which datasets, if not all that are available.")] = None,
) -> None:
    """Print the tables of docs/search.md: the default with one thing changed at a time, on each dataset."""
    found = find_datasets(names=datasets or ())
    if not found.sources:
        raise FileNotFoundError("no dataset is available: set LABELRACE_DATA to folders that hold some")
    for source in found.sources:
        data = labelrace.load_dataset(str(source.data), labels=source.labels)
        results = [averaged(variant, data, source.batch_size) for variant in VARIANTS]
        fast = next(r.seconds for v, r in zip(VARIANTS, results, strict=True) if v.make is RACEClassifier)
        print("\n".join(table(source.name, data, results, fast)), flush=True)


def averaged(variant: Variant, data: Any, size: int) -> Result:
    """Run a variant with some seeds."""
    seeds = 1 if data.X.shape[0] * (data.X.shape[1] + data.Y.shape[1]) > MANY else SEEDS
    results = [run(variant, data, size, seed) for seed in range(seeds)]
    return Result(tuple(np.mean([r.values for r in results], axis=0)), min(r.seconds for r in results))


def run(variant: Variant, data: Any, size: int, seed: int) -> Result:
    """Test then train on every batch; whole batches count."""
    model = variant.make(categorical_features=data.categorical, random_state=seed)
    seconds, rows = 0.0, []
    with variant.change():
        for number, (X, Y) in enumerate(data.batches(size)):
            start = time.process_time()
            predicted = model.predict(X) if number else None
            model.partial_fit(X, Y)
            seconds += time.process_time() - start
            if predicted is not None and Y.shape[0] == size:
                values = evaluate(Y, predicted, None, measures="paper")
                rows.append([values[measure] for measure in PAPER_MEASURES])
    return Result(tuple(np.mean(rows, axis=0)), seconds)


def table(name: str, data: Any, results: Sequence[Result], fast: float) -> Iterator[str]:
    """Yield the lines of a dataset's table."""
    yield f"\n## {name}: {data.X.shape[0]:,} rows, {data.X.shape[1]:,} features, {data.Y.shape[1]:,} labels\n"
    yield "| | accuracy | example F1 | Hamming loss | macro F1 | micro F1 | time |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    group = ""
    for variant, (values, seconds) in zip(VARIANTS, results, strict=True):
        if variant.group != group:
            group = variant.group
            yield f"| *{group}* | | | | | | |"
        cells = " | ".join(f"{value:.3f}".lstrip("0") for value in values)
        yield f"| {variant.name} | {cells} | {seconds / fast:.1f} × |"
