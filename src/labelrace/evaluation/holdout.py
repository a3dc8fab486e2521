"""A test set held out: a model is tested on the same rows after each batch that it learns.

It needs of a model what `prequential` needs; one that learns all data at once is tested once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from labelrace.evaluation.checkpoint import BatchTest, Checkpoint, Observer, Stopwatch, memory_meter
from labelrace.evaluation.protocol import LabelHider, batches_of, check_options, is_online
from labelrace.measures.inputs import are_label_sets
from labelrace.streams.dataset import row_count
from labelrace.typing import IntArray


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
    zero_division: float | None = None,
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
    zero_division : float, default=None
        What a label that is neither there nor predicted counts in macro averages, as `labelrace.measures.evaluate` has
        it: by default 0, and 1 for the sets "paper" and "all".

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
    test, rng = BatchTest(measures, observer, zero_division=zero_division), np.random.default_rng(seed)
    hider = LabelHider(model, missing, rng)
    X, Y = _all_rows(data, batch_size)
    train, held_out = _split(row_count(X), test_share, rng)
    size = batch_size if is_online(model) else len(train)
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
    learn, times = (model.partial_fit, iterations) if is_online(model) else (model.fit, 1)
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


def _all_rows(data: Any, size: int) -> tuple[Any, Any]:
    """Return X and Y of all rows: a dataset's own, or what the batches of a stream hold together."""
    if hasattr(data, "X") and hasattr(data, "Y"):
        return data.X, data.Y
    parts = list(batches_of(data, size))
    if not parts:
        raise ValueError("data must have rows to evaluate on, got no rows")
    return _stack([X for X, _ in parts]), _stack([Y for _, Y in parts])


def _stack(parts: Sequence[Any]) -> Any:
    if any(map(scipy.sparse.issparse, parts)):
        return scipy.sparse.csr_array(scipy.sparse.vstack(list(map(scipy.sparse.csr_array, parts)), format="csr"))
    return [row for part in parts for row in part] if any(map(are_label_sets, parts)) else np.vstack(parts)


def _take(rows: Any, indices: IntArray) -> Any:
    return [rows[index] for index in indices] if isinstance(rows, list) else rows[indices]
