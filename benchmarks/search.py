"""The search that settled the default: its choices one at a time, each against what it was chosen over.

Every variant is the default with one thing changed, or another model altogether; each is run prequentially on every
dataset, the paper's five measures averaged over whole batches and over seeds. Times are ratios to the fast form of
race-cls-fixed on the same data. Usage, for the table of docs/search.md:

    LABELRACE_DATA=folder python benchmarks/search.py [dataset …] > docs/search.md

Datasets are those of `labelrace bench quality`: all that are at hand, or those named.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from rich.progress import Progress

import labelrace
from labelrace import BinaryRelevanceClassifier, HashedRACEClassifier, LabelRaceClassifier, RACEClassifier
from labelrace.decisions import monitor as monitoring
from labelrace.decisions import rules
from labelrace.experiments.datasets import find_datasets
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.linear import rls, warm_up
from labelrace.measures import evaluate

MEASURES = ("example_accuracy", "example_f1", "hamming_loss", "macro_f1", "micro_f1")
SEEDS = 3
# Where a dataset has more cells of features and labels than this, one seed is enough.
MANY = 10_000_000


class Variant(NamedTuple):
    """One line of the table: how to make the model, and what to change while it runs."""

    group: str
    name: str
    make: Callable[..., Any]
    change: Callable[[], AbstractContextManager[Any]] = nullcontext


def default(**changed: Any) -> Callable[..., Any]:
    return lambda **given: LabelRaceClassifier(**given, **changed)


# What is taken away: where a part of the design is, its name there, and what takes its place.
PARTS: dict[str, tuple[Any, str, Any]] = {
    "exact start": (warm_up, "EXACT_ROWS", 64),
    "marginal precision": (rls, "_marginal", lambda precision, q, squares: precision + squares),
    "hinge": (rls, "_hinged", lambda errors, h: np.nan_to_num(errors)),
    "generations": (rls.RLS, "_with_recent_labels", lambda bank, state, H: state),
    "share of the best": (rules, "OF_BEST", 0.0),
    "offsets": (monitoring, "_MOST_OFFSET", 0.0),
}


def without(part: str) -> Callable[[], AbstractContextManager[Any]]:
    """Take a part of the design away."""
    return lambda: patch.object(*PARTS[part])


def relevance(bank: Any) -> Callable[..., Any]:
    return lambda random_state, **given: BinaryRelevanceClassifier(learner=bank, **given)


VARIANTS = (
    Variant("", "the default", default()),
    Variant("Other learners", "the paper's form: naive Bayes, ⌈log₂ l⌉ pseudo labels", RACEClassifier),
    Variant("Other learners", "naive Bayes on every label", relevance(NaiveBayes())),
    Variant("Other learners", "exact ridge on every label, α = 1", relevance(Ridge())),
    Variant("Other learners", "exact ridge on every label, α = 100", relevance(Ridge(100.0))),
    Variant("Penalty", "α = 0.1", default(alpha=0.1)),
    Variant("Penalty", "α = 1", default(alpha=1.0)),
    Variant("Penalty", "α = 10", default(alpha=10.0)),
    Variant("Random features", "none", default(n_random_features=0)),
    Variant("Random features", "64", default(n_random_features=64)),
    Variant("Random features", "300", default(n_random_features=300)),
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
    Variant("Aim", "example F", default(optimise="example_f1")),
    Variant("Aim", "micro F", default(optimise="micro_f1")),
    Variant("Aim", "macro F", default(optimise="macro_f1")),
    Variant("Aim", "Hamming loss", default(optimise="hamming_loss")),
)


class Result(NamedTuple):
    """Averages of the measures, and the model's seconds."""

    values: tuple[float, ...]
    seconds: float


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
                found = evaluate(Y, predicted, None, measures="paper")
                rows.append([found[measure] for measure in MEASURES])
    return Result(tuple(np.mean(rows, axis=0)), seconds)


def averaged(variant: Variant, data: Any, size: int) -> Result:
    seeds = 1 if data.X.shape[0] * (data.X.shape[1] + data.Y.shape[1]) > MANY else SEEDS
    results = [run(variant, data, size, seed) for seed in range(seeds)]
    return Result(tuple(np.mean([r.values for r in results], axis=0)), min(r.seconds for r in results))


def table(name: str, data: Any, results: list[Result], fast: float) -> Iterator[str]:
    yield f"\n## {name}: {data.X.shape[0]:,} rows, {data.X.shape[1]:,} features, {data.Y.shape[1]:,} labels\n"
    yield "| | accuracy | example F | Hamming loss | macro F | micro F | time |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    group = ""
    for variant, (values, seconds) in zip(VARIANTS, results, strict=True):
        if variant.group != group:
            group = variant.group
            yield f"| *{group}* | | | | | | |"
        cells = " | ".join(f"{value:.3f}".lstrip("0") for value in values)
        yield f"| {variant.name} | {cells} | {seconds / fast:.1f} × |"


def main(wanted: list[str]) -> None:
    found = find_datasets(names=wanted)
    for sentence in found.unreadable:
        print(sentence, file=sys.stderr)
    if not found.sources:
        raise SystemExit("no datasets are at hand: set LABELRACE_DATA to the folders that hold some")
    print("# The search that settled the default\n")
    print("Made by `python benchmarks/search.py`; docs/default.md says what was concluded. Each line is the default")
    print("with one thing changed. Times are ratios to the fast form of race-cls-fixed, in the same run, one thread.")
    with Progress(console=None, transient=True, disable=not sys.stderr.isatty()) as progress:
        for source in found.sources:
            data, size = labelrace.load_dataset(str(source.data), labels=source.labels), source.batch_size
            results = [averaged(variant, data, size) for variant in progress.track(VARIANTS, description=source.name)]
            paper = next(r for v, r in zip(VARIANTS, results, strict=True) if v.make is RACEClassifier)
            print("\n".join(table(source.name, data, results, paper.seconds)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
