"""ML-kNN: each label by the number of a row's nearest neighbours that have it, and what such numbers meant before.

``C_j(x)`` counts the labels j among the k nearest rows. Two tables say how often rows with the label, and rows without
it, had each count; with the label's share of rows they give its probability by Bayes' rule,

    π_j P(C | 1) / (π_j P(C | 1) + (1 - π_j) P(C | 0)),   P(c | 1) = (s + a_j[c]) / (s (k + 1) + Σ a_j),

and likewise ``b`` for rows without the label. *Window* tables are those of Zhang and Zhou on the newest W rows: every
row of the window with its neighbours in the window, without itself. *Prequential* tables count each row once, with its
neighbours in the window as it was before the row's batch; the first batch, which has none, with its own. They are sums
over all rows.

Distances are computed once for all labels. A batch of n rows costs ``n · W · m`` to predict and ``n · W · m`` to learn.
The tables of a full window are read from lists of each row's neighbours, which are kept while rows come and go
(`learners.neighbour_lists`); those of one that fills up cost ``W² · m`` when they are first asked for after a batch.
The state is W rows and their labels and, for the window's tables, 2 k + 4 neighbours of each row.

References
----------
Zhang, M.-L. and Zhou, Z.-H.: ML-KNN: a lazy learning approach to multi-label learning. Pattern Recognition 40 (2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse

from labelrace.base import parameters
from labelrace.base.algorithm import Algorithm
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.schema import Schema
from labelrace.base.sparse import as_rows, dense
from labelrace.learners import design as columns
from labelrace.related.neighbours import neighbours
from labelrace.related.neighbours.neighbour_lists import Lists, NeighbourLists
from labelrace.related.neighbours.neighbours import Rows, Scale, Single
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

# Labels of a window, or of a batch, that are dense while they are counted: 2²⁰ are 8 MB.
_DENSE_CELLS = 2**20


class State(NamedTuple):
    """The window, and the tables if they are kept."""

    n_values: Annotated[IntArray, "m", "values"]  # number of values of each nominal feature, 0 for a numeric one
    scale: Scale  # how features become coordinates, from the first batch
    # Features and labels of the window's rows, the oldest first.
    X: Annotated[Rows, "_n=w", "_m=m"]
    Y: Annotated[Rows, "_n=w", "_m=l", "_top=1"]
    rows: Annotated[float, ">=0"]  # rows learned, not only those of the window
    # Rows with and without each label, by the number of neighbours that have it; prequential tables only.
    present: Annotated[FloatArray, "l @k+1", ">=0"]
    absent: Annotated[FloatArray, "l @k+1", ">=0"]
    lists: Annotated[Lists, "_n=@listed(w)"]  # neighbours of the rows of a full window; for tables of the window only


class Derived(NamedTuple):
    """The window's points, also in single precision, and labels, and the probability of each label by its count."""

    n_values: IntArray
    scale: Scale
    points: AnyMatrix
    single: Single | None
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

    @property
    def neighbour_lists(self) -> NeighbourLists:
        """What keeps the neighbours of the window's rows."""
        return NeighbourLists(self.k, self.newest_first, self.window)

    @property
    def list_length(self) -> int:
        """Neighbours in each list."""
        return self.neighbour_lists.length

    def listed(self, n_rows: int) -> int:
        """Count the lists that a window of so many rows has."""
        return 0 if self.prequential or n_rows < self.window else n_rows

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state that has seen nothing."""
        empty = np.zeros((schema.n_labels, self.k + 1))
        no_rows = neighbours.stored(np.zeros((0, schema.n_features)))
        no_labels = neighbours.stored(scipy.sparse.csr_array((0, schema.n_labels)))
        scale = neighbours.empty_scale(schema.n_values)
        lists = self.neighbour_lists.empty()
        return State(schema.n_values, scale, no_rows, no_labels, 0.0, empty, empty, lists)

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None) -> State:
        """Take a batch into the window; count its neighbours first, if tables are prequential."""
        Y = as_rows(Y)
        n_values = columns.widest_values(state.n_values, X)
        if state.rows == 0 and self.scaled:
            state = state._replace(scale=neighbours.first_scale(n_values, X))
        present, absent = state.present, state.absent
        if self.prequential:
            if state.rows == 0:
                points = neighbours.points(state.scale, X, n_values, sparse=scipy.sparse.issparse(X))
                counts = self._counted(self._within(points), Y)
            else:
                derived = self._places(state) if derived is None else derived
                counts = self._counts_of(derived, X)
            more = count_tables(counts, Y, self.k)
            present, absent = present + more[0], absent + more[1]
        rows = neighbours.newest(state.X, X, self.window)
        labels = neighbours.newest(state.Y, Y, self.window)
        seen = state.rows + X.shape[0]
        after = State(n_values, state.scale, rows, labels, seen, present, absent, self.neighbour_lists.empty())
        return after._replace(lists=self._lists(state, after, X.shape[0])) if self._is_listed(after) else after

    def _is_listed(self, state: State) -> bool:
        return self.listed(len(state.Y.indptr) - 1) > 0  # type: ignore[arg-type]

    def _lists(self, before: State, after: State, n_rows: int) -> Lists:
        """Bring the neighbours of a full window's rows up to date with a batch of so many rows."""
        keeper, points = self.neighbour_lists, self._points(after)
        # Sparse rows have another origin, so that distances from dense ones would have other rounding errors.
        is_same_form = (before.X.dense is None) == (after.X.dense is None)
        if len(before.lists.reach) and is_same_form and n_rows < self.window:
            return keeper.update(before.lists, points, n_rows, n_rows)
        return keeper.update(keeper.empty(), points, self.window)

    def _points(self, state: State) -> AnyMatrix:
        """Turn the window into points."""
        X = neighbours.as_matrix(state.X, len(state.n_values))
        return neighbours.points(state.scale, X, state.n_values, sparse=scipy.sparse.issparse(X))

    def _places(self, state: State) -> Derived:
        """Turn the window into points and labels."""
        points = self._points(state)
        # Few labels are counted faster where they are dense, and in bytes.
        if points.shape[0] * len(state.present) <= _DENSE_CELLS:
            labels = neighbours.as_marks(state.Y, len(state.present), np.uint8 if self.k < 256 else np.uint32)
        else:
            labels = neighbours.as_matrix(state.Y, len(state.present))
        single = neighbours.in_single(points)
        return Derived(state.n_values, state.scale, points, single, labels, state.present, state.absent, np.empty(0))

    def derive(self, state: State) -> Derived:
        """Turn the window into points and the tables into probabilities."""
        places = self._places(state)
        present, absent = state.present, state.absent
        if not self.prequential:
            counts = self._counts_within(state, places)
            present, absent = count_tables(counts, places.labels, self.k)
        s = self.smoothing
        with_label, without = present.sum(axis=1), absent.sum(axis=1)
        prior = ((s + with_label) / (2.0 * s + (with_label + without)))[:, None]
        one = prior * ((s + present) / (s * (self.k + 1) + with_label[:, None]))
        zero = (1.0 - prior) * ((s + absent) / (s * (self.k + 1) + without[:, None]))
        return places._replace(present=present, absent=absent, confidence=one / (one + zero))

    def _counts_within(self, state: State, places: Derived) -> AnyMatrix:
        """Count each label among the neighbours of the window's rows, without themselves."""
        if self._is_listed(state):
            return self._counted(self.neighbour_lists.nearest(state.lists, places.points), places.labels)
        return self._counted(self._within(places.points, places.single), places.labels)

    def _within(self, P: AnyMatrix, single: Single | None = None) -> IntArray:
        """Find the neighbours of rows among themselves."""
        itself = np.arange(P.shape[0])
        return neighbours.nearest(P, P, self.k, newest_first=self.newest_first, itself=itself, single=single)

    def _counted(self, found: IntArray, labels: AnyMatrix) -> AnyMatrix:
        """Count each label among rows that were found, (n, l), sparse where labels are."""
        if isinstance(labels, np.ndarray):
            counts = np.empty((len(found), labels.shape[1]), labels.dtype)
            for block in neighbours.blocks(len(found), self.k * labels.shape[1]):
                np.add.reduce(labels.take(found[block].T, axis=0), axis=0, out=counts[block])
            return counts
        return scipy.sparse.csr_array(neighbours.selection(found, labels.shape[0]) @ labels)

    def _counts_of(self, derived: Derived, X: AnyMatrix) -> AnyMatrix:
        points = neighbours.points(derived.scale, X, derived.n_values, sparse=scipy.sparse.issparse(derived.points))
        return self._counted(
            neighbours.nearest(derived.points, points, self.k, newest_first=self.newest_first, single=derived.single),
            derived.labels,
        )

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Look up the probabilities of the counts."""
        return self._looked_up(derived.confidence, self._counts_of(derived, X))

    def _looked_up(self, table: Any, counts: AnyMatrix) -> Any:
        """Look up what a table, (l, k + 1), has for the count of each label."""
        if isinstance(counts, np.ndarray):
            return table.ravel()[counts + np.arange(0, table.size, self.k + 1)]
        counts = counts.tocoo()
        result = np.tile(table[:, 0], (counts.shape[0], 1))
        row, label = counts.coords
        result[row, label] = table[label, counts.data.astype(np.intp)]
        return result

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Stretch the probabilities to -1 to 1, so that 0 is even odds."""
        return 2.0 * self.probabilities(derived, X) - 1.0

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Mark the labels that are more likely than not."""
        return self._looked_up(derived.confidence > 0.5, self._counts_of(derived, X))

    def grow_labels(self, state: State, n_labels: int) -> State:
        """Add labels that were absent so far: no row, and no neighbour, has them."""
        present = columns.pad_rows(state.present, n_labels)
        absent = columns.pad_rows(state.absent, n_labels)
        if self.prequential:
            absent[len(state.absent) :, 0] = state.rows
        return state._replace(present=present, absent=absent)

    def grow_features(self, state: State, n_values: IntArray) -> State:
        """Add features that were 0 so far; scaled by their range in the first batch, they do not count."""
        scale = neighbours.grown_scale(state.scale, n_values, 0.0 if self.scaled and state.rows else 1.0)
        return state._replace(n_values=columns.appended(state.n_values, n_values), scale=scale)


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
    if isinstance(counts, np.ndarray):
        size = n_labels * (k + 1)
        # Small numbers are added faster.
        dtype: Any = np.uint16 if 2 * size < 2**16 else np.intp
        place: Any = dense(Y).astype(dtype)
        place *= dtype(size)
        place += counts
        place += np.arange(0, size, k + 1, dtype=dtype)
        absent, present = np.bincount(place.ravel(), minlength=2 * size).astype(float).reshape(2, n_labels, k + 1)
        return present, absent

    def table(counted: AnyMatrix, rows: FloatArray) -> FloatArray:
        counted = counted.tocoo()
        place = counted.coords[1] * (k + 1) + counted.data.astype(np.intp)
        cells = np.bincount(place, minlength=n_labels * (k + 1)).astype(float).reshape(n_labels, k + 1)
        cells[:, 0] = rows - cells[:, 1:].sum(axis=1)
        return cells

    ones = np.asarray(Y.sum(axis=0), dtype=float)
    everything, present = table(counts, np.full(n_labels, float(n))), table(counts.multiply(Y), ones)
    return present, everything - present


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
    >>> import numpy as np
    >>> from labelrace import MLkNNClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 10)
    >>> MLkNNClassifier(n_neighbors=3).fit(X, X).predict([[0.9, 0.2]])
    array([[1., 0.]])
    """

    n_neighbors: int = 10
    window: int = 1000
    tables: Literal["window", "prequential"] = "window"
    smoothing: float = 1.0
    scale: Literal["range", "none"] = "range"
    ties: Literal["newest", "oldest"] = "newest"

    @classmethod
    def paper(cls, **others: Any) -> Self:
        """Make ML-kNN as Zhang and Zhou's program has it: features as they are, and all rows kept."""
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
