"""What happens while models learn, for ``logging.getLogger("labelrace")``; nothing is printed by default.

The pure core logs nothing: the code that assigns a new model compares it with the one before.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelrace.base.fitted import Fitted

LOGGER = logging.getLogger("labelrace")
LOGGER.addHandler(logging.NullHandler())


def log_learned(name: str, before: Fitted, after: Fitted) -> None:
    """Log alarms, drifts, and the change to another algorithm."""
    if after.algorithm is not before.algorithm:
        LOGGER.info(
            "%s compresses its labels from now on: %d labels and %d features do not fit its memory.",
            name,
            after.schema.n_labels,
            after.schema.n_features,
        )
    alarms, drifts = (
        int(getattr(after.state, count, 0) - getattr(before.state, count, 0)) for count in ("n_alarms", "n_drifts")
    )
    if alarms > 0:
        LOGGER.info("%s: errors grew by more than chance; alarm %d.", name, after.state.n_alarms)
    if drifts > 0:
        LOGGER.warning("%s: a drift was confirmed, and the past is forgotten; drift %d.", name, after.state.n_drifts)


def log_columns(before: Sequence[Any], after: Sequence[Any]) -> None:
    """Log the kinds of a table's columns when they are detected."""
    known = {column.name: column.kind for column in before}
    for column in after:
        if known.get(column.name) != column.kind:
            LOGGER.info("The column %r is taken for: %s.", column.name, column)
