"""What comes later than rows to learn: labels that were not known to exist, and labels of rows predicted before."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from labelrace import parameters
from labelrace.models import features, growth, naming, waiting
from labelrace.models.learned import Learned
from labelrace.typing import AnyMatrix, Array, IntArray

__all__ = ["LearnsLater", "unchanged_on_error"]


class LearnsLater:
    """Mixin of classifiers that take new labels, and labels of rows that they predicted before."""

    buffer_size = 10_000
    """How many rows predicted with ids are kept for `learn`, the newest ones. To be set on a model as on the class."""

    classes_: IntArray
    label_names_: Array | None
    n_features_in_: int
    # What algorithms that draw by themselves, and labels that come later, draw from. Chosen when learning begins.
    _seed: int = 0
    _learned: Learned
    _waiting: waiting.Waiting

    @abstractmethod
    def _learn(self, X: Any, Y: Any) -> None:
        """Check a batch and learn it."""

    def _draw_seed(self) -> int:
        """Choose what the model is to draw from, now and for labels that come later."""
        return growth.draw_seed(getattr(self, "random_state", 0))

    def _refuse_labels(self, n_labels: int) -> None:
        """Refuse more labels than the model has room for; most have room for any number."""

    def add_labels(self, new: int | Any) -> Self:
        """Add labels that have not occurred so far; `partial_fit` does so by itself where new ones occur.

        Parameters
        ----------
        new : int or sequence of str
            How many labels, or their names.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        n_labels, names = growth.new_labels(self, new)
        with unchanged_on_error(self):
            growth.grow_labels(self, n_labels)
            self.label_names_ = names
        return self

    def _keep(self, ids: list[Any], X: Any, checked: AnyMatrix) -> None:
        """Keep rows until their labels come, in memory of their own; with features that the model does not know yet."""
        parameters.check_whole("buffer_size", self.buffer_size, 0)
        can_grow = self._learned.algorithm.why_no_new_features() is None
        named = naming.feature_dicts(X) if can_grow else None
        if not hasattr(self, "_waiting"):
            self._waiting = waiting.Waiting()
        if features.has_new_columns(self, X):
            checked = scipy.sparse.csr_array(X, dtype=float)
        self._waiting.keep(ids, checked.copy() if named is None else named, self.buffer_size)

    def learn(self, ids: Any, Y: Any) -> Self:
        """Learn rows that were predicted before, now that their labels are known.

        Parameters
        ----------
        ids : sequence
            The ids that the rows were given in `predict`. They are forgotten then: a row is learned once, so labels
            that come in parts are better waited for.
        Y : array-like, sparse matrix, data frame or list of sets, of n rows
            Labels, as for `partial_fit`.

        Returns
        -------
        self

        Raises
        ------
        UnknownRowError
            Where an id is of no row that is kept. Only the newest `buffer_size` are, and `save` does not write them.
        """
        check_is_fitted(self)
        listed, kept = waiting.check_ids(ids), getattr(self, "_waiting", waiting.Waiting())
        names = getattr(self, "feature_names_in_", None)
        with unchanged_on_error(self):
            self._learn(kept.find(listed, self.n_features_in_, names), Y)
        kept.drop(listed)
        return self


@contextmanager
def unchanged_on_error(model: Any) -> Iterator[None]:
    """Put all attributes of a model back if something fails."""
    # States are immutable: remembering the references is remembering everything.
    before = dict(model.__dict__)
    try:
        yield
    except BaseException:
        model.__dict__.clear()
        model.__dict__.update(before)
        raise
