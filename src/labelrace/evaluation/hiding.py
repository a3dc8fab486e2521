"""Label entries that a model does not get to see."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from labelrace.typing import AnyMatrix, BoolArray

__all__ = ["LabelHider"]


class LabelHider:
    """Hides a random share of the label entries from learning.

    Which entries are hidden depends on the seed and the shapes of the batches alone, so all models miss the same
    ones. A hidden entry is shown as 0, absent, as an annotator leaves it who did not look. A model with an attribute
    ``supports_missing_labels`` that is True gets a dense matrix with NaN there instead.

    Parameters
    ----------
    model : object
        The model that learns.
    share : float
        Probability of an entry to be hidden, 0 to 1.
    seed : int, Generator or None
        Draws the entries.

    Examples
    --------
    >>> hider = LabelHider(object(), share=0.5, seed=0)
    >>> hider.hide(np.ones((2, 5), dtype=int))
    array([[1., 1., 1., 0., 0.],
           [0., 0., 0., 0., 1.]])
    """

    def __init__(self, model: Any, share: float = 0.0, seed: Any = None) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"missing must be a share from 0 to 1, got {share!r}")
        self._share = share
        self._rng = np.random.default_rng(seed)
        self._shown_as = np.nan if getattr(model, "supports_missing_labels", False) else 0.0

    def hide(self, Y: AnyMatrix) -> AnyMatrix:
        """Return the labels of the next batch as the model may see them; `Y` itself is not changed."""
        if self._share == 0:
            return Y
        hidden = self._rng.random(np.shape(Y), dtype=np.float32) < self._share
        if scipy.sparse.issparse(Y):
            if self._shown_as == 0:
                return _without(Y, hidden)
            Y = Y.toarray()
        if hasattr(Y, "columns"):  # a data frame, which keeps its names
            return Y.astype(np.float64).mask(hidden, self._shown_as)
        return np.where(hidden, self._shown_as, Y)


def _without(Y: AnyMatrix, hidden: BoolArray) -> AnyMatrix:
    """Leave hidden entries out of a sparse matrix, which stays sparse."""
    entries = scipy.sparse.coo_array(Y)
    kept = ~hidden[entries.row, entries.col]
    where = (entries.row[kept], entries.col[kept])
    return scipy.sparse.csr_array((entries.data[kept], where), shape=Y.shape)
