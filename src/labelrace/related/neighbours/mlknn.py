"""ML-kNN: each label by the number of a row's nearest neighbours that have it, and what such numbers meant before.

``C_j(x)`` counts the labels j among the k nearest rows. Two tables say how often rows with the label, and rows without
it, had each count; with the label's share of rows they give its probability by Bayes' rule,

    π_j P(C | 1) / (π_j P(C | 1) + (1 - π_j) P(C | 0)),   P(c | 1) = (s + a_j[c]) / (s (k + 1) + Σ a_j),

and likewise ``b`` for rows without the label. *Window* tables are those of Zhang and Zhou on the newest W rows: every
row of the window with its neighbours in the window, without itself. *Prequential* tables count each row once, with its
neighbours in the window as it was before the row's batch; the first batch, which has none, with its own. They are sums
over all rows.

Distances are computed once for all labels. A batch of n rows costs ``n W m`` to predict; prequential tables cost as
much to learn, and tables of the window ``W² m`` when a model first predicts after a batch. State: W rows and their
labels, and ``2 (k + 1) l`` for prequential tables.

References
----------
Zhang, M.-L. and Zhou, Z.-H.: ML-KNN: a lazy learning approach to multi-label learning. Pattern Recognition 40 (2007).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse

from labelrace.base import parameters
from labelrace.base.algorithm import Algorithm
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import Moves
from labelrace.base.schema import Schema
from labelrace.related import stored_rows
from labelrace.related.neighbours import points, search
from labelrace.related.neighbours.points import Scale
from labelrace.related.stored_rows import StoredRows
from labelrace.typing import AnyMatrix, BoolArray, FloatArray


class State(NamedTuple):
    """The window, and the tables if they are kept."""

    kinds: FeatureKinds
    scale: Scale  # how features become coordinates, from the first batch
    # Features and labels of the window's rows, the oldest first.
    X: Annotated[StoredRows, "_n=w", "_m=m"]
    Y: Annotated[StoredRows, "_n=w", "_m=l"]
    rows: float  # rows learned, not only those of the window
    # Rows with and without each label, by the number of neighbours that have it; prequential tables only.
    present: Annotated[FloatArray, "l @k+1"]
    absent: Annotated[FloatArray, "l @k+1"]

    def why_malformed(self, size: Callable[[str], int]) -> str | None:
        """Return why a file's arrays cannot be used: labels are counted, in tables as large as the largest of them."""
        values = self.Y.data if self.Y.dense is None else self.Y.dense
        return None if values is None or ((values >= 0) & (values <= 1)).all() else "labels other than 0 and 1"


class Derived(NamedTuple):
    """The window's points and labels, its tables, and the probability of each label by its count."""

    kinds: FeatureKinds
    scale: Scale
    points: AnyMatrix
    labels: AnyMatrix
    present: FloatArray
    absent: FloatArray
    confidence: FloatArray


