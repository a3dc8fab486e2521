"""What a classifier tells of what it has learned: the names and numbers of its columns, and what it can take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.exceptions import NotFittedError

from labelrace.base.fitted import Fitted
from labelrace.typing import Array


class Displayed:
    """An estimator that notebooks show with what it has learned, wherever scikit-learn shows its own as diagrams.

    Examples
    --------
    >>> class Model(Displayed):
    ...     def _html(self):
    ...         return f"<b>{self!r}</b>"
    ...
    ...     def __repr__(self):
    ...         return "Model()"
    >>> Model()._repr_mimebundle_()["text/plain"]
    'Model()'
    >>> Model()._repr_html_()
    '<b>Model()</b>'
    """

    def _html(self) -> str:
        raise NotImplementedError

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """The function that makes the HTML; not there if scikit-learn is configured to show estimators as text."""
        if get_config()["display"] != "diagram":
            raise AttributeError("_repr_html_: scikit-learn's option 'display' is not 'diagram'")
        return self._html

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """Return text and HTML, which notebooks ask for first."""
        bundle = {"text/plain": repr(self)}
        return bundle | {"text/html": self._html()} if get_config()["display"] == "diagram" else bundle


class FittedAttributes(Displayed):
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
        from labelrace.base import notebook  # here, as only notebooks need it

        return notebook.model_html(self)


def model_facts(model: Any) -> dict[str, Any]:
    """Return what a fitted model says of itself; alarms and drifts are None if it looks for none."""
    return {
        "model": type(model).__name__,
        "features": int(model.n_features_in_),
        "labels": len(model.classes_),
        "alarms": getattr(model, "n_alarms_", None),
        "drifts": getattr(model, "n_drifts_", None),
    }
