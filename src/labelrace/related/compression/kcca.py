"""Canonical correlations of labels and features (CCA), also of non-linear features of the labels (KCCA).

Codes are the directions of the labels that correlate most with the features, whatever their variance: those that the
features can predict, relative to how much there is to predict. With ``φ(y)`` the labels, or the labels and ``D`` random
features of them, directions ``U`` are the first generalised eigenvectors of
``Cxφᵀ (Cxx + λI)⁻¹ Cxφ u = ρ² (Cφφ + κI) u``. A ridge regression learns the codes ``(φ(y) - φ̄) U``; a least-squares
decoder turns codes into labels, as in RACE.

The random features, ``√(2/D) cos(yΩ + p)``, approximate a Gaussian kernel on label sets. They depend on the row alone,
so their sums are kept like those of labels, and a label that appears later adds a row to ``Ω`` that changes no past
row. Their width is taken from the first batch, unless it is given: ``σ² = 2`` times the mean number of labels of a row.

The published method is not available as a program; this form is reconstructed, with explicit features in place of a
kernel.

Cost: with ``p = l + D``, a batch ``n m²`` (sparse rows ``nnz(x)²`` each), ``nnz(x) (|y| + D)`` and ``(|y| + D)²`` a
row; reading ``m³ + m² p + p³``; a prediction ``(m + l) k``. State: ``m² + m p + p²``. Online, mergeable, growable, all
exact.

References
----------
Li, X. and Guo, Y.: Multi-label classification with feature-aware non-linear label space transformation. IJCAI (2015).

Rahimi, A. and Recht, B.: Random features for large-scale kernel machines. NIPS (2007).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from labelrace.base import parameters, random_draws
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import SAME, Moves
from labelrace.base.linalg import right_singular
from labelrace.base.schema import Schema
from labelrace.base.sparse import weighted
from labelrace.learners import sums
from labelrace.learners.regression import penalised
from labelrace.related.compression import base
from labelrace.related.compression.base import Code, Compression, CompressionClassifier, Settings, View
from labelrace.typing import AnyMatrix, FloatArray

# Penalty of the decoder: codes have about unit length.
_DECODER_PENALTY = 1e-6

Matrix = tuple[tuple[float, ...], ...]


class State(NamedTuple):
    """The sums of `base.State`, with the squared width ``σ²`` of the random features; 0 if unknown."""

    kinds: FeatureKinds
    by_rows: Annotated[float, SAME]
    first_labels: Annotated[float, "<l+1", SAME]
    sums: Annotated[sums.State, "f=M", "y=@n_extra+l"]
    width: Annotated[float, SAME]


@dataclass(frozen=True)
class KCCA(Compression):
    """The algorithm."""

    n_components: str | int  # "log2", "log2_squared" or int: number of codes
    n_random_features: int  # random features of the labels, ``D``
    width: float | None  # squared width ``σ²``; None takes it from the first batch
    label_penalty: float  # ``κ``
    settings: Settings  # penalty, scaling and forgetting
    seed: int = 0  # what the random features are drawn from
    given: tuple[Matrix, tuple[float, ...]] | None = None  # ``Ω`` (l rows of D) and ``p``, where they are given

    state_type = State
    needs_exact_yy = True

    @property
    def n_extra(self) -> int:
        """Number of random features."""
        return self.n_random_features

    def init(self, schema: Schema, rng: np.random.Generator) -> Any:
        """Make empty sums; random features that are given must fit the labels."""
        base.check_given("frequencies", self.given and self.given[0], schema.n_labels)
        return State(*super().init(schema, rng), self.width or 0.0)

    def update(
        self, state: Any, X: AnyMatrix, Y: AnyMatrix, derived: Any = None, row_weights: FloatArray | None = None
    ) -> Any:
        """Add a batch to the sums; the first one settles the width of the random features."""
        if not state.width:
            rows = Y.shape[0] if row_weights is None else row_weights.sum()
            state = state._replace(width=2.0 * max(float(weighted(Y, row_weights).sum()) / rows, 1.0))
        return super().update(state, X, Y, derived, row_weights)

    def targets(self, state: Any, Y: AnyMatrix) -> AnyMatrix:
        """Put the random features of the labels before them."""
        if not self.n_random_features:
            return Y
        frequencies, phases = self._drawn(Y.shape[1], state.width)
        random = np.sqrt(2.0 / self.n_random_features) * np.cos(Y @ frequencies + phases)
        if scipy.sparse.issparse(Y):
            return scipy.sparse.hstack([scipy.sparse.csr_array(random), Y], format="csr")
        return np.hstack([random, Y])

    def _drawn(self, n_labels: int, width: float) -> tuple[FloatArray, FloatArray]:
        """Draw frequencies and phases."""
        if self.given is not None:
            return np.array(self.given[0]), np.array(self.given[1])
        frequencies = random_draws.normal(self.seed, n_labels, self.n_random_features) / np.sqrt(width)
        return frequencies, 2.0 * np.pi * random_draws.uniform(self.seed + 1, 1, self.n_random_features)[0]

    def code(self, view: View) -> Code:
        """Find the canonical directions, regress their codes and find the decoder."""
        centred, reading = view.coding("centred"), view.reading
        products, total = view.cross(centred)
        if view.regression.penalises_intercept:
            # The reference regresses unchanged columns, but correlates centred ones.
            reading = replace(view.regression, penalises_intercept=False).read(view.sums, self.n_extra)
        gram = view.gram(centred)
        factor, _ = penalised(gram, self.label_penalty)
        white = factor.whiten(np.ascontiguousarray(reading.factor.whiten(products).T)).T
        if view.k < white.shape[1]:
            directions = factor.unwhiten(right_singular(white, min(view.k, len(white)))[1])
        else:
            # All directions, also those that correlate with nothing: any basis gives the same scores.
            directions = factor.unwhiten(np.eye(white.shape[1]))
        spread = gram @ directions
        inner = directions.T @ spread
        inner[np.diag_indices_from(inner)] += _DECODER_PENALTY
        decoder = scipy.linalg.solve(inner, spread[self.n_extra :].T, assume_a="pos")
        linear = view.reading.fit(products @ directions, total @ directions)
        return Code(linear, decoder, view.mean[self.n_extra :])

    def why_unmergeable(self, one: base.State, other: base.State) -> str | None:
        """Return why two states cannot be merged exactly; also where their random features differ in width."""
        if self.n_random_features and one.width != other.width:  # type: ignore[attr-defined]
            return "the width of their random features comes from each one's first batch; give width="
        return super().why_unmergeable(one, other)

    def take(self, state: Any, moves: Moves) -> Any:
        """Move labels and features; with random features, labels must stay where they are."""
        if self.n_random_features:
            base.refuse_other_order(moves, "features")
        return super().take(state, moves)

    def why_no_new_labels(self) -> str | None:
        """Return why labels cannot be added: where the random features are given."""
        return None if self.given is None else "frequencies= gives rows to the first labels only"


class KCCAClassifier(CompressionClassifier):
    """Canonical correlations of the features with the labels and random features of the labels.

    Parameters
    ----------
    n_components : {"log2", "log2_squared"} or int, default="log2"
        Number of codes; `read` gives another one later.
    n_random_features : int, default=64
        Random features of the labels; with 0 this is linear canonical correlation analysis.
    width : "auto" or float, default="auto"
        Squared width of the random features; "auto" is twice the mean number of labels of a row of the first batch.
    label_penalty : float, default=1.0
        What is added to the labels' covariance, so that rare labels do not count for more than they can tell.
    frequencies, phases : (l, D) and (D,) array-like or None, default=None
        The random features, if they are to be given; there can be no new labels then.
    random_state : int, Generator, RandomState or None, default=None
        What the random features are drawn from.

    See Also
    --------
    CPLSTClassifier : Directions by predicted variance instead of correlation.

    Examples
    --------
    >>> from labelrace import KCCAClassifier, measures
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> (X, Y), (X_test, Y_test) = SyntheticStream(n_rows=600, n_features=20, n_labels=12, seed=0).batches(300)
    >>> predicted = KCCAClassifier(n_components=4, random_state=0).partial_fit(X, Y).predict(X_test)
    >>> round(measures.evaluate(Y_test, predicted, measures="micro_f1")["micro_f1"], 2)
    0.72
    """

    n_components: str | int = "log2"
    n_random_features: int = 64
    width: Any = "auto"
    label_penalty: float = 1.0
    frequencies: Any = None
    phases: Any = None
    random_state: Any = None

    def _algorithm(self, seed: int) -> KCCA:
        parameters.check_whole("n_random_features", self.n_random_features, 0)
        if self.width != "auto":
            parameters.check_number("width", self.width, 0, open_low=True)
        parameters.check_number("label_penalty", self.label_penalty, 0)
        width = None if self.width == "auto" else float(self.width)
        count, given = int(self.n_random_features), None
        if self.frequencies is not None or self.phases is not None:
            given = _check_features(self.frequencies, self.phases, count)
        # Where nothing is drawn the seed does not matter, and models with different ones can be merged.
        seed = seed if count and given is None else 0
        return KCCA(self.n_components, count, width, float(self.label_penalty), self._settings(), seed, given)


def _check_features(frequencies: Any, phases: Any, count: int) -> tuple[Matrix, tuple[float, ...]]:
    """Check random features that are given."""
    rows, shifts = parameters.numbers("frequencies", frequencies, 2), parameters.numbers("phases", phases, 1)
    if rows.shape[1] != count or shifts.shape != (count,):
        raise ValueError(
            f"frequencies and phases must be of shapes (labels, {count}) and ({count},) for n_random_features={count}, "
            f"got {rows.shape} and {shifts.shape}."
        )
    return tuple(tuple(row) for row in rows.tolist()), tuple(shifts.tolist())
