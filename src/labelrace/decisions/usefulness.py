"""How useful it is to ask for the labels of a row: more, the less sure its label set is."""

from __future__ import annotations

import numpy as np

from labelrace.typing import FloatArray


def usefulness(likely: FloatArray) -> FloatArray:
    """Return the expected number of wrong labels, from the (n, k) probabilities of the most likely ones."""
    return np.asarray(np.minimum(likely, 1.0 - likely).sum(axis=1))
