"""What workers do: begin a model, learn a share, add what two have gained, and join it with the start.

Each is a function of its arguments alone, so that whoever repeats it, after a worker died, gets the same bits. A model
and a tagger differ in how rows are set aside and in how shares are joined; `_Kind` tells how.
"""

from __future__ import annotations

import copy
import functools
import itertools
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse

from labelrace.base import sparse
from labelrace.base.names import NamedRows
from labelrace.distributed.sources import read_batches
from labelrace.merging import shards
from labelrace.streams.dataset import row_count
from labelrace.tables import Tagger, merging
from labelrace.tables.cells import Table, stacked
from labelrace.tables.state import f1
from labelrace.typing import IntArray


class Settings(NamedTuple):
    """How a source is read and shared."""

    batch_size: int  # rows learned at once
    labels: Any  # as for `labelrace.streams.open_stream`
    held: int  # rows of a share that are set aside


class Begun(NamedTuple):
    """A model that shares can start from, the rows it has learned, and the batches, for each of the first pieces."""

    model: Any
    rows: int
    batches: tuple[int, ...]


class Share(NamedTuple):
    """What a share has become."""

    gain: Any  # what `shards.gained` returns, or None where there was nothing to learn
    held: tuple[Any, ...]  # batches of rows that were set aside
    rows: int  # rows learned
    # Sum of the F measures of rows that the start predicted before they were learned, and how many.
    sum_f1: float
    tested: int


class Joined(NamedTuple):
    """A joint model, the rows that were learned in the round, and how well the start predicted some of them.

    ``batches`` are those of the first pieces that the very first start has learned.
    """

    model: Any
    rows: int
    sum_f1: float
    tested: float
    batches: tuple[int, ...]


class _ModelKind:
    """Batches are pairs of features and labels."""

    def n_rows(self, batch: Any) -> int:
        return row_count(batch[0])

    def are_alike(self, one: Any, other: Any) -> bool:
        return all(_are_alike(*parts) for parts in zip(one, other, strict=True))

    def stacked(self, batches: list[Any]) -> Any:
        return tuple(_stacked(list(parts)) for parts in zip(*batches, strict=True))

    def split(self, batch: Any, held: IntArray) -> tuple[Any, Any]:
        rest = np.setdiff1d(np.arange(self.n_rows(batch)), held)
        aside, others = (tuple(_taken(part, rows) for part in batch) for rows in (held, rest))
        return aside, others

    def learn(self, model: Any, batch: Any) -> IntArray | None:
        model.partial_fit(*batch)
        return np.unique(batch[0].indices) if isinstance(batch[0], scipy.sparse.csr_array) else None

    def f1(self, model: Any, batch: Any) -> list[float]:
        names = None if model.label_names_ is None else list(model.label_names_)
        truth = _sets(batch[1], names)
        return [f1(t, set(map(str, p))) for p, t in zip(model.predict_labels(batch[0]), truth, strict=True)]

    def started(self, model: Any) -> Any:
        return shards.started(model)

    def gained(self, start: Any, end: Any, touched: IntArray | None) -> Any:
        return shards.gained(start, end, touched)

    def joined(self, start: Any, total: Any, held: list[Any]) -> Any:
        if not held:
            return shards.joined(start, total)
        return shards.joined(start, total, *self.stacked(held))


class _TaggerKind:
    """Batches are tables with a column of tags."""

    def n_rows(self, batch: Any) -> int:
        return int(batch.n_rows)

    def are_alike(self, one: Any, other: Any) -> bool:
        return True

    def stacked(self, batches: list[Any]) -> Any:
        return stacked(batches)

    def split(self, batch: Table, held: IntArray) -> tuple[Any, Any]:
        rest = np.setdiff1d(np.arange(batch.n_rows), held)
        return batch.taken(held.tolist()), batch.taken(rest.tolist())

    def learn(self, model: Any, batch: Any) -> IntArray | None:
        model.partial_fit(batch)
        return None

    def f1(self, model: Any, batch: Any) -> list[float]:
        [(table, tags, _)] = _one_batch(model, batch)
        truth = [None if names is None else model.state.names.current(names) for names in tags]
        return [f1(t, p) for p, t in zip(model.predict(table), truth, strict=True) if t is not None]

    def started(self, model: Any) -> Any:
        return merging.started(model)

    def gained(self, start: Any, end: Any, touched: IntArray | None) -> Any:
        return merging.gained(start, end)

    def joined(self, start: Any, total: Any, held: list[Any]) -> Any:
        if not held:
            return merging.joined(start, total)
        [(table, tags, _)] = _one_batch(start, stacked(held))
        return merging.joined(start, total, table, tags)


_Kind: TypeAlias = _ModelKind | _TaggerKind


def _kind(model: Any) -> _Kind:
    return _TaggerKind() if isinstance(model, Tagger) else _ModelKind()