@dataclass(frozen=True)
class MLkNN(Algorithm[State]):
    """The algorithm."""

    k: int  # number of neighbours
    window: int  # rows that are kept, the newest
    smoothing: float  # rows that each cell of the tables starts with
    prequential: bool  # whether tables are sums over the stream, or those of the window
    scaled: bool  # whether numeric features are divided by their range in the first batch
    newest_first: bool  # whether of rows at the same distance the newest is nearer

    state_type = State
    unmergeable = "each keeps the newest rows, and either's could be newer"

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state that has seen nothing."""
        empty = np.zeros((schema.n_labels, self.k + 1))
        no_rows = stored_rows.store(np.zeros((0, schema.n_features)))
        no_labels = stored_rows.store(scipy.sparse.csr_array((0, schema.n_labels)))
        return State(schema.kinds, points.unit_scale(schema.n_features), no_rows, no_labels, 0.0, empty, empty)

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None) -> State:
        """Take a batch into the window; count its neighbours first, if tables are prequential."""
        Y = scipy.sparse.csr_array(Y)
        kinds = state.kinds.widened(X)
        if state.rows == 0 and self.scaled:
            state = state._replace(scale=points.range_scale(kinds.n_values == 0, X))
        present, absent = state.present, state.absent
        if self.prequential:
            if state.rows == 0:
                batch = points.to_points(state.scale, X, kinds, sparse=scipy.sparse.issparse(X))
                counts = self._counts_within(batch, Y)
            else:
                counts = self._counts_of(self._window(state) if derived is None else derived, X)
            more = count_tables(counts, Y, self.k)
            present, absent = present + more[0], absent + more[1]
        rows = stored_rows.store(stored_rows.append(state.X, X)[-self.window :])
        labels = stored_rows.store(stored_rows.append(state.Y, Y)[-self.window :])
        return State(kinds, state.scale, rows, labels, state.rows + X.shape[0], present, absent)

    def _window(self, state: State) -> Derived:
        """Turn the window into points and labels."""
        X = stored_rows.as_matrix(state.X, len(state.kinds))
        window = points.to_points(state.scale, X, state.kinds, sparse=scipy.sparse.issparse(X))
        labels = stored_rows.as_matrix(state.Y, len(state.present))
        return Derived(state.kinds, state.scale, window, labels, state.present, state.absent, np.empty(0))

    def derive(self, state: State) -> Derived:
        """Turn the window into points and the tables into probabilities."""
        window = self._window(state)
        present, absent = state.present, state.absent
        if not self.prequential:
            present, absent = count_tables(self._counts_within(window.points, window.labels), window.labels, self.k)
        s = self.smoothing
        with_label, without = present.sum(axis=1), absent.sum(axis=1)
        prior = ((s + with_label) / (2.0 * s + (with_label + without)))[:, None]
        one = prior * ((s + present) / (s * (self.k + 1) + with_label[:, None]))
        zero = (1.0 - prior) * ((s + absent) / (s * (self.k + 1) + without[:, None]))
        return window._replace(present=present, absent=absent, confidence=one / (one + zero))

    def _counts_within(self, P: AnyMatrix, labels: AnyMatrix) -> AnyMatrix:
        """Count each label among the neighbours of rows among themselves, (n, l), sparse."""
        indices = search.nearest(P, P, self.k, newest_first=self.newest_first, exclude=np.arange(P.shape[0]))
        return search.selection(indices, P.shape[0]) @ labels

    def _counts_of(self, derived: Derived, X: AnyMatrix) -> AnyMatrix:
        """Count each label among the neighbours of rows in the window, (n, l), sparse."""
        P = derived.points
        Q = points.to_points(derived.scale, X, derived.kinds, sparse=scipy.sparse.issparse(P))
        indices = search.nearest(P, Q, self.k, newest_first=self.newest_first)
        return search.selection(indices, P.shape[0]) @ derived.labels

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Look up the probabilities of the counts."""
        return _look_up(derived.confidence, self._counts_of(derived, X))

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Stretch the probabilities to -1 to 1, so that 0 is even odds."""
        return 2.0 * self.probabilities(derived, X) - 1.0

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Mark the labels that are more likely than not."""
        return _look_up(derived.confidence > 0.5, self._counts_of(derived, X))

    def take(self, state: State, moves: Moves) -> State:
        """Move labels and features. No row, and no neighbour, has new labels.

        New features were 0: scaled by their range in the first batch, they do not count.
        """
        taken, labels = super().take(state, moves), moves.source("l", len(state.absent))
        taken = taken._replace(scale=points.take(state.scale, moves, 0.0 if self.scaled and state.rows else 1.0))
        if self.prequential and labels is not None:
            absent = np.where(labels < 0, state.rows, taken.absent[:, 0])
            taken = taken._replace(absent=np.column_stack([absent, taken.absent[:, 1:]]))
        return taken


