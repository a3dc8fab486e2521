"""Stacked binary relevance as published: an ensemble of stacks, one for each batch, with weighted votes.

Every batch trains a stack of its own, both levels on that batch alone, and the newest K are kept. Stack e votes for or
against label j with a weight: its share of right cells of the label in the newest batch (*static*), or among those rows
of the newest batch that are nearest to the row to be predicted (*dynamic*). A label is present if the weighted votes
add up to at least 0. The newest stack judges itself by rows that it has learned, which is the method. There is no drift
detector: what is old is dropped.

A batch costs what a stack costs to learn; predicting costs K times as much, and for dynamic weights the distances to
the newest batch. The state is K stacks, ``K · (m · l + l²)``, and the newest batch.

References
----------
Qu, W., Zhang, Y., Zhu, J. and Qiu, Q.: Mining multi-label concept-drifting data streams using dynamic classifier
ensemble. ACML (2009). The formula of the weights is reconstructed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse

from labelrace.base import growth, parameters
from labelrace.base.algorithm import Algorithm
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import Moves
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense
from labelrace.decisions.calibration import soft_clip
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.related import stacked_states, stored_rows
from labelrace.related.neighbours import points, search
from labelrace.related.neighbours.points import Scale
from labelrace.related.stacking import mbr
from labelrace.related.stored_rows import StoredRows
from labelrace.typing import AnyMatrix, BoolArray, FloatArray


class State(NamedTuple):
    """The newest stacks, and the newest batch."""

    # All stacks, the oldest first: every array has one more axis, the first.
    stacks: Annotated[mbr.State, "stacked K"]
    scale: Scale  # how features become coordinates, from the first batch
    # Features and labels of the newest batch.
    X: Annotated[StoredRows, "_n=w", "_m=m"]
    Y: Annotated[StoredRows, "_n=w", "_m=l"]


class Derived(NamedTuple):
    """What predicting needs."""

    stacks: list[mbr.Derived]  # the stacks, the oldest first
    weights: FloatArray  # (K, l): static weights, as numbers of rows
    right: FloatArray  # (K, n, l): which cells of the newest batch each stack has right
    # The newest batch, for distances.
    kinds: FeatureKinds
    scale: Scale
    points: AnyMatrix


@dataclass(frozen=True)
class Chunks(Algorithm[State]):
    """The algorithm."""

    stack: mbr.Stack  # what each batch trains
    size: int  # stacks that are kept
    k: int  # rows of the newest batch that give dynamic weights
    dynamic: bool  # whether weights depend on the row to be predicted

    state_type = State
    unmergeable = "each keeps the newest batches, and either's could be newer"

    @property
    def skips_missing(self) -> bool:
        """Whether a NaN in ``X`` is a missing value to be skipped: where no distances are needed."""
        return not self.dynamic

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state of no stack."""
        # An empty stack, which the first batch replaces.
        empty = self._stack_newest([self.stack.init(schema, rng)], 1)
        no_labels = stored_rows.store(scipy.sparse.csr_array((0, schema.n_labels)))
        return State(
            empty,
            points.unit_scale(schema.n_features),
            stored_rows.store(np.zeros((0, schema.n_features))),
            no_labels,
        )

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Any = None) -> State:
        """Train a stack on the batch, and drop the oldest if there are enough."""
        stacks = [stack for stack in stacked_states.unstack(state.stacks) if stack.learners.rows[-1] > 0]
        kinds = state.stacks.learners.kinds.widened(X)
        schema = Schema(kinds, None, state.stacks.predicted.shape[1], None)
        scale = state.scale
        if not stacks and self.dynamic:
            # A binary feature counts as any number does: not at all, if the first batch has one value of it.
            scale = points.range_scale(kinds.n_values <= 2, X)
        stacks.append(self.stack.update(self.stack.init(schema, np.random.default_rng(0)), X, Y))
        labels = stored_rows.store(scipy.sparse.csr_array(Y))
        return State(self._stack_newest(stacks, self.size), scale, stored_rows.store(X), labels)

    def _stack_newest(self, stacks: list[mbr.State], size: int) -> mbr.State:
        """Stack the newest states, with room in each for all nominal values that any has."""
        widest = reduce(FeatureKinds.joined, (stack.learners.kinds for stack in stacks))
        wider = [self.stack.take(stack, Moves(stack.learners.kinds.moves(widest), widest)) for stack in stacks[-size:]]
        stacked: mbr.State = stacked_states.stack(wider)
        return stacked

    def derive(self, state: State) -> Derived:
        """Derive all stacks, and how right each is about the newest batch."""
        kinds, n_labels = state.stacks.learners.kinds, state.stacks.predicted.shape[1]
        X, Y = stored_rows.as_matrix(state.X, len(kinds)), dense(stored_rows.as_matrix(state.Y, n_labels))
        stacks = [self.stack.derive(stack) for stack in stacked_states.unstack(state.stacks)]
        right = np.stack([self.stack.predict(stack, X) == (Y > 0) for stack in stacks]).astype(float)
        P = points.to_points(state.scale, X, kinds, sparse=scipy.sparse.issparse(X))
        return Derived(stacks, right.sum(axis=1), right, kinds, state.scale, P)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Add up the weighted votes, 1 for a label and -1 against it."""
        votes = np.zeros((X.shape[0], derived.weights.shape[1]))
        rows, nearest = derived.points.shape[0], None
        if self.dynamic:
            nearest = self._nearest(derived, X)
            rows = min(rows, self.k)
        # Whole numbers until the end, so that a vote that is even is exactly so.
        for stack, weights, right in zip(derived.stacks, derived.weights, derived.right, strict=True):
            weight = weights if nearest is None else nearest @ right
            votes += weight * np.where(self.stack.predict(stack, X), 1.0, -1.0)
        return votes / rows

    def _nearest(self, derived: Derived, X: AnyMatrix) -> AnyMatrix:
        """Make the matrix that adds up over the nearest rows of the newest batch."""
        P = derived.points
        Q = points.to_points(derived.scale, X, derived.kinds, sparse=scipy.sparse.issparse(P))
        indices = search.nearest(P, Q, self.k)
        return search.selection(indices, P.shape[0])

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Mark the labels that do not lose the vote."""
        return self.scores(derived, X) >= 0

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Map the mean vote, -1 to 1, into (0, 1)."""
        return soft_clip(0.5 + 0.5 * self.scores(derived, X) / len(derived.stacks))

    def why_too_many_labels(self, n_labels: int) -> str | None:
        """Return why there is no room for the labels: the tables would be too large."""
        return self.stack.why_too_many_labels(n_labels)

    def take(self, state: State, moves: Moves) -> State:
        """Move labels and features in every stack; in distances, new features do not count."""
        of_stacks = partial(stacked_states.take, self.stack.take)
        taken: State = growth.take(state, moves, stacks=of_stacks, scale=partial(points.take, new_width=0.0))
        return taken


class MBRChunksClassifier(OnlineClassifier):
    """Stacked binary relevance as published: a stack for each batch, the newest vote with weights.

    Parameters
    ----------
    n_stacks : int, default=10
        Stacks that are kept, the newest.
    weights : {"dynamic", "static"}, default="dynamic"
        A stack's weight for a label is its share of right cells among the rows of the newest batch that are nearest to
        the row to be predicted, or in the whole newest batch.
    n_neighbors : int, default=10
        Rows that give a dynamic weight.
    learner : NaiveBayes or None, default=None
        The learners: `labelrace.learners.naive_bayes.bank.NaiveBayes`, with its defaults if None.

    See Also
    --------
    MBRClassifier : One stack that learns all batches.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import MBRChunksClassifier
    >>> X = np.array([[0.0], [1.0], [0.2], [0.9]] * 10)
    >>> Y = np.hstack([X > 0.5, X > 0.5, X < 0.5])
    >>> MBRChunksClassifier(n_stacks=3).fit(X, Y).predict([[0.95]])
    array([[ True,  True, False]])
    """

    n_stacks: int = 10
    weights: Literal["dynamic", "static"] = "dynamic"
    n_neighbors: int = 10
    learner: NaiveBayes | None = None

    @classmethod
    def paper(cls, **others: Any) -> Self:
        """Make the ensemble with the base learner of the paper's program; ``others`` are further parameters."""
        return cls(**{"learner": NaiveBayes(numeric="binned"), **others})

    def _algorithm(self, seed: int) -> Chunks:
        parameters.check_whole("n_stacks", self.n_stacks, 1)
        parameters.check_choice("weights", self.weights, ("dynamic", "static"))
        parameters.check_whole("n_neighbors", self.n_neighbors, 1)
        stack = mbr.Stack(mbr.checked_learner(self.learner))
        return Chunks(stack, int(self.n_stacks), int(self.n_neighbors), self.weights == "dynamic")