def begin(model: Any, pieces: list[Any], settings: Settings) -> Begun:
    """Let a model learn the first rows, as many as it needs to be shared, and check that it can be."""
    begun = first_rows(model, pieces, settings)
    shards.refuse(_inner(begun.model))
    return begun


def first_rows(model: Any, pieces: list[Any], settings: Settings, *, as_they_come: bool = False) -> Begun:
    """Let a model learn the first rows, as many as it needs to be past its warm-up.

    Small batches are put together, unless they are to be learned as they come.
    """
    kind, rows, counts = _kind(model), 0, [0] * len(pieces)
    batches = (
        (place, batch)
        for place, piece in enumerate(pieces)
        for batch in _batches(piece, settings, as_tables=isinstance(model, Tagger))
    )
    first = next(batches, None)
    # What sums are of is settled by the first batch as it comes; others gain from rows that are learned together.
    tried = None if first is None or model.is_fitted else _learned(kind, model, first[1])
    as_they_come = as_they_come or _is_sums(model if tried is None else tried)
    groups = _groups(
        kind, itertools.chain([first] if first else [], batches), 1 if as_they_come else settings.batch_size
    )
    model = copy.copy(model)
    while not _can_start(model) and (group := next(groups, None)):
        is_tried = tried is not None and rows == 0 and len(group) == 1
        batch = _together(kind, group)
        model = tried if is_tried else _learned(kind, model, batch)
        rows += kind.n_rows(batch)
        for place, _ in group:
            counts[place] += 1
    if not model.is_fitted:
        raise ValueError("source must have rows with labels, got none in its first pieces.")
    if not _can_start(model):
        raise ValueError("The first pieces of the source must have 257 rows or more: give larger pieces, or fewer.")
    return Begun(model, rows, tuple(counts))


def _learned(kind: _Kind, model: Any, batch: Any) -> Any:
    """Return a copy of a model that has learned a batch."""
    model = copy.copy(model)
    kind.learn(model, batch)
    return model


def _is_sums(model: Any) -> bool:
    """Tell whether a model is sums, for which it must have learned something."""
    return bool(model.is_fitted) and shards.is_exact(_inner(model))


def _groups(kind: _Kind, placed: Iterator[tuple[int, Any]], size: int) -> Iterator[list[tuple[int, Any]]]:
    """Group batches that follow one another, each with the place of its piece, so that none has more than some rows.

    Rows that are learned together are learned more exactly than one batch after the other.
    """
    group, n_rows = list[tuple[int, Any]](), 0
    for place, batch in placed:
        n = kind.n_rows(batch)
        if group and (n_rows + n > size or not kind.are_alike(group[0][1], batch)):
            yield group
            group, n_rows = [], 0
        group.append((place, batch))
        n_rows += n
    if group:
        yield group


def _together(kind: _Kind, group: list[tuple[int, Any]]) -> Any:
    """Put the batches of a group one below the other."""
    batches = [batch for _, batch in group]
    return batches[0] if len(batches) == 1 else kind.stacked(batches)


def is_exact(begun: Begun | Joined) -> bool:
    """Tell whether a model that was learned in shares is the one that learned all rows."""
    return shards.is_exact(_inner(begun.model))


def _inner(model: Any) -> Any:
    return model.model_ if isinstance(model, Tagger) else model


def _can_start(model: Any) -> bool:
    return bool(model.is_fitted) and shards.has_started(_inner(model))


def _batches(piece: Any, settings: Settings, *, as_tables: bool) -> Iterator[Any]:
    return read_batches(piece, settings.batch_size, as_tables=as_tables, labels=settings.labels)


def unlearned(
    known: tuple[int, ...], first: int, pieces: list[Any], settings: Settings, *, as_tables: bool
) -> Iterator[Any]:
    """Yield the batches of pieces, the first of which is the source's ``first``, but for those that the start knows."""
    for place, piece in enumerate(pieces, start=first):
        skipped = known[place] if place < len(known) else 0
        yield from itertools.islice(_batches(piece, settings, as_tables=as_tables), skipped, None)


