"""The protocols of an evaluation: test, then train; and a test set held out.

Both can hide a share of the labels from learning, and the first can delay them. They need nothing of a model but
``partial_fit`` and ``predict`` (and ``decision_function``, for measures of scores; with more than 1,000 labels,
``predict_top`` for measures of the best ones).
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from labelrace.base import parameters
from labelrace.evaluation.checkpoint import BatchTest, Checkpoint, Observer, Stopwatch, memory_meter
from labelrace.measures.inputs import are_label_sets
from labelrace.streams.cells import canonical_rows
from labelrace.streams.dataset import row_count
from labelrace.typing import IntArray


def prequential(
    model: Any,
    data: Any,
    batch_size: int = 500,
    measures: str | Iterable[str] = "paper",
    *,
    delay: int = 0,
    missing: float = 0.0,
    seed: Any = None,
    memory: bool = False,
    untested: bool = False,
    observer: Observer | None = None,
    probability_observer: Observer | None = None,
) -> Iterator[Checkpoint]:
    """Evaluate a model on a stream: each batch is predicted and measured first, and learned afterwards.

    The first batch is only learned. Each further one is predicted, measured and learned; then its checkpoint is
    yielded. `averages` of the checkpoints are the numbers of the paper's tables.

    Parameters
    ----------
    model : object with ``partial_fit`` and ``predict``
        Also ``decision_function``, which is called only if a measure needs scores, and ``predict_labels`` where labels
        are sets of names.
    data : Dataset, stream, or iterable of (X, Y)
        Whatever has ``batches(size)``, or the batches themselves. `Y` is a matrix of 0 and 1, or a list that has for
        each row the set of the names of its labels.
    batch_size : int, default=500
        Rows in a batch. Where the data is an iterable, a batch as large as its first one counts as whole.
    measures : str or iterable of str, default="paper"
        As `labelrace.measures.evaluate` takes them.
    delay : int, default=0
        How many batches later the labels arrive: after batch ``t`` is predicted, batch ``t - delay`` is learned. The
        batches that come before anything is learned, 0 to `delay`, are not tested. The batches that are pending at
        the end of the stream are learned then, so that the model ends up with all of the data.
    missing : float, default=0.0
        Share of the label entries that are hidden from learning, see `LabelHider`. Tests use all labels.
    seed : int, Generator or None, default=None
        Draws the hidden entries.
    memory : bool, default=False
        Whether to trace allocations, which is slow, instead of asking the system, see `memory_meter`.
    untested : bool, default=False
        Whether to yield a checkpoint without measures for each batch that is not tested, too, and one without
        rows for what is learned at the end, so that the times are complete.
    observer : callable, default=None
        Called with true and predicted labels of each tested batch.
    probability_observer : callable, default=None
        Called with true labels and ``predict_proba`` of each tested batch. Neither is timed.

    Yields
    ------
    Checkpoint
        One for each tested batch.

    Examples
    --------
    >>> import labelrace
    >>> from labelrace.evaluation import averages, prequential
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=1100, n_features=20, n_labels=12, seed=0)
    >>> model = labelrace.make_model("race-cls-fixed", random_state=0)
    >>> checkpoints = list(prequential(model, stream, batch_size=200))
    >>> [(checkpoint.batch, checkpoint.rows, checkpoint.whole) for checkpoint in checkpoints]
    [(1, 200, True), (2, 200, True), (3, 200, True), (4, 200, True), (5, 100, False)]
    >>> sorted(averages(checkpoints))
    ['example_accuracy', 'example_f1', 'hamming_loss', 'macro_f1', 'micro_f1']
    """
    if not _is_online(model):
        raise TypeError(
            "prequential needs a model that learns batch by batch, got "
            f"{type(model).__name__}, which learns all data at once; use holdout"
        )
    check_options(batch_size=batch_size, delay=delay, missing=missing)
    test, hider = BatchTest(measures, observer, probability_observer), LabelHider(model, missing, seed)
    whole_size = batch_size if hasattr(data, "batches") else None
    checkpoints = _test_and_train(model, _batches(data, batch_size), whole_size, test, hider, delay, memory)
    return checkpoints if untested else (checkpoint for checkpoint in checkpoints if checkpoint.tested)


def _test_and_train(
    model: Any,
    batches: Iterator[tuple[Any, Any]],
    whole_size: int | None,
    test: BatchTest,
    hider: LabelHider,
    delay: int,
    memory: bool,
) -> Iterator[Checkpoint]:
    number, end = -1, 0
    pending: deque[tuple[Any, Any]] = deque()
    with memory_meter(memory) as peak:
        for number, (X, Y) in enumerate(batches):
            start, end = end, end + row_count(X)
            whole_size = whole_size or end
            watch, tested = Stopwatch(), number > delay
            values = test(model, X, Y, watch) if tested else {}
            pending.append((X, hider.hide(Y)))
            if len(pending) > delay:
                with watch.timing("learn"):
                    model.partial_fit(*pending.popleft())
            whole = end - start >= whole_size
            yield Checkpoint(number, start, end, values, watch.seconds, peak(), whole, tested)
        if pending:
            watch = Stopwatch()
            with watch.timing("learn"):
                for X, Y in pending:
                    model.partial_fit(X, Y)
            yield Checkpoint(number + 1, end, end, {}, watch.seconds, peak(), whole=False, tested=False)


def holdout(
    model: Any,
    data: Any,
    batch_size: int = 500,
    measures: str | Iterable[str] = "paper",
    *,
    test_share: float = 0.33,
    iterations: int = 1,
    missing: float = 0.0,
    seed: Any = None,
    memory: bool = False,
    observer: Observer | None = None,
) -> Iterator[Checkpoint]:
    """Evaluate a model on a test set after each batch of training, as in the paper's comparison with PLST.

    A random share of the rows is the test set. The model learns the rest in batches, in their order, and is tested
    on all of the test set after each. So every checkpoint counts in `averages`, a short last batch's too.

    Parameters
    ----------
    model : object with ``partial_fit`` and ``predict``
        As for `prequential`. A model without ``partial_fit``, or with an attribute ``is_online`` that is False, learns
        all training rows at once, once, by ``fit``.
    data : Dataset, stream, or iterable of (X, Y)
        As for `prequential`; a stream is loaded first.
    batch_size : int, default=500
        Training rows in a batch.
    measures : str or iterable of str, default="paper"
        As `labelrace.measures.evaluate` takes them.
    test_share : float, default=0.33
        Share of the rows to hold out.
    iterations : int, default=1
        How many times in a row the model learns each batch.
    missing : float, default=0.0
        Share of the label entries that are hidden from learning, see `LabelHider`; the same in all iterations.
    seed : int, Generator or None, default=None
        Draws the test set and the hidden entries.
    memory : bool, default=False
        As for `prequential`.
    observer : callable, default=None
        Called with true and predicted labels of each test.

    Yields
    ------
    Checkpoint
        One for each training batch, from batch 0 on; `start` and `end` count the training rows.

    Examples
    --------
    >>> import labelrace
    >>> from labelrace.evaluation import holdout
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=300, n_features=20, n_labels=12, seed=0)
    >>> model = labelrace.make_model("race-cls-adaptive", random_state=0)
    >>> [(point.batch, point.end) for point in holdout(model, stream, batch_size=100, iterations=3, seed=0)]
    [(0, 100), (1, 200), (2, 201)]
    """
    check_options(batch_size=batch_size, test_share=test_share, iterations=iterations, missing=missing)
    test, rng = BatchTest(measures, observer), np.random.default_rng(seed)
    hider = LabelHider(model, missing, rng)
    X, Y = _all_rows(data, batch_size)
    train, held_out = _split(row_count(X), test_share, rng)
    size = batch_size if _is_online(model) else len(train)
    parts = (train[start : start + size] for start in range(0, len(train), size))
    batches = ((_take(X, rows), _take(Y, rows)) for rows in parts)
    return _train_and_test(model, batches, (_take(X, held_out), _take(Y, held_out)), test, hider, iterations, memory)


def _train_and_test(
    model: Any,
    batches: Iterator[tuple[Any, Any]],
    held_out: tuple[Any, Any],
    test: BatchTest,
    hider: LabelHider,
    iterations: int,
    memory: bool,
) -> Iterator[Checkpoint]:
    learn, times = (model.partial_fit, iterations) if _is_online(model) else (model.fit, 1)
    end = 0
    with memory_meter(memory) as peak:
        for number, (X, Y) in enumerate(batches):
            start, end = end, end + row_count(X)
            shown, watch = hider.hide(Y), Stopwatch()
            with watch.timing("learn"):
                for _ in range(times):
                    learn(X, shown)
            values = test(model, *held_out, watch)
            yield Checkpoint(number, start, end, values, watch.seconds, peak())


def _is_online(model: Any) -> bool:
    return bool(getattr(model, "is_online", hasattr(model, "partial_fit")))


def _split(n_rows: int, test_share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return training and test rows, each in the order of the stream."""
    n_test = round(test_share * n_rows)
    if not 0 < n_test < n_rows:
        raise ValueError(
            f"test_share must leave rows to test and to learn, got {test_share!r} of {n_rows} rows, "
            "which leaves no rows for one of them"
        )
    rows = rng.permutation(n_rows)
    return np.sort(rows[n_test:]), np.sort(rows[:n_test])


