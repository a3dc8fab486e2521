"""What the protocols of an evaluation share: their options, the batches of a source, labels hidden from learning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from labelrace.base import parameters
from labelrace.measures.inputs import are_label_sets
from labelrace.streams.dataset import canonical_rows


def check_options(
    *,
    batch_size: int = 1,
    delay: int = 0,
    missing: float = 0.0,
    test_share: float = 0.5,
    iterations: int = 1,
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


def is_online(model: Any) -> bool:
    """Return whether a model learns batch by batch, rather than all data at once."""
    return bool(getattr(model, "is_online", hasattr(model, "partial_fit")))


def batches_of(data: Any, size: int) -> Iterator[tuple[Any, Any]]:
    """Iterate over the batches of a dataset or stream, or of an iterable that holds them already."""
    return data.batches(size) if hasattr(data, "batches") else iter(data)


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
