"""Conditional principal label space transformation (CPLST): directions of the labels that the features can predict.

PLST keeps the directions in which labels vary most, predictable or not. CPLST keeps those in which their *prediction*
varies most: ``V`` are the ``k`` first eigenvectors of ``Ycᵀ Hat Yc``, ``Hat`` the hat matrix of the ridge regression.
Codes, regression and decoding are then those of PLST. With no penalty it is reduced-rank regression: of all linear
models of rank ``k`` the one with the least squared error.

In running sums ``Ycᵀ Hat Yc`` is ``Cᵀ(G + λI)⁻¹C``, with ``C`` the products of features and centred labels. The
products of labels with labels are not needed at all.

Cost: a batch ``n m²`` (sparse rows ``nnz(x)²`` each) and ``nnz(x) |y|`` a row; reading ``m³ + m² l`` and an
eigenproblem of the smaller of ``l`` and ``m``; a prediction ``(m + l) k``. State: ``m² + m l``. Online, mergeable,
growable, all exact.

References
----------
Chen, Y.-N. and Lin, H.-T.: Feature-aware label space dimension reduction for multi-label classification. NIPS (2012).
"""

from __future__ import annotations

from dataclasses import dataclass

from labelrace.base.linalg import right_singular
from labelrace.related.compression.base import Code, Compression, CompressionClassifier, Settings, View


@dataclass(frozen=True)
class CPLST(Compression):
    """The algorithm."""

    n_components: str | int  # "log2", "log2_squared" or int: number of directions
    settings: Settings  # penalty, scaling and forgetting

    keeps_yy = False

    def code(self, view: View) -> Code:
        """Project onto the principal directions of what the features predict."""
        centred = view.coding("centred")
        products, total = view.cross(centred)
        _, directions = right_singular(view.reading.factor.whiten(products), view.k)
        linear = view.reading.fit(products @ directions, total @ directions)
        return Code(linear, directions.T, view.mean)


class CPLSTClassifier(CompressionClassifier):
    """Conditional principal label space transformation: directions of the labels that the features can predict.

    Of the methods that compress labels for a linear model this is the one to take first.

    Parameters
    ----------
    n_components : {"log2", "log2_squared"} or int, default="log2"
        Number of directions; `read` gives another one later.

    See Also
    --------
    PLSTClassifier : Directions in which labels vary most.
    RidgeClassifier : No compression.

    Examples
    --------
    >>> from labelrace import CPLSTClassifier
    >>> from labelrace.evaluation import averages, prequential
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=3000, n_features=20, n_labels=30, seed=0)
    >>> checkpoints = prequential(CPLSTClassifier(n_components=4), stream)
    >>> round(averages(checkpoints)["micro_f1"], 1)
    0.6
    """

    n_components: str | int = "log2"

    def _algorithm(self, seed: int) -> CPLST:
        return CPLST(self.n_components, self._settings())
