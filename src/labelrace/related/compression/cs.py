"""Compressed sensing (CS): random codes of sparse label sets, decoded by sparse recovery.

A row has few of many labels, so ``k`` random projections ``y A`` of its labels determine them, if ``k`` is of the order
of ``s log(l / s)`` for ``s`` labels a row. A ridge regression learns the projections from the features; a label set is
the sparse vector whose projections are nearest to those predicted. The encoder knows nothing of the data; what a
learner gets wrong, the decoder has to cope with.

The decoders are orthogonal matching pursuit, CoSaMP and the lasso path; and the pseudo-inverse, linear, for comparison.
Each but the last finds, for every row of predicted projections, a vector with at most ``s`` entries other than zero
whose projections are near them; ``s`` is the mean number of labels of a row, rounded up. All rows go at once.

Cost: a batch ``n m²`` (sparse rows ``nnz(x)²`` each) and ``nnz(x) |y|`` a row; reading ``m³ + m l k``; a prediction
``m k`` and ``s k l`` to decode by matching pursuit. State: ``m² + m l``. Online, mergeable, growable, all exact: a new
label is a new row of ``A``.

References
----------
Hsu, D., Kakade, S., Langford, J. and Zhang, T.: Multi-label prediction via compressed sensing. NIPS (2009).

Pati, Y., Rezaiifar, R. and Krishnaprasad, P.: Orthogonal matching pursuit. Asilomar Conference (1993).

Needell, D. and Tropp, J.: CoSaMP: iterative signal recovery from incomplete and inaccurate samples. Applied and
Computational Harmonic Analysis 26 (2009).

Efron, B., Hastie, T., Johnstone, I. and Tibshirani, R.: Least angle regression. Annals of Statistics 32 (2004).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.linear_model import lars_path

from labelrace.base import parameters, random_draws
from labelrace.base.schema import Schema
from labelrace.learners.regression import Linear
from labelrace.related.compression import base
from labelrace.related.compression.base import Compression, CompressionClassifier, Derived, Settings, State, View
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

_ENCODERS = ("gaussian", "signs", "hadamard")
# A direction of which less than this is left beside those chosen before is a combination of them.
_DEPENDENT = 1e-10
_MAX_ROUNDS = 20


def matching_pursuit(H: FloatArray, A: FloatArray, s: int) -> FloatArray:
    """Add, ``s`` times, the entry that is most like the residual, and fit all that are chosen.

    Costs ``s k l`` a row. The chosen rows of ``A`` are made orthogonal one by one, so that a fit is a subtraction.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> matching_pursuit(np.array([[3.0, 4.0]]), A, 1)
    array([[0., 0., 5.]])
    """
    # As many entries as there are projections leave no residual.
    n, l, s = len(H), len(A), min(s, *A.shape)  # noqa: E741
    rows = np.arange(n)
    residual = H.copy()
    basis, along = np.zeros((n, s, A.shape[1])), np.zeros((n, s))
    triangle, support = np.tile(np.eye(s), (n, 1, 1)), np.zeros((n, s), dtype=np.intp)
    is_free, goes_on = np.ones((n, l), dtype=bool), np.ones(n, dtype=bool)
    for step in range(s):
        chosen = np.where(is_free, np.abs(residual @ A.T), -1.0).argmax(axis=1)
        is_free[rows, chosen] = False
        support[:, step] = chosen
        direction = A[chosen]
        for _ in range(2):
            # Twice is enough for orthogonality to the last digits.
            shares = np.einsum("ntk,nk->nt", basis, direction)
            triangle[:, :, step] += shares * (np.arange(s) < step)
            direction = direction - np.einsum("nt,ntk->nk", shares, basis)
        length = np.linalg.norm(direction, axis=1)
        goes_on &= length > _DEPENDENT
        direction = np.where(goes_on, 1.0 / np.maximum(length, _DEPENDENT), 0.0)[:, None] * direction
        triangle[:, step, step] = np.where(goes_on, length, 1.0)
        basis[:, step] = direction
        along[:, step] = np.einsum("nk,nk->n", direction, residual)
        residual -= along[:, step, None] * direction
    values = np.linalg.solve(triangle, along[:, :, None])[:, :, 0] if n else along
    # Where an entry was dependent the pursuit ended there: what was chosen after it has no part.
    decoded = np.zeros((n, l))
    decoded[rows[:, None], support] = np.where(np.abs(basis).sum(axis=2) > 0, values, 0.0)
    return decoded


def cosamp(H: FloatArray, A: FloatArray, s: int) -> FloatArray:
    """Join the ``2 s`` entries most like the residual with those held, fit them, hold the ``s`` largest; repeat.

    Ends when what is held stays the same, after at most 20 rounds. A round costs a singular value decomposition of
    ``3 s × k`` a row.
    """
    n, l = len(H), len(A)  # noqa: E741
    decoded, active = np.zeros((n, l)), np.arange(n)
    for _ in range(_MAX_ROUNDS):
        if not len(active):
            break
        held, here = decoded[active], H[active]
        alike = _largest(np.abs((here - held @ A) @ A.T), min(2 * s, l))
        support = _largest(np.abs(held), min(s, l))
        # An entry that is zero is not held: the first of those alike replaces it.
        support = np.where(np.take_along_axis(held, support, axis=1) != 0, support, alike[:, :1])
        updated = _prune(_least_squares(here, A, np.concatenate([alike, support], axis=1)), s)
        decoded[active] = updated
        active = active[np.abs(updated - held).max(axis=1) > 1e-12 * np.abs(updated).max(axis=1)]
    return decoded


def _least_squares(H: FloatArray, A: FloatArray, candidates: IntArray) -> FloatArray:
    """Fit the candidates of each row by least squares of least length; entries that come twice count once."""
    order = np.sort(candidates, axis=1)
    is_new = np.ones(order.shape, dtype=bool)
    is_new[:, 1:] = order[:, 1:] != order[:, :-1]
    values = np.einsum("nkt,nk->nt", np.linalg.pinv(A[order] * is_new[:, :, None]), H)
    fitted, (rows, positions) = np.zeros((len(H), len(A))), np.nonzero(is_new)
    fitted[rows, order[rows, positions]] = values[rows, positions]
    return fitted


def _largest(values: FloatArray, count: int) -> IntArray:
    """List the columns of the largest values of each row; of equal ones the first."""
    return np.argsort(-values, axis=1, kind="stable")[:, :count]


def _prune(values: FloatArray, s: int) -> FloatArray:
    """Keep the ``s`` largest entries of each row."""
    largest = _largest(np.abs(values), min(s, values.shape[1]))
    pruned, rows = np.zeros_like(values), np.arange(len(values))[:, None]
    pruned[rows, largest] = values[rows, largest]
    return pruned


def lasso(H: FloatArray, A: FloatArray, s: int) -> FloatArray:
    """Follow each row's lasso path to the last point with at most ``s`` entries other than zero; row by row."""
    decoded = np.zeros((len(H), len(A)))
    for row, h in enumerate(H):
        _, _, path = lars_path(np.ascontiguousarray(A.T), h, method="lasso", max_iter=4 * s + 10)
        few = np.flatnonzero((path != 0).sum(axis=0) <= s)
        decoded[row] = path[:, few[-1]]
    return decoded


