"""What all online multi-label classifiers have in common.

Everything a model knows is one value, `Fitted`: an algorithm of the core, the schema of its columns, and its state.
`partial_fit` makes a new one, in the order check, grow, update, and assigns it when nothing can fail any more. So a
failed call, or an interrupted one, leaves the model as it was, and threads that predict read one reference. Threads
that learn wait for one another.
"""

from __future__ import annotations

import copy
import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Self, TypeAlias, overload

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags

from labelrace.base import labels, missing_labels, parameters, validation
from labelrace.base.algorithm import Algorithm
from labelrace.base.alignment import check_same_algorithm
from labelrace.base.declared_parameters import DeclaredParameters
from labelrace.base.fitted import Fitted
from labelrace.base.fitted_attributes import FittedAttributes
from labelrace.base.schema import Batch, Schema
from labelrace.base.threads import Writable, one_writer
from labelrace.base.validation import EstimatorInfo
from labelrace.exceptions import GrowthError, MergeError, ModelFileError
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray, MatrixLike, TargetLike

Top: TypeAlias = list[list[tuple[Any, float]]]


class OnlineClassifier(DeclaredParameters, FittedAttributes, Writable, ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the classifiers, nearly all of which learn batch by batch.

    A subclass is its parameters, declared as fields, and makes its algorithm of them.

    Parameters
    ----------
    categorical_features : mask, indices, names or None, default=None
        Features that hold codes 0, 1, 2, … of nominal values.
    label_names : sequence of str or None, default=None
        Names of the labels, if ``y`` is not a data frame, whose columns have names.
    """

    is_online = True
    """Whether the classifier learns batch by batch; otherwise it has no `partial_fit`."""

    categorical_features: Any = None
    label_names: Any = None
    _fitted: Fitted = field(init=False)

    @abstractmethod
    def _algorithm(self, seed: int) -> Algorithm[Any]:
        """Check the parameters and make the algorithm of them; ``seed`` is for algorithms that draw by themselves."""

    def _seed(self) -> int:
        """Choose what the algorithm, and labels that come later, are drawn from."""
        return parameters.draw_seed(getattr(self, "random_state", 0))

    # --- Learning -----------------------------------------------------------------------------------------------------

    @one_writer
    def fit(self, X: MatrixLike, y: TargetLike, sample_weight: Any = None) -> Self:
        """Forget everything and learn from one batch.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features. A dict is ``{name: number}``; what it does not name is 0.
        y : array-like, sparse matrix, data frame or list of sets, of n rows
            Labels, 0 or 1, a column for each; or for each row the set of its labels' names.
        sample_weight : (n,) array-like, default=None
            Weights of the rows, for models that `supports_row_weights`; see `partial_fit`.

        Returns
        -------
        self
        """
        fitted, batch = self._first_batch(X, y, sample_weight)
        self._fitted = fitted.learn(batch)
        return self

    @one_writer
    def partial_fit(self, X: MatrixLike, y: TargetLike, classes: None = None, sample_weight: Any = None) -> Self:
        """Learn from a further batch.

        It may bring labels that were not there before: further columns behind the others, or new names in a data frame
        or in sets. Further columns of a sparse ``X``, or new names in dicts, are new features likewise. Names of
        labels, and of features in dicts, may come in any order.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features. A dict is ``{name: number}``; what it does not name is 0.
        y : array-like, sparse matrix, data frame or list of sets, of n rows
            Labels, 0 or 1, a column for each; or for each row the set of its labels' names. Labels whose names are
            known and not there are absent. A matrix without names has its columns in the order of ``label_names_``. If
            `supports_missing_labels`, NaN is a missing label.
        classes : None
            Not used: a label is 0 or 1. Here because scikit-learn's tools pass it.
        sample_weight : (n,) array-like, default=None
            Weights of the rows, at least 0. None, and weights that are all 1, are no weights. A row of weight 0 is left
            out, but the columns that it has names for are known from then on. Other models than those that
            `supports_row_weights` refuse weights.

            For models that are sums (naive Bayes, ridge, chains, RACE's decoder and compression by ridge regression) a
            row of weight 2 is exactly the row twice. For stochastic gradient descent it is the row twice in succession,
            where that is defined. For the default, `LabelRaceClassifier`, the squared errors of the row count twice:
            within a block of rows that are solved together, that is the row twice. Scaling of features, forgetting,
            thresholds, probabilities and the detection of drift count rows, whatever their weights.

        Returns
        -------
        self
        """
        is_first = "_fitted" not in self.__dict__
        fitted, batch = (self._first_batch if is_first else self._next_batch)(X, y, sample_weight)
        self._fitted = learned = fitted.learn(batch)
        # Nearly always nothing has happened: looking must cost nothing.
        if (
            learned.algorithm is not fitted.algorithm
            or getattr(learned.state, "n_alarms", 0) != getattr(fitted.state, "n_alarms", 0)
            or getattr(learned.state, "n_drifts", 0) != getattr(fitted.state, "n_drifts", 0)
        ):
            from labelrace.base import events  # here, as it happens rarely

            events.log_learned(type(self).__name__, fitted, learned)
        return self

    def _first_batch(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Fitted, Batch]:
        """Check a first batch; return it with what knows its columns and has learned nothing."""
        info = EstimatorInfo(type(self).__name__, self._algorithm(0))
        batch = validation.first_batch(
            X,
            y,
            info,
            label_names=self.label_names,
            categorical_features=self.categorical_features,
            sample_weight=sample_weight,
        )
        # Drawn when the batch is known to be in order: a refused one takes nothing from a generator.
        seed = self._seed()
        algorithm = self._algorithm(seed)
        state = algorithm.init(batch.schema, parameters.generator(getattr(self, "random_state", 0)))
        return Fitted(algorithm, batch.schema, state, seed, self.get_params(deep=False)), batch

    def _next_batch(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Fitted, Batch]:
        """Check a further batch; return it with what is known so far."""
        fitted = self._fitted
        self._check_unchanged(fitted)
        info = EstimatorInfo(type(self).__name__, fitted.algorithm)
        return fitted, validation.next_batch(X, y, fitted.schema, info, sample_weight=sample_weight)

    @one_writer
    def add_labels(self, new: int | Sequence[str]) -> Self:
        """Add labels that have not occurred so far; `partial_fit` does so by itself where new ones occur.

        Parameters
        ----------
        new : int or sequence of str
            How many labels, or their names.

        Returns
        -------
        self
        """
        self._fitted = self.fitted.grow(self._schema_with(new))
        return self

    def _schema_with(self, new: int | Sequence[str]) -> Schema:
        """Return the schema with further labels."""
        schema = self.fitted.schema
        n_labels, names = labels.added_names(new, schema.n_labels, schema.label_names)
        reason = self.why_no_new_labels(n_labels)
        if reason:
            raise GrowthError(f"{type(self).__name__} cannot take new labels: {reason}.")
        return schema.replace(n_labels=n_labels, label_names=names)

    @one_writer
    def reset_features(self, columns: Any) -> Self:
        """Forget features whose columns stand for others from now on, as far as the model can.

        Parameters
        ----------
        columns : list of int

        Returns
        -------
        self
        """
        fitted = self.fitted
        self._fitted = fitted.reset_features(validation.feature_columns(columns, fitted.schema.n_features))
        return self

    @one_writer
    def rename_labels(self, names: Mapping[str, str]) -> Self:
        """Give labels other names; what has been learned of them stays.

        Parameters
        ----------
        names : dict from old to new name

        Returns
        -------
        self
        """
        fitted = self.fitted
        new = labels.renamed(fitted.schema.label_names, names)
        self._fitted = fitted.replace(fitted.schema.replace(label_names=new), fitted.state)
        return self

    @one_writer
    def merge(self, other: OnlineClassifier, *, columns: IntArray | None = None) -> Self:
        """Take in what another model has learned from other rows.

        Labels and features are joined by name, or by column if they have none. For models whose state is sums the
        result is the model that learned all rows. Let both start from one model (`emptied`) or `random_state`, so that
        what they draw, and what a first batch settles, is the same. The default, `LabelRaceClassifier`, merges well but
        not exactly: its weights lie half-way between the average of the two models and the sum of what both learned.

        Parameters
        ----------
        other : classifier of the same class
            Is not changed. Where the order of rows matters, as for new labels, its rows are taken for the later ones.
        columns : (m,) array, default=None
            Which of this model's columns, or of further ones, each feature of the other model is, where features have
            no names but that is known.

        Returns
        -------
        self

        Raises
        ------
        MergeError
            Where merging makes no sense, with the reason.

        Examples
        --------
        >>> import labelrace
        >>> days = [{"sun": 1.0}, {"rain": 1.0}, {"snow": 1.0}] * 9
        >>> start = labelrace.make_model("ridge").fit(days[:2], [{"dry"}, {"wet"}])
        >>> replica = start.emptied().partial_fit(days, [{"dry"}, {"wet"}, {"wet", "cold"}] * 9)
        >>> sorted(start.merge(replica).predict_labels([{"snow": 1.0}])[0])
        ['cold', 'wet']
        """
        fitted = self.fitted
        if type(other) is not type(self):
            raise MergeError(f"other must be a {type(self).__name__}, got {type(other).__name__}.")
        later = other.fitted
        check_same_algorithm(fitted, later)
        self._fitted = fitted.algorithm.merge_models(fitted, later, columns)
        return self

    def emptied(self) -> Self:
        """Return a copy that has learned nothing but knows what the first batch settled: the columns, what was drawn.

        Models that learn different rows from there on can be merged with one another and with this one.

        Returns
        -------
        classifier

        Raises
        ------
        MergeError
            For models that do not merge exactly, with the reason.
        """
        return self.with_fitted(self.fitted.emptied())

    def with_fitted(self, fitted: Fitted) -> Self:
        """Return a copy of the same parameters that knows something else."""
        copied = copy.copy(self)
        copied._fitted = fitted
        return copied

    # --- Predicting ---------------------------------------------------------------------------------------------------

    def predict(self, X: MatrixLike) -> AnyMatrix:
        """Predict label sets.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features. Names in dicts that the model does not know are ignored, and so are further columns of a sparse
            ``X`` if the model could learn them.

        Returns
        -------
        (n, l) array of 0 and 1
            Of the type of the labels learned; a sparse array where these were sparse, or sets of names.
        """
        fitted, rows = self._rows(X)
        return fitted.predict(rows)

    def predict_labels(self, X: MatrixLike) -> list[set[Any]]:
        """Predict label sets by name.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features.

        Returns
        -------
        list of sets
            For each row the names of its labels, or their columns if labels have no names.
        """
        fitted, rows = self._rows(X)
        return fitted.predict_labels(rows)

    @overload
    def predict_top(self, X: MatrixLike, k: int = 5, *, as_frame: Literal[False] = False) -> Top: ...
    @overload
    def predict_top(self, X: MatrixLike, k: int = 5, *, as_frame: bool) -> Any: ...
    def predict_top(self, X: MatrixLike, k: int = 5, *, as_frame: bool = False) -> Any:
        """List the most likely labels of each row with their probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features.
        k : int, default=5
            How many labels to list; all if there are fewer.
        as_frame : bool, default=False
            Whether to return a data frame with the columns row, rank, label and probability: of polars if ``X`` is one
            of polars, otherwise of pandas, with rows by their index there.

        Returns
        -------
        list of lists of (label, probability), or data frame
            Best first; labels by name, or by column if they have no names.

        Examples
        --------
        >>> import labelrace
        >>> model = labelrace.make_model("ridge").fit([[0.0], [1.0], [2.0]] * 9, [{"cold"}, {"warm"}, {"hot"}] * 9)
        >>> [[label for label, probability in row] for row in model.predict_top([[2.0], [0.0]], k=2)]
        [['hot', 'warm'], ['cold', 'warm']]
        """
        parameters.check_whole("k", k, 1)
        fitted, rows = self._rows(X)
        top = fitted.predict_top(rows, k)
        if not as_frame:
            return top
        from labelrace.base import frames  # here, as few need it

        return frames.top_frame(top, X)

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Compute a score for every label; higher is more likely.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features.

        Returns
        -------
        (n, l) array
        """
        fitted, rows = self._rows(X)
        return fitted.scores(rows)

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Estimate the probability of every label.

        How well it is calibrated depends on the method: see its class.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features.

        Returns
        -------
        (n, l) array
        """
        fitted, rows = self._rows(X)
        return fitted.probabilities(rows)

    def score(self, X: MatrixLike, y: TargetLike, sample_weight: Any = None) -> float:
        """Compute the subset accuracy: the share of rows whose label set is predicted exactly.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features.
        y : array-like, sparse matrix, data frame or list of sets, of n rows
            Labels. Names that the model does not know make a row's set wrong.
        sample_weight : (n,) array-like, default=None
            Weights of the rows.

        Returns
        -------
        float
        """
        fitted, rows = self._rows(X)
        truth = labels.next_labels(y, rows.shape[0], fitted.schema, allow_missing=True).matrix
        if missing_labels.find(truth) is not None:
            raise ValueError("y must hold no missing labels (NaN) for a score: leave out the rows that have some.")
        is_right = fitted.are_right(rows, truth)
        from sklearn.metrics import accuracy_score  # here, as importing it is slow and few need it

        return float(accuracy_score(np.ones_like(is_right), is_right, sample_weight=sample_weight))

    def predict_row(self, row: AnyMatrix) -> list[bool]:
        """Decide the labels of one row that is known to have the model's columns: a (1, m) array of finite floats."""
        fitted = self.fitted
        rows = validation.in_range(row, fitted.schema)
        present: list[bool] = fitted.algorithm.predict(fitted.derived, rows)[0].tolist()
        return present

    def _rows(self, X: Any) -> tuple[Fitted, AnyMatrix]:
        """Check rows to be predicted; return them with what the model knows at this moment."""
        fitted = self.fitted
        return fitted, validation.known_rows(X, fitted.schema, EstimatorInfo(type(self).__name__, fitted.algorithm))

    # --- What is known ------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, which `labelrace.load` reads; the file is complete or not there.

        Parameters
        ----------
        path : path
            The file. It is in the safetensors format, with a header that tells class, parameters and names.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import labelrace
        >>> model = labelrace.make_model("ridge").fit([[0.0], [1.0]], [{"cold"}, {"warm"}])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(Path(folder, "weather.safetensors"))
        ...     labelrace.load(Path(folder, "weather.safetensors")).predict_labels([[1.0]])
        [{'warm'}]
        """
        from labelrace.base import model_file  # as in `pack`

        model_file.write(path, *self.pack())

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what a file of the model holds, a header and arrays by name, for a file that holds more than it."""
        fitted = self.fitted
        self._check_unchanged(fitted)
        from labelrace.base import state_file  # here, as most models are never saved

        return state_file.pack(self, fitted)

    @classmethod
    def from_file(
        cls, header: dict[str, Any], tensors: dict[str, Array], encoders: Any = None, embed: Any = None
    ) -> Self:
        """Make a model from the content of its file; `labelrace.load` calls this."""
        from labelrace.base import state_file  # as in `pack`

        if embed:
            raise ModelFileError(f"embed must be None for a {cls.__name__}: only taggers read texts. Leave it out.")
        model: Self = state_file.unpack(cls, header, tensors)
        return model

    @property
    def supports_missing_labels(self) -> bool:
        """Whether a NaN in ``y`` is a missing label, rather than an error."""
        algorithm = self._current_algorithm()
        return algorithm is not None and algorithm.learns_missing_labels

    @property
    def supports_missing_values(self) -> bool:
        """Whether a NaN in ``X`` is a missing value, rather than an error."""
        algorithm = self._current_algorithm()
        return algorithm is not None and algorithm.skips_missing

    @property
    def supports_row_weights(self) -> bool:
        """Whether rows may have weights, ``sample_weight``, rather than that being an error."""
        algorithm = self._current_algorithm()
        return algorithm is not None and algorithm.why_no_row_weights() is None

    def _current_algorithm(self) -> Algorithm[Any] | None:
        """Return the algorithm; None if the parameters are wrong, which is reported where learning starts."""
        if self.__sklearn_is_fitted__():
            return self._fitted.algorithm
        try:
            return self._algorithm(0)
        except ValueError:
            return None

    def _check_unchanged(self, fitted: Fitted) -> None:
        # Comparing references is quick, and where none has changed it is enough.
        if all(map(operator.is_, map(self.__dict__.get, fitted.parameters), fitted.parameters.values())):
            return
        changed = [name for name, value in fitted.parameters.items() if self.__dict__[name] is not value]
        # What the algorithm does not compare was used in the first batch, and would be saved with the model.
        others = [name for name in changed if name in ("projection", "orders", "categorical_features", "label_names")]
        is_other = any(not parameters.are_equal(self.__dict__[name], fitted.parameters[name]) for name in others)
        known, algorithm = fitted.algorithm, self._algorithm(fitted.seed)
        if is_other or (known != algorithm and known != algorithm.successor):
            raise ValueError("Parameters were changed after fitting. Restore them, or call fit to start over.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.supports_missing_values
        return tags
