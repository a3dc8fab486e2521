"""AROW, adaptive regularization of weight vectors, with diagonal confidence, for all labels at once.

Each label's weights are believed to be normal, with a mean ``w`` and variances ``σ``, at first 1. A row with the margin
``t x·w``, ``t`` = ±1, below 1 changes them as little as explains it:

    v = Σ x² σ,   β = 1 / (v + r),   w ← w + β (1 - t x·w) t σ x,   σ ← σ - β (σ x)²

Rare features, of which little is known, are learned fast, and frequent ones change little. The variances are kept as
what the precision ``1/σ`` is above 1.

Cost: see `labelrace.related.linear.base`.

References
----------
Crammer, K., Kulesza, A. and Dredze, M.: Adaptive regularization of weight vectors. NIPS (2009).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelrace.base import parameters
from labelrace.related.linear.base import LinearAlgorithm, LinearClassifier
from labelrace.typing import Array, FloatArray


@dataclass(frozen=True)
class AROW(LinearAlgorithm):
    """The algorithm; ``r`` is how much a row must be explained less, for weights to change less."""

    r: float

    def step(
        self, x: FloatArray, y: FloatArray, score: FloatArray, weights: Array, extra_precision: Array
    ) -> tuple[Array, Array]:
        """Learn the labels whose margin is below 1; not those that are not known."""
        sign = np.where(y > 0, 1.0, -1.0)
        short = np.where(np.isnan(y), 0.0, np.maximum(1.0 - sign * score, 0.0))
        precision = extra_precision + 1.0
        confidence = x[:, None] / precision
        beta = (short > 0) / (x @ confidence + self.r)
        # σ - β (σ x)² is, in precisions, p / (1 - β x² / p).
        share = beta * (x[:, None] * confidence)
        return confidence * (beta * short * sign), precision * (share / (1.0 - share))

    def likely(self, scores: FloatArray) -> FloatArray:
        """Bring margins of ±1 to 0 and 1."""
        return 0.5 + 0.5 * scores


class AROWClassifier(LinearClassifier):
    """AROW with diagonal confidence: linear models that learn rare features fast, online.

    Parameters
    ----------
    r : float, default=1.0
        How much is put down to noise: the larger, the less a row changes.

    See Also
    --------
    LabelRaceClassifier : The default, which keeps one confidence for all labels and solves blocks of rows exactly.

    Examples
    --------
    >>> from labelrace import AROWClassifier, measures
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> (X, Y), (X_test, Y_test) = SyntheticStream(n_rows=600, n_features=20, n_labels=12, seed=0).batches(300)
    >>> predicted = AROWClassifier().partial_fit(X, Y).predict(X_test)
    >>> round(measures.evaluate(Y_test, predicted, measures="micro_f1")["micro_f1"], 1)
    0.8
    """

    r: float = 1.0

    def _algorithm(self, seed: int) -> AROW:
        parameters.check_number("r", self.r, 0, open_low=True)
        return AROW(float(self.r))
