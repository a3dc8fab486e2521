"""Principal label space transformation (PLST): compression by the labels' principal directions.

Labels are centred and projected onto the ``k`` first eigenvectors ``V`` of their covariance, ``H = (Y - ȳ) V``; a ridge
regression learns ``H`` from the features; predictions are decoded by ``Ĥ Vᵀ + ȳ`` and rounded. No other code of ``k``
numbers keeps as much of the labels: what is lost of their squares is the sum of the remaining eigenvalues. The features
play no part in the choice.

Everything is read from running sums (`labelrace.related.compression.base`), so the method is online, although it
is known as an offline one.

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

from labelrace.base import parameters
from labelrace.related.compression.base import Code, Compression, CompressionClassifier, Settings, View


@dataclass(frozen=True)
class PLST(Compression):
    """The algorithm."""

    n_components: str | int  # "log2", "log2_squared" or int: number of directions
    settings: Settings  # penalty, scaling and forgetting
    meka: bool = False  # whether to make MEKA's mistake

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
    meka : bool, default=False
        Make the mistake of MEKA's PLST; see `PLSTClassifier.meka_form`.

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
    >>> learned = PLSTClassifier().partial_fit(X, Y)
    >>> for k in (1, 4, 12):
    ...     result = evaluate(Y_test, learned.read(k).predict(X_test), measures="micro_f1")
    ...     print(f"{k} directions: {result['micro_f1']:.2f}")
    1 directions: 0.62
    4 directions: 0.73
    12 directions: 0.75
    """

    n_components: str | int = "log2"
    meka: bool = False

    @classmethod
    def meka_form(cls, **others: Any) -> Self:
        """Make the PLST of MEKA, which is wrong, and which the RACE paper's Table 4 compares with.

        The directions come from centred labels, but the regression learns the uncentred 0/1 labels along them, while
        decoding adds the mean of labels coded -1 and 1 and cuts at 0. So a label of frequency f is predicted where its
        estimate is at least 1 - 2f instead of one half: a rare one hardly ever, one above one half always. The
        regression is Weka's: standardised columns and a penalty of 1e-8.

        Parameters
        ----------
        **others
            Any other parameter of the class.

        Returns
        -------
        classifier
            Unfitted.
        """
        return cls(**{"penalty": 1e-8, "scaling": "columns", "meka": True, **others})

    def _algorithm(self, seed: int) -> PLST:
        parameters.check_flag("meka", self.meka)
        return PLST(self.n_components, self._settings(), bool(self.meka))
