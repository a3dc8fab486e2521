"""Multiple windows classifier (MWC): each label by its own nearest neighbours, among few rows without it and few with.

A label has two windows: the newest ``N_p`` rows that have it, and the newest ``N_p / r`` rows that do not. So a rare
label is not outvoted, and an old row with it is remembered. Its score is the share of rows with the label among the k
nearest rows of both windows. A label is predicted from a threshold on, 0.5 at first; after each batch it becomes the
one that would have predicted the label in that batch most nearly as often as it was there.

Rows are stored once, as long as any label's window holds them, and which windows hold a row follows from the labels of
the stored rows. Distances are computed once for all labels; then all labels go through the rows from the nearest on,
until each has k. A batch of n rows costs ``n · R · m`` for R stored rows, and ``n · l`` for each step of that walk.

References
----------
Spyromitros-Xioufis, E., Spiliopoulou, M., Tsoumakas, G. and Vlahavas, I.: Dealing with concept drift and class
imbalance in multi-label stream classification. IJCAI (2011). Settings and the choice of thresholds are reconstructed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base import parameters
from labelrace.base.algorithm import Algorithm
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import Moves
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense
from labelrace.decisions.calibration import soft_clip
from labelrace.related import stored_rows
from labelrace.related.neighbours import points, search
from labelrace.related.neighbours.points import Scale
from labelrace.related.stored_rows import StoredRows
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

# The threshold of a label that is predicted nowhere: shares are at most 1.
NOWHERE = 1.0 + 1e-9
_FIRST_THRESHOLD = 0.5
# Steps from one row to the next nearest one between two looks at which labels have all their neighbours.
_STEPS = 8


class State(NamedTuple):
    """The rows of all windows."""

    kinds: FeatureKinds
    scale: Scale  # how features become coordinates, from the first batch
    # Features and labels of the rows that some window holds, the oldest first.
    X: Annotated[StoredRows, "_n=w", "_m=m"]
    Y: Annotated[StoredRows, "_n=w", "_m=l"]
    thresholds: Annotated[FloatArray, "l"]  # from which score on each label is predicted
    batches: float  # batches learned


class Derived(NamedTuple):
    """What predicting needs: the stored rows, (R, d), which have a label and which are in its windows, (R, l)."""

    state: State
    points: AnyMatrix
    labels: BoolArray
    members: BoolArray


@dataclass(frozen=True)
class MWC(Algorithm[State]):
    """The algorithm."""

    k: int  # number of neighbours
    # Sizes of a label's windows, of rows with it and of rows without it.
    n_present: int
    n_absent: int
    adapts: bool  # whether thresholds follow the stream, or stay

    state_type = State
    unmergeable = "each keeps the newest rows, and either's could be newer"

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state that has seen nothing."""
        no_rows = stored_rows.store(np.zeros((0, schema.n_features)))
        no_labels = stored_rows.store(scipy.sparse.csr_array((0, schema.n_labels)))
        thresholds = np.full(schema.n_labels, _FIRST_THRESHOLD)
        return State(schema.kinds, points.unit_scale(schema.n_features), no_rows, no_labels, thresholds, 0.0)

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None) -> State:
        """Choose thresholds by the batch, then take its rows into the windows."""
        kinds = state.kinds.widened(X)
        if state.batches == 0:
            state = state._replace(scale=points.range_scale(kinds.n_values == 0, X))
        thresholds = state.thresholds
        if self.adapts and state.batches > 0:
            shares = self.scores(self.derive(state) if derived is None else derived, X)
            thresholds = chosen_thresholds(shares, np.asarray(Y.sum(axis=0), dtype=float))
        rows, labels = stored_rows.append(state.X, X), stored_rows.append(state.Y, scipy.sparse.csr_array(Y))
        held: BoolArray = np.asarray(self._members(dense(labels) > 0).any(axis=1))
        # A label that comes later was absent from the newest rows, so these are always held.
        held[-self.n_absent :] = True
        indices = np.flatnonzero(held)
        return State(
            kinds,
            state.scale,
            stored_rows.store(rows[indices]),
            stored_rows.store(labels[indices]),
            thresholds,
            state.batches + 1.0,
        )

    def _members(self, labels: BoolArray) -> BoolArray:
        """Mark the rows in each label's windows."""
        return in_window(labels, self.n_present) | in_window(~labels, self.n_absent)

    def derive(self, state: State) -> Derived:
        """Find out what the windows hold."""
        X = stored_rows.as_matrix(state.X, len(state.kinds))
        P = points.to_points(state.scale, X, state.kinds, sparse=scipy.sparse.issparse(X))
        labels = dense(stored_rows.as_matrix(state.Y, len(state.thresholds))) > 0
        return Derived(state, P, labels, self._members(labels))

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute each label's share of the nearest rows in its windows."""
        P, n_labels = derived.points, derived.labels.shape[1]
        Q = points.to_points(derived.state.scale, X, derived.state.kinds, sparse=scipy.sparse.issparse(P))
        errors, result = search.rounding_errors(P, Q), np.empty((X.shape[0], n_labels))
        for block in search.blocks(X.shape[0], max(P.shape[0], n_labels)):
            order = search.order_by_distance(search.squared_distances(P, Q[block]), errors[block])
            result[block] = self._shares(derived, order)
        return result

    def _shares(self, derived: Derived, order: IntArray) -> FloatArray:
        """Go through the rows from the nearest on, until every label has its neighbours."""
        wanted = np.minimum(self.k, derived.members.sum(axis=0))
        n_neighbours = np.zeros((len(order), len(wanted)), dtype=np.int32)
        present = np.zeros_like(n_neighbours)
        active = np.arange(len(order))
        for step in range(order.shape[1]):
            row = order[active, step]
            new = derived.members[row]
            new &= n_neighbours[active] < self.k
            n_neighbours[active] += new
            present[active] += new & derived.labels[row]
            if step % _STEPS == _STEPS - 1:
                active = active[(n_neighbours[active] < wanted).any(axis=1)]
                if not len(active):
                    break
        shares: FloatArray = present / np.maximum(n_neighbours, 1)
        return shares

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Mark the labels whose share reaches their threshold."""
        return self.scores(derived, X) >= derived.state.thresholds

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Bring the shares into (0, 1)."""
        return soft_clip(self.scores(derived, X))

    def take(self, state: State, moves: Moves) -> State:
        """Move labels and features; the newest rows are the windows of new labels.

        New features were 0: scaled by their range in the first batch, they do not count.
        """
        taken, labels = super().take(state, moves), moves.source("l", len(state.thresholds))
        taken = taken._replace(scale=points.take(state.scale, moves, 0.0 if state.batches else 1.0))
        if labels is not None:
            new = NOWHERE if self.adapts and state.batches > 1 else _FIRST_THRESHOLD
            taken = taken._replace(thresholds=np.where(labels < 0, new, taken.thresholds))
        return taken