PROTOCOLS: dict[str, Callable[..., Iterator[Checkpoint]]] = {"prequential": prequential, "holdout": holdout}

# What can be chosen for a run, besides what `run` has parameters for.
_OPTIONS = {
    "prequential": ("delay", "missing", "memory"),
    "holdout": ("test_share", "iterations", "missing", "memory"),
}


def check_options(
    *,
    batch_size: int = 1,
    delay: int = 0,
    missing: float = 0.0,
    test_share: float = 0.5,
    iterations: int = 1,
    memory: bool = False,
) -> None:
    """Raise ValueError for a parameter of a protocol that cannot be."""
    parameters.check_whole("batch_size", batch_size, 1)
    parameters.check_whole("delay", delay, 0)
    parameters.check_number("missing", missing, 0, 1)
    parameters.check_whole("iterations", iterations, 1)
    if not 0 < test_share < 1:
        raise ValueError(
            f"test_share must be between 0 and 1, got {test_share!r}, which leaves no rows to test or none to learn"
        )


def changed_options(protocol: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Check the options of a protocol, and return those that differ from the defaults and may change a measure."""
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    for name in options:
        if name not in _OPTIONS[protocol]:
            raise TypeError(f"options of {protocol} must be some of {', '.join(_OPTIONS[protocol])}, got {name!r}")
    check_options(**options)
    defaults = inspect.signature(PROTOCOLS[protocol]).parameters
    return {name: value for name, value in options.items() if value != defaults[name].default and name != "memory"}


class LabelHider:
    """Hides a random share of the label entries from learning.

    Which entries are hidden depends on the seed and the shapes of the batches alone, so all models miss the same
    ones. A hidden entry is shown as 0, absent, as if an annotator had overlooked it. A model with an attribute
    ``supports_missing_labels`` that is True gets a dense matrix with NaN there instead. From a set of names, each is
    left out with the same probability.
    """

    def __init__(self, model: Any, share: float = 0.0, seed: Any = None) -> None:
        self._share = share
        self._rng = np.random.default_rng(seed)
        self._shown_as = np.nan if getattr(model, "supports_missing_labels", False) else 0.0

    def hide(self, Y: Any) -> Any:
        """Return the labels of the next batch as the model may see them; `Y` itself is not changed."""
        if self._share == 0:
            return Y
        if are_label_sets(Y):
            return [{name for name in sorted(row) if self._rng.random() >= self._share} for row in Y]
        hidden = self._rng.random(np.shape(Y), dtype=np.float32) < self._share
        if scipy.sparse.issparse(Y):
            if self._shown_as == 0:
                return canonical_rows(Y.multiply(~hidden))
            Y = Y.toarray()
        if hasattr(Y, "columns"):  # a data frame, which keeps its names
            return Y.astype(np.float64).mask(hidden, self._shown_as)
        return np.where(hidden, self._shown_as, Y)


def _batches(data: Any, size: int) -> Iterator[tuple[Any, Any]]:
    """Iterate over the batches of a dataset or stream, or of an iterable that holds them already."""
    return data.batches(size) if hasattr(data, "batches") else iter(data)


def _all_rows(data: Any, size: int) -> tuple[Any, Any]:
    """Return X and Y of all rows: a dataset's own, or what the batches of a stream hold together."""
    if hasattr(data, "X") and hasattr(data, "Y"):
        return data.X, data.Y
    parts = list(_batches(data, size))
    if not parts:
        raise ValueError("data must have rows to evaluate on, got no rows")
    return _stack([X for X, _ in parts]), _stack([Y for _, Y in parts])


def _stack(parts: Sequence[Any]) -> Any:
    if any(map(scipy.sparse.issparse, parts)):
        return scipy.sparse.csr_array(scipy.sparse.vstack(list(map(scipy.sparse.csr_array, parts)), format="csr"))
    return [row for part in parts for row in part] if any(map(are_label_sets, parts)) else np.vstack(parts)


def _take(rows: Any, places: IntArray) -> Any:
    return [rows[place] for place in places] if isinstance(rows, list) else rows[places]