def learn(begun: Begun | Joined, first: int, pieces: list[Any], settings: Settings) -> Share:
    """Learn a share from a start, but for some rows, evenly spread, which are predicted and set aside.

    Parameters
    ----------
    begun : Begun or Joined
        The start.
    first : int
        Which of the source's pieces is the first of the share.
    pieces : list
        The pieces of the share.
    settings : Settings
    """
    start = begun.model
    kind = _kind(start)
    shard, rows, results, touched = kind.started(start), 0, list[float](), list[IntArray]()
    # Models that are not sums gain from rows that are learned together, and need some to be joined by.
    sets_aside = not is_exact(begun)
    held, n_held = list[Any](), 0
    with warnings.catch_warnings():
        # Each shard would say again what was said of the first rows.
        warnings.simplefilter("ignore", UserWarning)
        batches = unlearned(begun.batches, first, pieces, settings, as_tables=isinstance(start, Tagger))
        for group in _groups(kind, ((0, batch) for batch in batches), settings.batch_size if sets_aside else 1):
            batch = _together(kind, group)
            n = kind.n_rows(batch)
            wanted = min(settings.held - n_held, max(1, n // 4))
            if wanted > 0:
                aside, others = kind.split(batch, np.arange(wanted) * n // wanted)
                n_held += wanted
                results += kind.f1(start, aside)
                if sets_aside:
                    held.append(aside)
                    batch, n = others, n - wanted
            if n:
                found = kind.learn(shard, batch)
                rows += n
                touched += [] if found is None else [found]
    gain = None
    if rows:
        gain = kind.gained(start, shard, np.unique(np.concatenate(touched)) if touched else None)
    return Share(gain, tuple(held), rows, float(sum(results)), len(results))


def add(*shares: Share) -> Share:
    """Add what shares have gained, the rows of each before those of the next."""
    return functools.reduce(_added, shares)


def _added(one: Share, other: Share) -> Share:
    gains = [share.gain for share in (one, other) if share.gain is not None]
    total = (gains or [None])[0]
    if len(gains) == 2:
        total = merging.added(*gains) if isinstance(total, merging.TaggerGain) else shards.added(*gains)
    rows, sum_f1, tested = one.rows + other.rows, one.sum_f1 + other.sum_f1, one.tested + other.tested
    return Share(total, one.held + other.held, rows, sum_f1, tested)


def join(begun: Begun | Joined, *shares: Share) -> Joined:
    """Join the start with what shares have gained, and learn the rows that were set aside."""
    start, total = begun.model, add(*shares)
    kind = _kind(start)
    held = sum(kind.n_rows(batch) for batch in total.held)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if total.gain is not None:
            model = kind.joined(start, total.gain, list(total.held))
        else:
            model = copy.copy(start)
            for batch in total.held:
                kind.learn(model, batch)
    before = begun.rows if isinstance(begun, Begun) else 0
    return Joined(model, before + total.rows + held, total.sum_f1, total.tested, begun.batches)


def _one_batch(tagger: Any, table: Table) -> list[Any]:
    """Return a table and its tags as one batch."""
    whole = copy.copy(tagger)
    whole.batch_size = max(1, table.n_rows)
    return list(whole.tagged_batches(table))


def itself(value: Any) -> Any:
    """Return a value: so it is sent to whoever needs it, as often as it is lost."""
    return value


def _taken(part: Any, rows: IntArray) -> Any:
    if isinstance(part, NamedRows):
        return part._replace(matrix=part.matrix[rows])
    if hasattr(part, "iloc"):
        return part.iloc[rows]
    return [part[row] for row in rows.tolist()] if isinstance(part, (list, tuple)) else part[rows]


def _are_alike(one: Any, other: Any) -> bool:
    """Tell whether parts of two batches have the same columns, so that one may be put below the other as it is."""
    if type(one) is not type(other):
        return False
    if isinstance(one, NamedRows):
        return list(one.names) == list(other.names) and _are_alike(one.matrix, other.matrix)
    if hasattr(one, "iloc"):
        return list(one.columns) == list(other.columns)
    return isinstance(one, (list, tuple)) or (one.shape[1:], one.dtype) == (other.shape[1:], other.dtype)


def _stacked(parts: list[Any]) -> Any:
    """Put parts of the same kind one below the other."""
    first = parts[0]
    if isinstance(first, NamedRows):
        if all(_are_alike(first, part) for part in parts):
            return NamedRows(_stacked([part.matrix for part in parts]), first.names)
        return [row for part in parts for row in _sets(part, None)]
    if isinstance(first, (list, tuple)):
        return [row for part in parts for row in part]
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(parts)
    return sparse.stacked(parts)


def _sets(y: Any, names: list[Any] | None) -> list[set[str]]:
    """Return labels as sets of names, or of columns as texts."""
    if isinstance(y, NamedRows):
        matrix, names = scipy.sparse.csr_array(y.matrix), list(y.names)
    elif isinstance(y, (list, tuple)):
        return [set(map(str, row)) for row in y]
    elif hasattr(y, "iloc"):
        matrix, names = scipy.sparse.csr_array(np.nan_to_num(y.to_numpy(dtype=float))), list(y.columns)
    else:
        matrix = scipy.sparse.csr_array(y)
    matrix.eliminate_zeros()
    ends = matrix.indptr
    found = [matrix.indices[a:b].tolist() for a, b in itertools.pairwise(ends)]
    return [{str(j if names is None or j >= len(names) else names[j]) for j in row} for row in found]
