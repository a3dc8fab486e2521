"""Ridge regression of every label, without compression: the baseline of the compression methods.

Each label, 0 or 1, is regressed on the features and rounded. All labels share ``XᵀX``, so that one decomposition serves
them: the model with the best squared error that any linear code of the labels can come down to. On data with up to some
hundred labels no compression is more accurate (see docs/methods/index.md); what compression buys is solving and
predicting where labels are many.

Cost: a batch ``n m²`` (sparse rows ``nnz(x)²`` each) and ``nnz(x) |y|``; reading ``m³ + m² l``; a prediction ``m l``.
State: ``m² + m l``. Online, mergeable, growable, all exact.

References
----------
Hoerl, A. and Kennard, R.: Ridge regression: biased estimation for nonorthogonal problems. Technometrics 12 (1970).
"""

from __future__ import annotations

from dataclasses import dataclass

from labelrace.related.compression.base import Code, Compression, CompressionClassifier, Settings, View


@dataclass(frozen=True)
class RidgeRelevance(Compression):
    """The algorithm."""

    settings: Settings  # penalty, scaling and forgetting

    keeps_yy = False

    def code(self, view: View) -> Code:
        """Regress the labels themselves."""
        return Code(view.fit(view.coding("centred")), None, view.mean)


class RidgeClassifier(CompressionClassifier):
    """Ridge regression of every label, without compression.

    See Also
    --------
    CPLSTClassifier : A few codes of the labels are regressed instead.

    Examples
    --------
    >>> from labelrace import RidgeClassifier, measures
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> (X, Y), (X_test, Y_test) = SyntheticStream(n_rows=600, n_features=20, n_labels=12, seed=0).batches(300)
    >>> predicted = RidgeClassifier().partial_fit(X, Y).predict(X_test)
    >>> round(measures.evaluate(Y_test, predicted, measures="micro_f1")["micro_f1"], 2)
    0.75
    """

    def _algorithm(self, seed: int) -> RidgeRelevance:
        return RidgeRelevance(self._settings())
