"""Everything a model knows, as one value: an algorithm, the schema of its columns, and its state.

Whatever changes a model makes a new `Fitted`; the model then has one reference to assign. So a call that fails leaves
it as it was, and what another thread reads is always whole.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from labelrace.core.algorithm import Algorithm
from labelrace.core.schema import Batch, Schema
from labelrace.exceptions import MergeError
from labelrace.typing import Array

__all__ = ["Fitted"]


class Fitted:
    """Everything a model knows; immutable but for what is derived from the state once.

    Attributes
    ----------
    algorithm : Algorithm
        The settings, and the pure functions over a state.
    schema : Schema
        Names and kinds of the features, names of the labels.
    state : NamedTuple
        What was learned.
    seed : int
        What new labels are drawn from.
    parameters : dict
        The parameters of the estimator when learning began.
    """

    algorithm: Any

    def __init__(
        self, algorithm: Algorithm[Any], schema: Schema, state: Any, seed: int, parameters: dict[str, Any]
    ) -> None:
        self.algorithm = algorithm
        self.schema = schema
        self.state = state
        self.seed = seed
        self.parameters = parameters

    @cached_property
    def derived(self) -> Any:
        """What predicting needs."""
        return self.algorithm.derive(self.state)

    def replaced(self, schema: Schema, state: Any) -> Fitted:
        """Return the same algorithm with another schema and state."""
        return Fitted(self.algorithm, schema, state, self.seed, self.parameters)

    def grown(self, schema: Schema) -> Fitted:
        """Return the model that knew the features and labels of a wider schema."""
        old = self.schema
        if schema.n_features == old.n_features and schema.n_labels == old.n_labels:
            return self
        # What is drawn depends on the seed and on how many labels are known, so a loaded model draws the same.
        rng = np.random.default_rng([self.seed, old.n_labels])
        return self.replaced(schema, self.algorithm.grow(self.state, old, schema, rng))

    def learned(self, batch: Batch) -> Fitted:
        """Grow where a batch brings something new, and learn it."""
        grown = self.grown(batch.schema)
        # What has been derived already is passed on, for algorithms that can use it.
        available = vars(grown).get("derived")
        return self.replaced(batch.schema, self.algorithm.update(grown.state, batch.X, batch.Y, available))

    def merged(self, other: Fitted) -> Fitted:
        """Join what two models learned from different rows."""
        reason = _why_unmergeable(self, other)
        if reason:
            raise MergeError(f"The models cannot be merged exactly: {reason}.")
        schema = self.schema._replace(n_values=np.maximum(self.schema.n_values, other.schema.n_values))
        return self.replaced(schema, self.algorithm.merge(self.state, other.state))


def _why_unmergeable(one: Fitted, two: Fitted) -> str | None:
    """Return why two models cannot be merged; None if they can."""
    if one.algorithm != two.algorithm:
        return "their parameters differ"
    a, b = one.schema, two.schema
    if a.n_features != b.n_features or not _same(a.feature_names, b.feature_names):
        return "their features differ"
    if ((a.n_values > 0) != (b.n_values > 0)).any():
        return "a feature is nominal in one of them and numeric in the other"
    if a.n_labels != b.n_labels or not _same(a.label_names, b.label_names):
        return "their labels differ"
    reason: str | None = one.algorithm.why_unmergeable(one.state, two.state)
    return reason


def _same(one: Array | None, two: Array | None) -> bool:
    """Compare names, which may be None."""
    return list(one if one is not None else []) == list(two if two is not None else [])
