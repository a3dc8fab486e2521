"""Shares of labels: every share reads all rows and learns them for some of the labels; the result is that of one pass.

The pieces of a source, in their order, are cut into rounds. In each, the shares learn on from where they were; what
couples the labels (`labelrace.merging.label_shards`) is decided at the end of the round from what all have returned. If
that shows a drift that nobody knew of, the round is learned again, from its start, with what is known now.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from labelrace.decisions import monitor as monitoring
from labelrace.distributed import learning
from labelrace.distributed.learning import Begun, Joined, Settings
from labelrace.merging import label_shards
from labelrace.merging.label_shards import Monitored, Part, Watched
from labelrace.streams.dataset import row_count


class Learned(NamedTuple):
    """A share of the labels, what it monitored in this round, the rows of it, and the first pieces' known batches."""

    part: Part
    monitored: tuple[Monitored | None, ...]
    rows: int
    batches: tuple[int, ...]


class Decided(NamedTuple):
    """What monitored rows have shown; ``drift`` is the batch of a drift that the shares did not know of, or None."""

    watched: Watched | None
    drift: int | None
    rows: int


def begin(model: Any, pieces: list[Any], settings: Settings) -> Begun:
    """Let a model learn the first rows with all labels, as many as it needs, and check that labels can be shared."""
    begun = learning.first_rows(model, pieces, settings, as_they_come=True)
    label_shards.refuse(begun.model)
    return begun


def n_labels(begun: Begun) -> int:
    """Count the labels that are known from the first rows."""
    return len(begun.model.classes_)


def take(begun: Begun, share: int, shares: int) -> Learned:
    """Take a share of the labels."""
    return Learned(label_shards.taken(begun.model, share, shares), (), 0, begun.batches)


def learn(before: Learned, first: int, pieces: list[Any], settings: Settings, forgets: tuple[int, ...]) -> Learned:
    """Learn a round for a share of the labels; ``first`` is which of the source's pieces its first one is."""
    part, monitored, rows = before.part, list[Monitored | None](), 0
    with warnings.catch_warnings():
        # Each share would say again what was said of the first rows.
        warnings.simplefilter("ignore", UserWarning)
        for X, y in learning.unlearned(before.batches, first, pieces, settings, as_tables=False):
            part, found = label_shards.learned(part, X, y, forgets=len(monitored) in forgets)
            monitored.append(found)
            rows += row_count(X)
    return Learned(part, tuple(monitored), rows, before.batches)


def monitored_of(learned: Learned) -> tuple[tuple[Monitored | None, ...], int]:
    """Return what others need of a share: it is small."""
    return learned.monitored, learned.rows


def decide(begun: Begun, before: Decided | None, shares: list[Any], forgets: tuple[int, ...]) -> Decided:
    """Count what all shares have monitored in a round."""
    known = None if before is None else before.watched
    batches = list(zip(*(monitored for monitored, _ in shares), strict=True))
    watched, drift = label_shards.watched(begun.model, known, batches, forgets)
    return Decided(watched, drift, shares[0][1] + (begun.rows if before is None else 0))


def assemble(begun: Begun, shares: list[Learned], decided: Decided) -> Joined:
    """Put the shares together to a model of all labels."""
    model = label_shards.assembled(begun.model, [share.part for share in shares], decided.watched)
    sum_f1, tested = (0.0, 0) if decided.watched is None else monitoring.example_f1(decided.watched.monitor)
    return Joined(model, decided.rows, sum_f1, tested, begun.batches)
