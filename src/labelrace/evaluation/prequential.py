"""Test, then train: the evaluation of models that learn from a stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from labelrace.evaluation.checkpoint import Checkpoint
from labelrace.evaluation.examine import Examiner, Observer
from labelrace.evaluation.hiding import LabelHider
from labelrace.evaluation.meters import Stopwatch, memory_meter
from labelrace.evaluation.rows import batches_of, row_count
from labelrace.typing import AnyMatrix

__all__ = ["prequential"]


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
    """Evaluate a model on a stream: each batch is a test first, and then a lesson.

    The first batch is only learned. Each further one is predicted, measured and learned; then its checkpoint is
    yielded. `averages` of the checkpoints are the numbers of the paper's tables.

    Parameters
    ----------
    model : object with ``partial_fit`` and ``predict``
        Also ``decision_function``, which is called only if a measure needs scores.
    data : Dataset, stream, or iterable of (X, Y)
        Whatever has ``batches(size)``, or the batches themselves.
    batch_size : int
        Rows in a batch. Where the data is an iterable, its first batch tells the size of a whole one.
    measures : str or iterable of str
        As `labelrace.measures.evaluate` takes them.
    delay : int
        How many batches later the labels arrive: after batch ``t`` is predicted, batch ``t - delay`` is learned. The
        batches that come before anything is learned, 0 to `delay`, are not tested. What is still on its way at the
        end of the stream is learned then, so that the model ends up with all of the data.
    missing : float
        Share of the label entries that are hidden from learning, see `LabelHider`. Tests use all labels.
    seed : int, Generator or None
        Draws the hidden entries.
    memory : bool
        Whether to trace allocations, which is slow, instead of asking the system, see `memory_meter`.
    untested : bool
        Whether to yield a checkpoint without measures for each batch that is not tested, too, and one without
        rows for what is learned at the end, so that the times are complete.
    observer : callable, optional
        Called with true and predicted labels of each tested batch.
    probability_observer : callable, optional
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
    if not getattr(model, "is_online", True):
        raise TypeError(f"{type(model).__name__} learns all data at once, not batch by batch: use holdout")
    if delay < 0:
        raise ValueError(f"delay must be 0 batches or more, got {delay!r}")
    examiner = Examiner(measures, observer, probability_observer)
    hider = LabelHider(model, missing, seed)
    batches = batches_of(data, batch_size)
    whole_size = batch_size if hasattr(data, "batches") else None
    checkpoints = _test_and_train(model, batches, whole_size, examiner, hider, delay, memory)
    return checkpoints if untested else (checkpoint for checkpoint in checkpoints if checkpoint.tested)


def _test_and_train(
    model: Any,
    batches: Iterator[tuple[AnyMatrix, AnyMatrix]],
    whole_size: int | None,
    examiner: Examiner,
    hider: LabelHider,
    delay: int,
    memory: bool,
) -> Iterator[Checkpoint]:
    number, end = -1, 0
    on_their_way: deque[tuple[AnyMatrix, AnyMatrix]] = deque()
    with memory_meter(memory) as peak:
        for number, (X, Y) in enumerate(batches):
            start, end = end, end + row_count(X)
            whole_size = whole_size or end
            watch, tested = Stopwatch(), number > delay
            values = examiner.test(model, X, Y, watch) if tested else {}
            on_their_way.append((X, hider.hide(Y)))
            if len(on_their_way) > delay:
                _learn(model, *on_their_way.popleft(), watch)
            whole = end - start >= whole_size
            yield Checkpoint(number, start, end, values, watch.seconds, peak(), whole, tested)
        if on_their_way:
            watch = Stopwatch()
            for X, Y in on_their_way:
                _learn(model, X, Y, watch)
            yield Checkpoint(number + 1, end, end, {}, watch.seconds, peak(), whole=False, tested=False)


def _learn(model: Any, X: AnyMatrix, Y: AnyMatrix, watch: Stopwatch) -> None:
    with watch.timing("learn"):
        model.partial_fit(X, Y)
