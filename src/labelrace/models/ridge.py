"""Ridge regression of every label, without compression: the yardstick of the compression methods.

Each label, 0 or 1, is regressed on the features and rounded. All labels share ``XᵀX``, so that one decomposition serves
them: the model with the best squared error that any linear code of the labels can come down to. On data with up to some
hundred labels no compression is more accurate (see docs/methods.md); what compression buys is solving and predicting
where labels are many.

Cost: a batch ``n m²`` (sparse rows ``nnz(x)²`` each) and ``nnz(x) |y|``; reading ``m³ + m² l``; a prediction ``m l``.
State: ``m² + m l``. Online, mergeable, growable, all exact.

References
----------
Hoerl, A. and Kennard, R.: Ridge regression: biased estimation for nonorthogonal problems. Technometrics 12 (1970).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from labelrace.models.compression import Code, Compression, CompressionClassifier, Settings, View

__all__ = ["RidgeClassifier", "RidgeRelevance"]


@dataclass(frozen=True)
class RidgeRelevance(Compression):
    """The algorithm.

    Parameters
    ----------
    settings : Settings
        Penalty, scaling and forgetting.
    """

    settings: Settings

    keeps_yy = False

    def code(self, view: View) -> Code:
        """Regress the labels themselves."""
        return Code(view.fit(view.coding("centred")), None, view.mean)


class RidgeClassifier(CompressionClassifier):
    """Ridge regression of every label, without compression.

    Parameters
    ----------
    penalty : "auto" or float, default="auto"
        Ridge penalty, as scikit-learn's ``alpha``; "auto" chooses it by generalised cross-validation on the sums.
    scaling : {"auto", "rows", "columns", "none"}, default="auto"
        Features: "rows" damps values and scales rows to length one, for sparse data such as words; "columns"
        standardises; "none" takes them unchanged. "auto" decides between the first two by the first batch.
    penalise_intercept : bool, default=False
        Penalise the intercept too, and do not centre, as the published programs of the compression methods do.
    forgetting : float, default=1.0
        Weight that what was learned keeps with each batch.
    categorical_features : mask, indices, names or None, default=None
        Features that hold codes 0, 1, 2, … of nominal values.
    label_names : sequence of str or None, default=None
        Names of the labels, if ``y`` is not a data frame, whose columns have names.

    Attributes
    ----------
    penalty_ : float
        The penalty in force.
    label_names_ : array of str or None
        Names of the labels.
    classes_ : (l,) array
        Columns of the labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if they have any.

    See Also
    --------
    CPLSTClassifier : A few codes of the labels are regressed instead.

    Examples
    --------
    >>> from labelrace import RidgeClassifier
    >>> from labelrace.measures import evaluate
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=600, n_features=20, n_labels=12, seed=0)
    >>> (X, Y), (X_test, Y_test) = stream.batches(300)
    >>> model = RidgeClassifier().partial_fit(X, Y)
    >>> round(evaluate(Y_test, model.predict(X_test), measures=["micro_f1"])["micro_f1"], 2)
    0.75
    """

    def __init__(
        self,
        *,
        penalty: Any = "auto",
        scaling: str = "auto",
        penalise_intercept: bool = False,
        forgetting: float = 1.0,
        categorical_features: Any = None,
        label_names: Any = None,
    ) -> None:
        self.penalty = penalty
        self.scaling = scaling
        self.penalise_intercept = penalise_intercept
        self.forgetting = forgetting
        self.categorical_features = categorical_features
        self.label_names = label_names

    @classmethod
    def paper(cls, **others: Any) -> Self:
        """Make ridge regression as the published programs of the compression methods have it: unscaled, λ = 0.1."""
        return cls(**{"penalty": 0.1, "scaling": "none", "penalise_intercept": True, **others})

    def _algorithm(self, seed: int) -> RidgeRelevance:
        return RidgeRelevance(self._settings())
