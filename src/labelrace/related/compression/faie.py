"""Feature-aware implicit label space encoding (FaIE): codes that are recoverable and predictable at once.

No encoder is sought but the codes themselves: ``Z``, ``n × k``, the first eigenvectors of ``Ω = TTᵀ + α Hat``. The
first term makes labels recoverable from codes, by the decoder ``D = ZᵀT``; the second, with the hat matrix of the ridge
regression, makes codes predictable from features; ``α`` trades one for the other.

``Ω`` is ``n × n``, but it is ``BBᵀ`` with ``B = [T, √α X L⁻ᵀ]``, ``LLᵀ = G + λI``, and so its eigenvectors follow from
``BᵀB``, whose parts are running sums: with ``BᵀB u = σ² u`` and ``R = U / σ``, ``Z = BR`` is never formed, and ``D``,
``XᵀZ`` and ``Σz`` are products of ``R`` with sums.

Cost: a batch ``n m²`` (sparse rows ``nnz(x)²`` each), ``nnz(x) |y|`` and ``|y|²`` a row; reading ``m³`` and an
eigenproblem of size ``l + m``; a prediction ``(m + l) k``. State: ``m² + m l + l²``. Online, mergeable, growable, all
exact.

References
----------
Lin, Z., Ding, G., Hu, M. and Wang, J.: Multi-label classification via feature-aware implicit label space encoding. ICML
(2014).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from labelrace.base import parameters
from labelrace.base.linalg import top_eigenpairs
from labelrace.related.compression.base import CODINGS, Code, Compression, CompressionClassifier, Settings, View


@dataclass(frozen=True)
class FaIE(Compression):
    """The algorithm."""

    n_components: str | int  # "log2", "log2_squared" or int: number of codes
    alpha: float  # weight of predictability
    coding: str  # "centred", "signs", "binary": labels as numbers
    settings: Settings  # penalty, scaling and forgetting

    needs_exact_yy = True

    def code(self, view: View) -> Code:
        """Find the codes' regression and decoder from ``BᵀB``, without the codes."""
        reading, coding, root = view.reading, view.coding(self.coding), np.sqrt(self.alpha)
        products, total = view.cross(coding)
        label_gram, whiten = view.gram(coding), reading.factor.whiten
        mixed = root * whiten(products)
        spread = whiten(reading.gram)
        inner = self.alpha * whiten(np.ascontiguousarray(spread.T))
        gram = np.block([[label_gram, mixed.T], [mixed, inner]])
        values, vectors = top_eigenpairs(gram, view.k)
        # Codes beyond the rank of B are nothing: they are zero.
        is_positive = values > 1e-12 * max(values[0], 1e-300)
        R = vectors * np.divide(
            1.0, np.sqrt(np.where(is_positive, values, 1.0)), out=np.zeros_like(values), where=is_positive
        )
        decoder = R.T @ np.vstack([label_gram, mixed])
        cross = products @ R[: view.n_labels] + root * (spread.T @ R[view.n_labels :])
        sums = total @ R[: view.n_labels] + root * (whiten(reading.totals[:, None])[:, 0] @ R[view.n_labels :])
        return Code(reading.fit(cross, sums), decoder / coding.scale, coding.centre)


class FaIEClassifier(CompressionClassifier):
    """Feature-aware implicit label space encoding: codes that are recoverable and predictable at once.

    Parameters
    ----------
    n_components : {"log2", "log2_squared"} or int, default="log2"
        Number of codes; `read` gives another one later.
    alpha : float, default=0.1
        Weight of predictability.
    coding : {"centred", "signs", "binary"}, default="centred"
        Labels as numbers: less their means, -1 and 1, or 0 and 1. The authors' program has -1 and 1, with which the
        first code of sparse labels is nearly constant.

    See Also
    --------
    CPLSTClassifier : Linear codes; the simpler way to take features into account.

    Examples
    --------
    >>> from labelrace import FaIEClassifier, measures
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> (X, Y), (X_test, Y_test) = SyntheticStream(n_rows=600, n_features=20, n_labels=12, seed=0).batches(300)
    >>> predicted = FaIEClassifier(n_components=4).partial_fit(X, Y).predict(X_test)
    >>> round(measures.evaluate(Y_test, predicted, measures="micro_f1")["micro_f1"], 2)
    0.73
    """

    published: ClassVar[Mapping[str, Any]] = {"coding": "signs"}

    n_components: str | int = "log2"
    alpha: float = 0.1
    coding: str = "centred"

    def _algorithm(self, seed: int) -> FaIE:
        parameters.check_number("alpha", self.alpha, 0)
        parameters.check_choice("coding", self.coding, CODINGS)
        return FaIE(self.n_components, float(self.alpha), self.coding, self._settings())
