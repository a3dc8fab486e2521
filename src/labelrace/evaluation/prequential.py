"""Test, then train: each batch of a stream is predicted and measured first, and learned afterwards.

It needs nothing of a model but ``partial_fit`` and ``predict`` (and ``decision_function``, for measures of scores; with
more than 1,000 labels, ``predict_top`` for measures of the best ones). Labels may come late, and a share of them may be
hidden from learning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from labelrace.evaluation.checkpoint import BatchTest, Checkpoint, Observer, Stopwatch, memory_meter
from labelrace.evaluation.protocol import LabelHider, batches_of, check_options, is_online
from labelrace.streams.dataset import row_count


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
    zero_division: float | None = None,
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
    zero_division : float, default=None
        What a label that is neither there nor predicted counts in macro averages, as `labelrace.measures.evaluate` has
        it: by default 0, and 1 for the sets "paper" and "all".

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
    if not is_online(model):
        raise TypeError(
            "prequential needs a model that learns batch by batch, got "
            f"{type(model).__name__}, which learns all data at once; use holdout"
        )
    check_options(batch_size=batch_size, delay=delay, missing=missing)
    test, hider = BatchTest(measures, observer, probability_observer, zero_division), LabelHider(model, missing, seed)
    whole_size = batch_size if hasattr(data, "batches") else None
    checkpoints = _test_and_train(model, batches_of(data, batch_size), whole_size, test, hider, delay, memory)
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
