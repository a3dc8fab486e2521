"""Ensemble of multi-label Hoeffding trees (EaHT): bagging online, and restarts of trees whose errors grow.

Every tree learns each row as often as a Poisson variable of mean 1 says, which is bagging without a fixed number of
rows. Before a batch is learned each tree predicts it; rows whose label set is not exactly right are its errors, and a
detector of drift (`labelrace.decisions.drift`, after ADWIN) observes them. A tree whose errors have grown is replaced
by an empty one. Trees vote: with their label sets if leaves predict these, with their probabilities otherwise.

All trees are one forest in the same arrays. A batch costs what as many trees cost; so does predicting.

References
----------
Read, J., Bifet, A., Holmes, G. and Pfahringer, B.: Scalable and efficient multi-label classification for evolving data
streams. Machine Learning 88 (2012).
Oza, N. and Russell, S.: Online bagging and boosting. AISTATS (2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import scipy.sparse

from labelrace.base import parameters
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense
from labelrace.decisions import drift
from labelrace.decisions.calibration import soft_clip
from labelrace.decisions.drift import DriftState
from labelrace.related.trees import mlht
from labelrace.related.trees.label_statistics import Leaf
from labelrace.related.trees.tree import TreeArrays
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# Batches that a detector keeps, at most.
_MAX_BATCHES = 32


class State(NamedTuple):
    """The forest, and the detectors of its trees."""

    # The forest, as `mlht.State` has it.
    kinds: FeatureKinds
    nodes: Annotated[TreeArrays, "T=@n_trees"]
    leaves: Annotated[Leaf, "stacked L", "c=l+@by_rows"]
    learners: Any
    rows: float  # rows learned
    # Of each tree the detector's means, variances and sizes of recent batches, the newest last.
    errors: Annotated[FloatArray, "T 3 32"]
    batches: Annotated[IntArray, "T", "<33"]  # how many of these there are


@dataclass(frozen=True)
class EaHT(mlht.HoeffdingTree):
    """The algorithm: trees of one forest, each with a detector of drift."""

    seed: int = 0  # what the rows' weights are drawn from

    state_type = State

    def init(self, schema: Schema, rng: np.random.Generator) -> Any:
        """Make the state of trees that have seen nothing."""
        errors, batches = np.zeros((self.n_trees, 3, _MAX_BATCHES)), np.zeros(self.n_trees, dtype=np.intp)
        return State(*super().init(schema, rng), 0.0, errors, batches)

    def update(self, state: Any, X: AnyMatrix, Y: AnyMatrix, derived: mlht.Derived | None = None) -> Any:
        """Restart trees whose errors have grown, then let all trees learn the batch."""
        Y = scipy.sparse.csr_array(Y)
        detectors = [
            DriftState(*errors[:, _MAX_BATCHES - count :])
            for errors, count in zip(state.errors, state.batches, strict=True)
        ]
        restarted = []
        if state.rows > 0:
            detectors = self._observe(detectors, self.derive(state) if derived is None else derived, X, Y)
            restarted = [tree for tree, detector in enumerate(detectors) if drift.is_found(detector)]
            detectors = [drift.init() if tree in restarted else detector for tree, detector in enumerate(detectors)]
        # Drawn from the number of rows, so that a loaded model draws the same.
        rng = np.random.default_rng([self.seed, int(state.rows)])
        repeats = rng.poisson(1.0, (self.n_trees, X.shape[0]))
        rows = [np.repeat(np.arange(X.shape[0]), times) for times in repeats]
        forest = self.learn_rows(state, X, Y, rows, restarted=restarted)
        errors = np.stack(
            [[np.pad(part, (_MAX_BATCHES - len(part), 0)) for part in detector] for detector in detectors]
        )
        batches = np.array([len(detector.sizes) for detector in detectors], dtype=np.intp)
        return State(*forest, state.rows + X.shape[0], errors, batches)

    def _observe(
        self, detectors: list[DriftState], derived: mlht.Derived, X: AnyMatrix, Y: AnyMatrix
    ) -> list[DriftState]:
        """Add each tree's errors on a batch that it has not learned."""
        truth = dense(Y) > 0
        predicted = (self.tree_scores(derived, X, int(root)) > 0 for root in derived.nodes.roots)
        wrong = [(sets != truth).any(axis=1).astype(float) for sets in predicted]
        return [drift.update(detector, errors) for detector, errors in zip(detectors, wrong, strict=True)]

    def _votes(self, derived: mlht.Derived, X: AnyMatrix) -> FloatArray:
        """Average what the trees say, 0 to 1."""
        votes = [self.leaf_learner.votes(self.tree_scores(derived, X, int(root))) for root in derived.nodes.roots]
        average: FloatArray = np.mean(votes, axis=0)
        return average

    def scores(self, derived: mlht.Derived, X: AnyMatrix) -> FloatArray:
        """Stretch the average vote to -1 to 1."""
        return 2.0 * self._votes(derived, X) - 1.0

    def probabilities(self, derived: mlht.Derived, X: AnyMatrix) -> FloatArray:
        """Bring the average vote into (0, 1)."""
        return soft_clip(self._votes(derived, X))


class EaHTClassifier(mlht.TreeClassifier):
    """Ensemble of multi-label Hoeffding trees: online bagging, with a new tree where one's errors grow.

    Parameters
    ----------
    n_trees : int, default=10
        Number of trees.
    random_state : int, Generator, RandomState or None, default=None
        What the rows' weights are drawn from.

    See Also
    --------
    MLHTClassifier : One such tree.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import EaHTClassifier
    >>> X = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> model = EaHTClassifier(n_trees=3, random_state=0).fit(X, X > 0.5)
    >>> model.predict([[0.9, 0.2]])
    array([[ True, False]])
    """

    n_trees: int = 10
    random_state: Any = None

    @classmethod
    def moa(cls, **others: Any) -> Self:
        """Make an ensemble of trees that split as in MOA, with pruned label sets in the leaves.

        ``others`` are further parameters.
        """
        return cls(**{"leaf": "pruned_sets", "entropy": "occurrences", **others})

    def _algorithm(self, seed: int) -> EaHT:
        parameters.check_whole("n_trees", self.n_trees, 1)
        return EaHT(**vars(self._trees(int(self.n_trees))), seed=seed)
