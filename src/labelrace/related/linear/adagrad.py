"""Linear models by stochastic gradient descent with AdaGrad's step sizes, for all labels at once.

A row with the gradient ``g = (link(x·w) - y) x`` changes each weight by a step that shrinks with the squared gradients
it has had:

    G ← G + g²,   w ← w - η g / √G

so that weights of frequent features settle while those of rare ones still move. The link is the logistic function
(logistic regression) or none (least squares on 0 and 1). It is what Vowpal Wabbit does by default, but for its
normalised and importance-aware updates, and what many people would write.

Cost: see `labelrace.related.linear.base`.

References
----------
Duchi, J., Hazan, E. and Singer, Y.: Adaptive subgradient methods for online learning and stochastic optimization.
Journal of Machine Learning Research 12 (2011).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from labelrace.base import parameters
from labelrace.related.linear.base import LinearAlgorithm, LinearClassifier
from labelrace.typing import Array, FloatArray

_LOSSES = ("logistic", "squared")
# Added to the root of the squared gradients, so that errors of rounding make no steps.
_ROUNDING = 1e-8


@dataclass(frozen=True)
class AdaGrad(LinearAlgorithm):
    """The algorithm: a loss, "logistic" or "squared", and the rate η."""

    loss: str
    rate: float

    def step(
        self, x: FloatArray, y: FloatArray, score: FloatArray, weights: Array, extra_precision: Array
    ) -> tuple[Array, Array]:
        """Go down the gradient."""
        error = self.likely(score) - y
        # A label that is not known has no error.
        error = np.where(np.isnan(y), 0.0, error)
        gradient = x[:, None] * error
        squares = gradient * gradient
        return gradient * (-self.rate / (np.sqrt(extra_precision + squares) + _ROUNDING)), squares

    def likely(self, scores: FloatArray) -> FloatArray:
        """Apply the link."""
        return np.asarray(expit(scores)) if self.loss == "logistic" else scores


class AdaGradClassifier(LinearClassifier):
    """Logistic or least-squares linear models with AdaGrad's step sizes, online.

    Parameters
    ----------
    loss : {"logistic", "squared"}, default="logistic"
        What the models minimise.
    rate : float or None, default=None
        Size of the first step of each weight; None for 0.3 with logistic loss and 0.03 with squared loss.

    See Also
    --------
    AROWClassifier : Linear models that keep how sure they are of each weight.

    Examples
    --------
    >>> from labelrace import AdaGradClassifier, measures
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> (X, Y), (X_test, Y_test) = SyntheticStream(n_rows=600, n_features=20, n_labels=12, seed=0).batches(300)
    >>> predicted = AdaGradClassifier().partial_fit(X, Y).predict(X_test)
    >>> round(measures.evaluate(Y_test, predicted, measures="micro_f1")["micro_f1"], 2)
    0.78
    """

    loss: str = "logistic"
    rate: float | None = None

    def _algorithm(self, seed: int) -> AdaGrad:
        parameters.check_choice("loss", self.loss, _LOSSES)
        if self.rate is None:
            return AdaGrad(self.loss, 0.3 if self.loss == "logistic" else 0.03)
        parameters.check_number("rate", self.rate, 0, open_low=True)
        return AdaGrad(self.loss, float(self.rate))
