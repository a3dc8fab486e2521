"""A test set held out, measured again after each batch of training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from labelrace.evaluation.checkpoint import Checkpoint
from labelrace.evaluation.examine import Examiner, Observer
from labelrace.evaluation.hiding import LabelHider
from labelrace.evaluation.meters import Stopwatch, memory_meter
from labelrace.evaluation.rows import all_rows
from labelrace.streams.dataset import check_batch_size
from labelrace.typing import AnyMatrix, IntArray

__all__ = ["holdout"]


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
        Also ``decision_function``, which is called only if a measure needs scores. A model with an attribute
        ``is_online`` that is False learns all training rows at once, once, by ``fit``.
    data : Dataset, stream, or iterable of (X, Y)
        A stream is loaded first.
    batch_size : int
        Training rows in a batch.
    measures : str or iterable of str
        As `labelrace.measures.evaluate` takes them.
    test_share : float
        Share of the rows to hold out.
    iterations : int
        How many times in a row each batch is shown to the model.
    missing : float
        Share of the label entries that are hidden from learning, see `LabelHider`; the same in all iterations.
    seed : int, Generator or None
        Draws the test set and the hidden entries.
    memory : bool
        Whether to trace allocations, which is slow, instead of asking the system, see `memory_meter`.
    observer : callable, optional
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
    check_batch_size(batch_size)
    if iterations < 1:
        raise ValueError(f"each batch must be shown at least once, got iterations={iterations!r}")
    examiner = Examiner(measures, observer)
    rng = np.random.default_rng(seed)
    hider = LabelHider(model, missing, rng)
    X, Y = all_rows(data, batch_size)
    train, test = _split(X.shape[0], test_share, rng)
    size = batch_size if _is_online(model) else len(train)
    batches = [train[start : start + size] for start in range(0, len(train), size)]
    return _train_and_test(model, X, Y, batches, test, examiner, hider, iterations, memory)


def _is_online(model: Any) -> bool:
    return bool(getattr(model, "is_online", True))


def _split(n_rows: int, test_share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return training and test rows, each in the order of the stream."""
    n_test = round(test_share * n_rows)
    if not 0 < n_test < n_rows:
        raise ValueError(f"a test share of {test_share!r} of {n_rows} rows leaves no rows to test or none to learn")
    rows = rng.permutation(n_rows)
    return np.sort(rows[n_test:]), np.sort(rows[:n_test])


def _train_and_test(
    model: Any,
    X: AnyMatrix,
    Y: AnyMatrix,
    batches: list[IntArray],
    test: IntArray,
    examiner: Examiner,
    hider: LabelHider,
    iterations: int,
    memory: bool,
) -> Iterator[Checkpoint]:
    learn, times = (model.partial_fit, iterations) if _is_online(model) else (model.fit, 1)
    X_test, Y_test = X[test], Y[test]
    end = 0
    with memory_meter(memory) as peak:
        for number, rows in enumerate(batches):
            start, end = end, end + len(rows)
            X_batch, Y_batch, watch = X[rows], hider.hide(Y[rows]), Stopwatch()
            with watch.timing("learn"):
                for _ in range(times):
                    learn(X_batch, Y_batch)
            values = examiner.test(model, X_test, Y_test, watch)
            yield Checkpoint(number, start, end, values, watch.seconds, peak())