def in_window(present: BoolArray, size: int) -> BoolArray:
    """Mark in each column the last ``size`` rows that are present."""
    newer = np.cumsum(present[::-1], axis=0)[::-1]
    marked: BoolArray = present & (newer <= size)
    return marked


def chosen_thresholds(shares: FloatArray, present: FloatArray) -> FloatArray:
    """Choose for each label the share from which on it is predicted most nearly as often as it is present.

    Of equally good ones the largest is taken; a label may be predicted nowhere.

    Examples
    --------
    >>> import numpy as np
    >>> chosen_thresholds(np.array([[0.1, 0.5], [0.3, 0.5], [0.2, 0.5]]), np.array([2.0, 1.0]))
    array([0.2, 1. ])
    """
    n, n_labels = shares.shape
    falling = -np.sort(-shares, axis=0)
    # Equal shares are predicted together: only the last of them is a choice.
    is_last = np.vstack([falling[:-1] != falling[1:], np.ones((1, n_labels), dtype=bool)])
    off = np.where(is_last, np.abs(np.arange(1, n + 1)[:, None] - present), np.inf)
    off = np.vstack([present, off])
    candidates = np.vstack([np.full(n_labels, NOWHERE), falling])
    best: FloatArray = candidates[off.argmin(axis=0), np.arange(n_labels)]
    return best


class MWCClassifier(OnlineClassifier):
    """Multiple windows classifier: nearest neighbours among rows that are kept for each label, with it and without it.

    Parameters
    ----------
    n_neighbors : int, default=11
        Number of neighbours.
    window : int, default=200
        Rows with a label that are kept for it, the newest.
    ratio : float, default=0.5
        How many rows with a label are kept for one without it: ``window / ratio`` rows without it are kept.
    thresholds : {"adaptive", "fixed"}, default="adaptive"
        From which share of neighbours on a label is predicted: chosen after each batch, or one half.
    categorical_features : mask, indices, names or None, default=None
        Features that hold codes 0, 1, 2, … of nominal values; two values differ by 1.

    See Also
    --------
    MLkNNClassifier : One window for all labels.

    Examples
    --------
    >>> from labelrace import MWCClassifier
    >>> X = [[0, 1], [1, 0], [1, 1], [0, 0]] * 10
    >>> model = MWCClassifier(n_neighbors=3).partial_fit(X, [{"red"}, {"blue"}, {"blue", "red"}, set()] * 10)
    >>> model.predict_labels([[0.9, 0.2]])
    [{'blue'}]
    """

    n_neighbors: int = 11
    window: int = 200
    ratio: float = 0.5
    thresholds: str = "adaptive"

    def _algorithm(self, seed: int) -> MWC:
        parameters.check_whole("n_neighbors", self.n_neighbors, 1)
        parameters.check_whole("window", self.window, 1)
        parameters.check_number("ratio", self.ratio, 0, open_low=True)
        parameters.check_choice("thresholds", self.thresholds, ("adaptive", "fixed"))
        n_absent = max(1, round(self.window / self.ratio))
        return MWC(int(self.n_neighbors), int(self.window), n_absent, self.thresholds == "adaptive")