def count_tables(counts: AnyMatrix, Y: AnyMatrix, k: int) -> tuple[FloatArray, FloatArray]:
    """Count rows with and without each label by the number of neighbours that have it, two (l, k + 1) arrays.

    Examples
    --------
    >>> import scipy.sparse
    >>> counts, Y = scipy.sparse.csr_array([[2.0], [0.0]]), scipy.sparse.csr_array([[1.0], [0.0]])
    >>> present, absent = count_tables(counts, Y, 2)
    >>> present.tolist(), absent.tolist()
    ([[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]])
    """
    n, n_labels = Y.shape

    def table(counts: AnyMatrix, rows: FloatArray) -> FloatArray:
        """Count the entries of each label by their value; the rest of its rows have none."""
        counts = counts.tocoo()
        cells = counts.coords[1] * (k + 1) + counts.data.astype(np.intp)
        result = np.bincount(cells, minlength=n_labels * (k + 1)).astype(float).reshape(n_labels, k + 1)
        result[:, 0] = rows - result[:, 1:].sum(axis=1)
        return result

    of_all = table(counts, np.full(n_labels, float(n)))
    present = table(counts.multiply(Y), np.asarray(Y.sum(axis=0), dtype=float))
    return present, of_all - present


def _look_up(table: Any, counts: AnyMatrix) -> Any:
    """Look up what a table, (l, k + 1), has for the count of each label."""
    counts = counts.tocoo()
    result = np.tile(table[:, 0], (counts.shape[0], 1))
    row, label = counts.coords
    result[row, label] = table[label, counts.data.astype(np.intp)]
    return result


class MLkNNClassifier(OnlineClassifier):
    """ML-kNN on a window: labels by how many of a row's nearest neighbours have them.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours.
    window : int, default=1000
        Rows that are kept, the newest.
    tables : {"window", "prequential"}, default="window"
        What counts of neighbours mean is learned from the rows of the window, or from all rows, each counted when its
        batch was learned, which is cheaper.
    smoothing : float, default=1.0
        Rows that each cell of the tables starts with.
    scale : {"range", "none"}, default="range"
        Divide numeric features by their range in the first batch, or take them as they are.
    ties : {"newest", "oldest"}, default="newest"
        Which of rows at the same distance is taken for the nearer one.
    categorical_features : mask, indices, names or None, default=None
        Features that hold codes 0, 1, 2, … of nominal values; two values differ by 1.

    See Also
    --------
    MWCClassifier : Neighbours in windows of each label's own.

    Examples
    --------
    >>> from labelrace import MLkNNClassifier
    >>> X = [[0, 1], [1, 0], [1, 1], [0, 0]] * 10
    >>> MLkNNClassifier(n_neighbors=3).fit(X, X).predict([[0.9, 0.2]])
    array([[1, 0]])
    """

    n_neighbors: int = 10
    window: int = 1000
    tables: Literal["window", "prequential"] = "window"
    smoothing: float = 1.0
    scale: Literal["range", "none"] = "range"
    ties: Literal["newest", "oldest"] = "newest"

    @classmethod
    def paper(cls, **others: Any) -> Self:
        """Make ML-kNN as Zhang and Zhou's program has it: features as they are, and all rows kept.

        ``others`` are further parameters.
        """
        return cls(**{"scale": "none", "window": 2**40, "ties": "oldest", **others})

    def _algorithm(self, seed: int) -> MLkNN:
        parameters.check_whole("n_neighbors", self.n_neighbors, 1)
        parameters.check_whole("window", self.window, 1)
        parameters.check_choice("tables", self.tables, ("window", "prequential"))
        parameters.check_number("smoothing", self.smoothing, 0, open_low=True)
        parameters.check_choice("scale", self.scale, ("range", "none"))
        parameters.check_choice("ties", self.ties, ("newest", "oldest"))
        return MLkNN(
            int(self.n_neighbors),
            int(self.window),
            float(self.smoothing),
            self.tables == "prequential",
            self.scale == "range",
            self.ties == "newest",
        )
