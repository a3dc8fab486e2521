"""The search that settled the default: its choices one at a time, each against what it was chosen over.

Every variant is the default with one thing changed, or another model; each is run test then train on every dataset, the
paper's five measures averaged over whole batches and over seeds. Times are ratios to the fast form of race-cls-fixed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
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
from labelrace.linear import blocks, rls, step, warm_up
from labelrace.measures import evaluate

SEEDS = 3
# Where a dataset has more cells of features and labels than this, one seed is enough.
MANY = 10_000_000


class Variant(NamedTuple):
    """A row of the table: how to make the model, and what to change while it runs (where, its name, the change)."""

    group: str
    name: str
    make: Callable[..., Any]
    change: tuple[Any, str, Any] | None = None


def relevance(bank: Any) -> Callable[..., Any]:
    """Return what makes binary relevance with a bank of learners."""
    return lambda random_state, **given: BinaryRelevanceClassifier(learner=bank, **given)


_default = partial(partial, LabelRaceClassifier)
_no_hinge: Callable[..., Any] = lambda *block, binary, learn=step.learn_block: learn(*block, binary=False)  # noqa: E731

VARIANTS = (
    Variant("", "the default", _default()),
    Variant("Other learners", "the paper's form: naive Bayes, ⌈log₂ l⌉ pseudo labels", RACEClassifier),
    Variant("Other learners", "naive Bayes for each label", relevance(NaiveBayes())),
    Variant("Other learners", "exact ridge for each label, α = 1", relevance(Ridge())),
    Variant("Other learners", "exact ridge for each label, α = 100", relevance(Ridge(100.0))),
    *(Variant("Penalty", f"α = {alpha:g}", _default(alpha=alpha)) for alpha in (0.1, 1.0, 10.0)),
    *(Variant("Random features", str(n or "none"), _default(n_random_features=n)) for n in (0, 64, 300)),
    Variant("Without", "the exact start of 512 rows (64 instead)", _default(), (warm_up, "MAX_EXACT_ROWS", 64)),
    Variant(
        "Without",
        "the marginal precision",
        _default(),
        (blocks, "marginal_precision", lambda precision, q, squares: precision + squares),
    ),
    Variant("Without", "the hinge", _default(), (rls, "learn_block", _no_hinge)),
    Variant(
        "Without",
        "a precision of its own for recent labels",
        _default(),
        (rls.RLS, "_with_recent_labels", lambda bank, state, H: state),
    ),
    Variant("Without", "subtracting a share of the row's best score", _default(), (rules, "OF_BEST", 0.0)),
    Variant("Without", "offsets of labels", _default(), (monitoring, "_MOST_OFFSET", 0.0)),
    Variant("Without", "drift detection", _default(detect_drift=False)),
    Variant("Forgetting", "none, and no drift detection", _default(half_life=None, detect_drift=False)),
    Variant("Forgetting", "half-life of 500 rows", _default(half_life=500.0)),
    Variant("Forgetting", "half-life of 2,000 rows", _default(half_life=2000.0)),
    Variant("Compressed labels", "`race-hashed`, 100 MB", HashedRACEClassifier),
    *(
        Variant("Aim", f"`{aim}`", _default(optimise=aim))
        for aim in ("example_f1", "micro_f1", "macro_f1", "hamming_loss")
    ),
)


class Result(NamedTuple):
    """Averages of the measures, and the model's seconds."""

    values: tuple[float, ...]
    seconds: float


def search(
    datasets: Annotated[list[str] | None, argument(help="Which datasets, if not all that are available.")] = None,
) -> None:
    """Change one choice of the default at a time."""
    for source in find_datasets(names=datasets or ()).sources:
        data = labelrace.load_dataset(str(source.data), labels=source.labels)
        results = [averaged(variant, data, source.batch_size) for variant in VARIANTS]
        fast = next(r.seconds for v, r in zip(VARIANTS, results, strict=True) if v.make is RACEClassifier)
        print("\n".join(table(source.name, data, results, fast)), flush=True)


def averaged(variant: Variant, data: Any, size: int) -> Result:
    """Run a variant with some seeds."""
    seeds = 1 if data.X.shape[0] * (data.X.shape[1] + data.Y.shape[1]) > MANY else SEEDS
    with patch.object(*variant.change) if variant.change else nullcontext():
        results = [run(variant.make, data, size, seed) for seed in range(seeds)]
    return Result(tuple(np.mean([r.values for r in results], axis=0)), min(r.seconds for r in results))


def run(make: Callable[..., Any], data: Any, size: int, seed: int) -> Result:
    """Test then train on every batch; whole batches count."""
    model = make(categorical_features=data.categorical, random_state=seed)
    seconds, rows = 0.0, []
    for number, (X, Y) in enumerate(data.batches(size)):
        start = time.process_time()
        predicted = model.predict(X) if number else None
        model.partial_fit(X, Y)
        seconds += time.process_time() - start
        if predicted is not None and Y.shape[0] == size:
            rows.append(list(evaluate(Y, predicted, measures="paper").values()))
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
