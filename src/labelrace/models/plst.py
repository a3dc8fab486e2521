"""Principal label space transformation (PLST): compression by the labels' principal directions.

Labels are centred and projected onto the ``k`` first eigenvectors ``V`` of their covariance, ``H = (Y - ȳ) V``; a ridge
regression learns ``H`` from the features; predictions are decoded by ``Ĥ Vᵀ + ȳ`` and rounded. No other code of ``k``
numbers keeps as much of the labels: what is lost of their squares is the sum of the remaining eigenvalues. The features
play no part in the choice.

Everything is read from running sums (`labelrace.models.compression`), so the method is online, although it is known as
an offline one.

Cost: a batch ``n m²`` (sparse rows ``nnz(x)²`` each), ``nnz(x) |y|`` and ``|y|²`` a row; reading ``m³ + l³``, or
``l² k`` by Lanczos iterations where labels are many; a prediction ``(m + l) k``. State: ``m² + m l + l²``, of which
``l²`` becomes ``256 l`` above 10,000 labels. Mergeable and growable, both exact.

References
----------
Tai, F. and Lin, H.-T.: Multilabel classification with principal label space transformation. Neural Computation 24
(2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from labelrace import parameters
from labelrace.models.compression import Code, Compression, CompressionClassifier, Settings, View

__all__ = ["PLST", "PLSTClassifier"]


@dataclass(frozen=True)
class PLST(Compression):
    """The algorithm.

    Parameters
    ----------
    n_components : {"log2", "log2_squared"} or int
        Number of directions.
    settings : Settings
        Penalty, scaling and forgetting.
    meka : bool
        Whether to make MEKA's mistake.
    """

    n_components: str | int
    settings: Settings
    meka: bool = False

    def code(self, view: View) -> Code:
        """Project onto the principal directions of the labels."""
        centred = view.coding("centred")
        _, directions = view.principal(centred, view.k)
        if self.meka:
            # What is decoded are 0/1 labels, but what is added and the threshold are those of -1 and 1.
            linear = view.fit(view.coding("binary"), directions)
            return Code(linear, directions.T / 2.0, view.mean)
        return Code(view.fit(centred, directions), directions.T, view.mean)


class PLSTClassifier(CompressionClassifier):
    """Principal label space transformation: compression by the labels' principal directions.

    Parameters
    ----------
    n_components : {"log2", "log2_squared"} or int, default="log2"
        Number of directions; `read` gives another one later.
    penalty : "auto" or float, default="auto"
        Ridge penalty, as scikit-learn's ``alpha``; "auto" chooses it by generalised cross-validation on the sums.
    scaling : {"auto", "rows", "columns", "none"}, default="auto"
        Features: "rows" damps values and scales rows to length one, for sparse data such as words; "columns"
        standardises; "none" takes them unchanged. "auto" decides between the first two by the first batch.
    penalise_intercept : bool, default=False
        Penalise the intercept too, and do not centre, as the authors' program does.
    forgetting : float, default=1.0
        Weight that what was learned keeps with each batch.
    meka : bool, default=False
        Make the mistake of MEKA's PLST; see `PLSTClassifier.meka_form`.
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
    CPLSTClassifier : Directions that the features can predict.
    RACEClassifier : Random directions.

    Examples
    --------
    >>> from labelrace import PLSTClassifier
    >>> from labelrace.measures import evaluate
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=600, n_features=20, n_labels=12, seed=0)
    >>> (X, Y), (X_test, Y_test) = stream.batches(300)
    >>> model = PLSTClassifier(n_components=4).partial_fit(X, Y)
    >>> round(evaluate(Y_test, model.predict(X_test), measures=["micro_f1"])["micro_f1"], 2)
    0.73
    """

    def __init__(
        self,
        *,
        n_components: str | int = "log2",
        penalty: Any = "auto",
        scaling: str = "auto",
        penalise_intercept: bool = False,
        forgetting: float = 1.0,
        meka: bool = False,
        categorical_features: Any = None,
        label_names: Any = None,
    ) -> None:
        self.n_components = n_components
        self.penalty = penalty
        self.scaling = scaling
        self.penalise_intercept = penalise_intercept
        self.forgetting = forgetting
        self.meka = meka
        self.categorical_features = categorical_features
        self.label_names = label_names

    @classmethod
    def paper(cls, **others: Any) -> Self:
        """Make PLST as in its authors' program: features unscaled, λ = 0.1 on the intercept too."""
        return cls(**{"penalty": 0.1, "scaling": "none", "penalise_intercept": True, **others})

    @classmethod
    def meka_form(cls, **others: Any) -> Self:
        """Make the PLST of MEKA, which is wrong, and which the RACE paper's Table 4 compares with.

        The directions come from centred labels, but the regression learns the uncentred 0/1 labels along them, while
        decoding adds the mean of labels coded -1 and 1 and cuts at 0. So a label of frequency f is predicted where its
        estimate is at least 1 - 2f instead of one half: a rare one hardly ever, one above one half always. The
        regression is Weka's: standardised columns and a penalty of 1e-8.
        """
        return cls(**{"penalty": 1e-8, "scaling": "columns", "meka": True, **others})

    def _algorithm(self, seed: int) -> PLST:
        parameters.check_flag("meka", self.meka)
        return PLST(self.n_components, self._settings(), bool(self.meka))
