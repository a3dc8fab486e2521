"""What a classifier tells of what it has learned: the names and numbers of its columns, and what it can take."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from labelrace.base import model_file, notebook
from labelrace.base.fitted import Fitted
from labelrace.typing import Array


class FittedAttributes(notebook.Displayed):
    """The attributes that all classifiers have once they have learned something.

    Attributes
    ----------
    label_names_ : array of str or None
        Names of the labels.
    classes_ : (l,) array
        Columns of the labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if they have any.
    """

    _fitted: Fitted

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in self.__dict__

    @property
    def fitted(self) -> Fitted:
        """Everything that was learned, as a value.

        Raises
        ------
        NotFittedError
            If nothing was learned; to ``hasattr`` it is the error of a missing attribute.
        """
        if "_fitted" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' or 'partial_fit' with appropriate "
                "arguments before using this estimator."
            )
        return self._fitted

    @property
    def is_fitted(self) -> bool:
        """Whether anything has been learned."""
        return self.__sklearn_is_fitted__()

    def why_no_new_labels(self, n_labels: int) -> str | None:
        """Return why labels that appear later are refused, so that there are ``n_labels``; None if they are learned."""
        algorithm = self.fitted.algorithm
        return algorithm.why_no_new_labels() or algorithm.why_too_many_labels(n_labels)

    def why_no_new_features(self) -> str | None:
        """Return why features that appear later are refused; None if they are learned."""
        return self.fitted.algorithm.why_no_new_features()

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self.fitted.schema.n_features

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features; not there if they have none."""
        names = self.fitted.schema.feature_names
        if names is None:
            raise AttributeError("feature_names_in_: the features have no names")
        return names

    @property
    def classes_(self) -> Array:
        """Columns of the labels, from 0."""
        return np.arange(self.fitted.schema.n_labels)

    @property
    def label_names_(self) -> Array | None:
        """Names of the labels, or None if they have none."""
        return self.fitted.schema.label_names

    def _html(self) -> str:
        model: Any = self
        parameters = notebook.parameters_part(model.get_params(deep=False))
        if not self.is_fitted:
            return notebook.page(repr(self), "<p>Not fitted yet.</p>", parameters)
        schema = self.fitted.schema
        names = (
            notebook.names_part("Labels", schema.label_names),
            notebook.names_part("Features", schema.feature_names),
        )
        return notebook.page(repr(self), facts_table(model_facts(self), self), *names, parameters)


def model_facts(model: Any) -> dict[str, Any]:
    """Return what a fitted model says of itself; alarms and drifts are None if it looks for none."""
    return {
        "model": type(model).__name__,
        "features": int(model.n_features_in_),
        "labels": len(model.classes_),
        "alarms": getattr(model, "n_alarms_", None),
        "drifts": getattr(model, "n_drifts_", None),
    }


def facts_table(facts: dict[str, Any], saved: Any) -> str:
    """Return facts as HTML, without those that are None, and the size of the file that ``saved`` would have."""
    try:
        size = model_file.size(*saved.pack())
    except ValueError:  # what cannot be saved can be shown
        size = None
    shown = {**facts, "bytes": size}
    return notebook.html_table(
        [name, f"{value:,}" if isinstance(value, int) else value] for name, value in shown.items() if value is not None
    )
