"""What workers do: begin a model, learn a share, add what shares have gained, and join it with the start.

Each is a function of its arguments alone: repeated after a worker died, it gives the same bits. What the verbs mean is
told in `labelrace.merging`; here they are given batches, and rows to be set aside.
"""

from __future__ import annotations

import copy
import functools
import itertools
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from labelrace import merging
from labelrace.distributed import batches
from labelrace.distributed.batches import Batch
from labelrace.distributed.sources import naming_files, read_batches
from labelrace.streams.column_matching import Features
from labelrace.tables import Tagger
from labelrace.typing import IntArray


class Settings(NamedTuple):
    """How a source is read and shared."""

    batch_size: int  # rows learned at once
    labels: Any  # as for `labelrace.streams.open_stream`
    n_held_out: int  # rows of a share that are set aside
    is_alone: bool = False  # whether the share is the only one of its round


class Start(NamedTuple):
    """A model that shares can start from: after the first rows, or after a round."""

    model: Any
    rows: int  # rows learned so far
    known_batches: tuple[int, ...]  # for each of the first pieces, how many of its batches the first rows are
    # Sum of the F1 of rows that were predicted before they were learned, and their number.
    sum_f1: float = 0.0
    n_tested: int = 0


class Share(NamedTuple):
    """What a share, or several, have learned."""

    gain: Any  # as `labelrace.merging.gain` returns it; None where there was nothing to learn
    held_out: tuple[Batch, ...]  # rows that were set aside
    rows: int  # rows learned
    # Sum of the F1 of rows that the start predicted before they were learned, and their number.
    sum_f1: float
    n_tested: int
    model: Any = None  # what a share that is alone has become, where models are not sums


def begin(model: Any, pieces: list[Any], settings: Settings, features: Features | None = None) -> Start:
    """Let a model learn the first rows, as many as it needs to be learned in shares, and check that it can be."""
    numbered = (
        (number, batch) for number, piece in enumerate(pieces) for batch in _batches(model, piece, settings, features)
    )
    first, rows, counts = next(numbered, None), 0, [0] * len(pieces)
    # What sums are of is settled by the first batch as it comes; others gain from rows that are learned together.
    trial = None
    if first is not None and not model.is_fitted:
        with naming_files(pieces[first[0]]):
            trial = _learn_copy(model, first[1])
    tried = model if trial is None else trial
    is_sums = tried.is_fitted and merging.is_exact(tried)
    every = itertools.chain([] if first is None else [first], numbered)
    # The fewest pieces that have a batch: rows that one pass begins with choose the same penalty.
    groups = batches.groups(every, 1 if is_sums else settings.batch_size, at_least=True)
    model = copy.copy(model)
    while not merging.is_ready(model) and (group := next(groups, None)):
        batch = batches.stack([batch for _, batch in group])
        is_trial = trial is not None and rows == 0 and len(group) == 1
        with naming_files(*(pieces[number] for number, _ in group)):
            model = trial if is_trial else _learn_copy(model, batch)
        rows += batches.n_rows(batch)
        for number, _ in group:
            counts[number] += 1
    if not model.is_fitted:
        raise ValueError("source must have rows with labels, got none in its first pieces.")
    if not merging.is_ready(model):
        raise ValueError("The first pieces of the source must have 257 rows or more: give larger pieces, or fewer.")
    merging.refuse(model)
    return Start(model, rows, tuple(counts))


def _learn_copy(model: Any, batch: Batch) -> Any:
    """Return a copy of a model that has learned a batch."""
    return copy.copy(model).partial_fit(*batch)


def is_exact(start: Start) -> bool:
    """Return whether a model that is learned in shares becomes the one that learned all rows."""
    return merging.is_exact(start.model)


def _batches(model: Any, piece: Any, settings: Settings, features: Features | None) -> Iterator[Batch]:
    """Yield the batches of a piece as what ``partial_fit`` takes."""
    as_tables = isinstance(model, Tagger)
    reading = {"as_tables": as_tables, "labels": settings.labels, "features": features}
    for batch in read_batches(piece, settings.batch_size, **reading):
        yield (batch,) if as_tables else batch