_DECODERS: dict[str, Callable[[FloatArray, FloatArray, int], FloatArray]] = {
    "omp": matching_pursuit,
    "cosamp": cosamp,
    "lasso": lasso,
    "pinv": lambda H, A, s: H @ np.linalg.pinv(A),
}


class Code(NamedTuple):
    """The projections' models, the encoder (l, k), and which labels, and how many, to look for."""

    linear: Linear
    encoder: FloatArray
    possible: BoolArray
    sparsity: int


@dataclass(frozen=True)
class CompressedSensing(Compression):
    """The algorithm."""

    n_components: str | int  # "log2", "log2_squared" or int: number of projections
    # "signs", "gaussian", "hadamard", or tuple of rows: how projections are drawn, or the encoder itself.
    encoder: str | tuple[tuple[float, ...], ...]
    decoder: str  # "omp", "cosamp", "lasso", "pinv": how labels are recovered
    skip_unseen: bool  # whether labels that have never occurred are left out of the search
    settings: Settings  # penalty, scaling and forgetting
    seed: int = 0  # what the encoder is drawn from

    keeps_yy = False

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make empty sums; an encoder that is given must fit the labels."""
        base.check_given("encoder", None if isinstance(self.encoder, str) else self.encoder, schema.n_labels)
        return super().init(schema, rng)

    def count(self, n_labels: int) -> int:
        """Compute the number of projections, which an encoder that is given settles."""
        return super().count(n_labels) if isinstance(self.encoder, str) else len(self.encoder[0])

    def code(self, view: View) -> Code:
        """Regress random projections of the labels."""
        encoder = self._drawn(view.n_labels, view.k)
        per_row = view.sums.sum_y.sum() / max(view.sums.rows, 1e-300)
        # A whole number of labels a row must not be rounded up by the last digit of a sum.
        possible = (view.sums.sum_y > 0) | (not self.skip_unseen)
        sparsity = int(np.clip(np.ceil(per_row - 1e-9), 1, max(int(possible.sum()), 1)))
        return Code(view.fit(view.coding("binary"), encoder), encoder, possible, sparsity)

    def _drawn(self, n_labels: int, k: int) -> FloatArray:
        """Draw the encoder: a row of length one for each label."""
        if not isinstance(self.encoder, str):
            return np.array(self.encoder)
        if self.encoder == "gaussian":
            drawn = random_draws.normal(self.seed, n_labels, k)
            return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        drawn = (
            random_draws.signs(self.seed, n_labels, k) if self.encoder == "signs" else _hadamard(self.seed, n_labels, k)
        )
        return drawn / np.sqrt(k)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Predict the projections and recover the labels; -1 is an absent, 1 a present label."""
        code: Code = derived.code
        scores = np.full((X.shape[0], len(code.possible)), -1.0)
        if code.possible.any():
            projections, encoder = self.codes(derived, X), code.encoder[code.possible]
            scores[:, code.possible] += 2.0 * _DECODERS[self.decoder](projections, encoder, code.sparsity)
        return scores

    def why_no_new_labels(self) -> str | None:
        """Return why labels cannot be added: where the encoder is given."""
        return None if isinstance(self.encoder, str) else "encoder= gives rows to the first labels only"