def learn(start: Start, first: int, pieces: list[Any], settings: Settings, features: Features | None = None) -> Share:
    """Learn a share from a start, but for some rows, evenly spread, which are predicted and set aside.

    A share that is alone need not be joined: its rows are predicted, and learned like all others.

    Parameters
    ----------
    start : Start
    first : int
        Which of the source's pieces is the first of the share.
    pieces : list
        The pieces of the share.
    settings : Settings
    features : Features, default=None
        What the columns of data files are matched with.
    """
    model = start.model
    # Models that are not sums gain from rows that are learned together, and need some to be joined by.
    is_exact = merging.is_exact(model)
    holds_out = not is_exact and not settings.is_alone
    share, rows, n_held_out = merging.start(model) if is_exact or holds_out else copy.copy(model), 0, 0
    results, held_out, touched = list[float](), list[Batch](), list[IntArray]()
    numbered = (
        (number, batch)
        for number, piece in enumerate(pieces, start=first)
        for batch in itertools.islice(_batches(model, piece, settings, features), _n_known(start, number), None)
    )
    with warnings.catch_warnings():
        # Each share would say again what was said of the first rows.
        warnings.simplefilter("ignore", UserWarning)
        for group in batches.groups(numbered, 1 if is_exact else settings.batch_size):
            batch = batches.stack([batch for _, batch in group])
            n = batches.n_rows(batch)
            n_tested = min(settings.n_held_out - n_held_out, max(1, n // 4))
            with naming_files(*(pieces[number - first] for number, _ in group)):
                if n_tested > 0:
                    n_held_out += n_tested
                    tested = np.arange(n_tested) * n // n_tested
                    aside = batches.take(batch, tested)
                    results += batches.example_f1(model, aside)
                    if holds_out:
                        held_out.append(aside)
                        batch, n = batches.take(batch, np.setdiff1d(np.arange(n), tested)), n - n_tested
                if n:
                    share.partial_fit(*batch)
            if n:
                rows += n
                columns = batches.touched_features(batch)
                touched += [] if columns is None else [columns]
    if settings.is_alone and not is_exact:
        # Labels may be compressed by now.
        merging.refuse(share)
        return Share(None, (), rows, float(sum(results)), len(results), share)
    gain = merging.gain(model, share, np.unique(np.concatenate(touched)) if touched else None) if rows else None
    return Share(gain, tuple(held_out), rows, float(sum(results)), len(results))


def _n_known(start: Start, number: int) -> int:
    """Count the batches of a piece that the first rows are."""
    return start.known_batches[number] if number < len(start.known_batches) else 0


def add(*shares: Share) -> Share:
    """Add what shares have gained, the rows of each before those of the next."""
    return functools.reduce(_add_two, shares)


def _add_two(one: Share, other: Share) -> Share:
    gains = [share.gain for share in (one, other) if share.gain is not None]
    return Share(
        functools.reduce(merging.add, gains) if gains else None,
        one.held_out + other.held_out,
        one.rows + other.rows,
        one.sum_f1 + other.sum_f1,
        one.n_tested + other.n_tested,
    )


def join(start: Start, *shares: Share) -> Start:
    """Join the start with what shares have gained, and learn the rows that were set aside."""
    total = add(*shares)
    held_out = list(total.held_out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if total.model is not None:
            model = total.model
        elif total.gain is None:
            model = functools.reduce(_learn_copy, held_out, copy.copy(start.model))
        else:
            model = merging.join(start.model, total.gain, *(batches.stack(held_out) if held_out else ()))
    rows = start.rows + total.rows + sum(map(batches.n_rows, held_out))
    return Start(model, rows, start.known_batches, start.sum_f1 + total.sum_f1, start.n_tested + total.n_tested)