def _hadamard(seed: int, n_labels: int, k: int) -> FloatArray:
    """Take rows of a Hadamard matrix, Sylvester's, in random columns: ``(-1)`` to the common bits of row and column."""
    columns: IntArray = (random_draws.uniform(seed, k, 1)[:, 0] * 2.0**52).astype(np.intp)
    common = np.bitwise_and(np.arange(n_labels, dtype=np.intp)[:, None], columns)
    return 1.0 - 2.0 * (np.bitwise_count(common) % 2).astype(float)


class CompressedSensingClassifier(CompressionClassifier):
    """Compressed sensing: random codes of sparse label sets, decoded by sparse recovery.

    Parameters
    ----------
    n_components : {"log2", "log2_squared"} or int, default="log2_squared"
        Number of random projections; `read` gives another one later.
    decoder : {"omp", "cosamp", "lasso", "pinv"}, default="omp"
        Orthogonal matching pursuit, CoSaMP, the lasso path (row by row, slow), or the pseudo-inverse of the encoder.
    encoder : {"gaussian", "signs", "hadamard"} or (l, k) array-like, default="gaussian"
        Normal numbers, random signs or rows of a Hadamard matrix, in rows of length one; or the encoder itself, with
        which there can be no new labels. With few codes, signs give some labels the same row.
    skip_unseen : bool, default=True
        Do not look for labels that have never occurred: their random codes are as near as those of others.
    random_state : int, Generator, RandomState or None, default=None
        What the encoder is drawn from.

    See Also
    --------
    RACEClassifier : Random codes with a decoder that is learned.

    Examples
    --------
    >>> from labelrace import CompressedSensingClassifier
    >>> from labelrace.measures import evaluate
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=600, n_features=20, n_labels=12, seed=0)
    >>> (X, Y), (X_test, Y_test) = stream.batches(300)
    >>> for decoder in ("omp", "cosamp"):
    ...     model = CompressedSensingClassifier(n_components=8, decoder=decoder, random_state=0).partial_fit(X, Y)
    ...     result = evaluate(Y_test, model.predict(X_test), measures="micro_f1")
    ...     print(f"{decoder}: {result['micro_f1']:.2f}")
    omp: 0.48
    cosamp: 0.50
    """

    published: ClassVar[Mapping[str, Any]] = {"skip_unseen": False}

    n_components: str | int = "log2_squared"
    decoder: str = "omp"
    encoder: Any = "gaussian"
    skip_unseen: bool = True
    random_state: Any = None

    def _algorithm(self, seed: int) -> CompressedSensing:
        parameters.check_choice("decoder", self.decoder, tuple(_DECODERS))
        parameters.check_flag("skip_unseen", self.skip_unseen)
        how = self.decoder, bool(self.skip_unseen), self._settings()
        if isinstance(self.encoder, str):
            parameters.check_choice("encoder", self.encoder, _ENCODERS)
            return CompressedSensing(self.n_components, self.encoder, *how, seed)
        return CompressedSensing(self.n_components, base.given_encoder(self.encoder), *how)
