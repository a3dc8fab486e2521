"""Labels that come later than predictions: rows are pending, by their ids, until their labels are known.

A row is learned or pending, never both, wherever an interrupt comes. Learning a row and dropping it are two steps: the
first notes which rows are being learned and what the model knew before; the next call, or the interrupted one itself,
checks whether the model has changed since, and drops the rows if it has. `labelrace.base.pending` keeps the rows.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from labelrace.base import model_file, parameters, state_file
from labelrace.base.pending import KindOfRows, Numbers, PendingRows
from labelrace.base.threads import Writable, one_at_a_time
from labelrace.typing import Array, MatrixLike, TargetLike

_MODEL, _BATCH = "model.", "pending"


class _Learning(NamedTuple):
    """Rows that are being learned, and what the model knew before; None for models of other libraries."""

    ids: list[Hashable]
    before: Any


class DelayedLabels(Writable):
    """A model whose rows are predicted now and learned when their labels are known.

    Any number of threads may call its methods. After an interrupt (Ctrl-C) a row has been learned or is still pending;
    rows that a model of another library was just learning are not pending any more.

    Parameters
    ----------
    model : classifier or Tagger
        It predicts, and learns by ``partial_fit``; one of labelrace's or any other.
    max_rows : int, default=10_000
        Maximum number of pending rows; the oldest are dropped.

    Attributes
    ----------
    model : classifier or Tagger
        The model, to call its other methods. `save` saves it with the pending rows.

    Examples
    --------
    >>> import numpy as np
    >>> import labelrace
    >>> X = np.array([[0.0], [1.0], [0.2], [0.9]] * 10)
    >>> model = labelrace.BinaryRelevanceClassifier().fit(X, X > 0.5)
    >>> tickets = labelrace.DelayedLabels(model, max_rows=1000)
    >>> tickets.predict([[0.1], [0.8]], ids=["A-1", "A-2"])
    array([[False],
           [ True]])
    >>> tickets.learn(["A-2"], [[1]]).pending_ids
    ['A-1']

    Rows of tables have their ids in them:

    >>> rows = [{"id": i, "title": title, "tags": title} for i, title in enumerate(["oven", "toaster"] * 9)]
    >>> tagger = labelrace.Tagger("tags", id="id", text="title", random_state=0).partial_fit(rows)
    >>> tickets = labelrace.DelayedLabels(tagger)
    >>> tickets.predict([{"id": 90, "title": "oven"}, {"id": 91, "title": "fridge"}])
    [{'oven'}, set()]
    >>> tickets.learn([91], [{"fridge"}]).pending_ids
    [90]
    """

    def __init__(self, model: Any, *, max_rows: int = 10_000) -> None:
        parameters.check_whole("max_rows", max_rows, 0)
        if not hasattr(model, "partial_fit"):
            raise ValueError(f"model must be a classifier that has partial_fit, got {model!r}.")
        self.model = model
        self.max_rows = max_rows
        self._rows = PendingRows()
        self._learning: _Learning | None = None

    def __len__(self) -> int:
        return len(self.pending_ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, max_rows={self.max_rows})"

    @property
    def _kind(self) -> KindOfRows:
        """The kind of rows that the model predicts and learns."""
        rows: KindOfRows = self.model.rows_to_keep() if hasattr(self.model, "rows_to_keep") else Numbers(self.model)
        return rows

    @property
    def pending_ids(self) -> list[Hashable]:
        """Ids of the pending rows, oldest first."""
        return one_at_a_time(self._writers, lambda: self._up_to_date().ids)

    def predict(self, X: MatrixLike, ids: Iterable[Hashable] | None = None) -> Any:
        """Predict label sets; the rows are pending until `learn` gets their labels.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows; for a tagger a table or path
            Features.
        ids : sequence of n ids, default=None
            Numbers, text or tuples of these. An id that comes again replaces its row. By default, for a tagger, those
            in the table's column of identifiers.

        Returns
        -------
        (n, l) array of 0 and 1, or list of sets of tags
            As the model's ``predict`` gives it.
        """
        return self._keep(self.model.predict, X, ids)

    def predict_labels(self, X: MatrixLike, ids: Iterable[Hashable] | None = None) -> list[set[Any]]:
        """Predict label sets by name, and keep the rows; see `predict`.

        Parameters
        ----------
        X, ids
            As for `predict`.

        Returns
        -------
        list of sets
        """
        named: list[set[Any]] = self._keep(getattr(self.model, "predict_labels", self.model.predict), X, ids)
        return named

    def predict_top(
        self, X: MatrixLike, ids: Iterable[Hashable] | None = None, k: int = 5
    ) -> list[list[tuple[Any, float]]]:
        """List the most likely labels with their probabilities, and keep the rows; see `predict`.

        Parameters
        ----------
        X, ids
            As for `predict`.
        k : int, default=5
            How many labels to list; all if there are fewer.

        Returns
        -------
        list of lists of (label, probability)
        """
        likely: list[list[tuple[Any, float]]] = self._keep(self.model.predict_top, X, ids, k)
        return likely

    def _keep(self, predict: Any, X: Any, ids: Any, *arguments: Any) -> Any:
        """Predict rows and keep copies of them afterwards, so that wrong rows have been refused."""
        predicted, rows = predict(X, *arguments), self._kind.copied(X)
        listed = _check_ids(self._kind.ids(rows) if ids is None else ids, rows.n_rows)
        one_at_a_time(self._writers, lambda: self._up_to_date().keep(listed, rows, self.max_rows))
        return predicted

    def learn(self, ids: Iterable[Hashable], y: TargetLike) -> Self:
        """Learn rows that were predicted before, now that their labels are known.

        Parameters
        ----------
        ids : sequence
            The ids that the rows were given in `predict`. They are forgotten then: a row is learned once.
        y : array-like, sparse matrix, data frame or list of sets, of n rows
            Labels, as for ``partial_fit``.

        Returns
        -------
        self

        Raises
        ------
        UnknownRowError
            If an id is not that of a pending row.

        Examples
        --------
        >>> import labelrace
        >>> model = labelrace.make_model("ridge").fit([[0.0], [1.0]] * 5, [{"cold"}, {"warm"}] * 5)
        >>> days = labelrace.DelayedLabels(model)
        >>> days.predict_labels([[0.9], [0.1]], ids=["Monday", "Tuesday"])
        [{'warm'}, {'cold'}]
        >>> days.learn(["Monday"], [{"warm", "windy"}]).pending_ids
        ['Tuesday']
        >>> list(days.model.label_names_)
        ['cold', 'warm', 'windy']
        """
        one_at_a_time(self._writers, self._learn, _check_ids(ids), y)
        return self

    def _learn(self, ids: list[Hashable], y: TargetLike) -> None:
        for rows, learn in self._kind.steps(*self._up_to_date().find(ids), y):
            self._learning = _Learning([ids[row] for row in rows], self._kind.model_state())
            try:
                learn()
            except Exception:
                # The model has refused the rows, and is as it was: they stay pending.
                self._learning = None
                raise
            finally:
                self._up_to_date()

    def _up_to_date(self) -> PendingRows:
        """Return the pending rows, without those that have been learned."""
        learning = self._learning
        if learning is not None:
            state = self._kind.model_state()
            if state is None or state is not learning.before:
                self._rows.drop(learning.ids)
            self._learning = None
        return self._rows

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model and the pending rows to one file, which `labelrace.load` reads, completely or not at all.

        Parameters
        ----------
        path : path
        """
        model_file.write(path, *one_at_a_time(self._writers, self._pack))

    def _pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the header and the arrays of the file."""
        if not hasattr(self.model, "pack"):
            raise ValueError(f"model must be one of labelrace's own to be saved, got {type(self.model).__name__}.")
        batches, tensors = list[Any](), dict[str, Array]()
        # The model after the rows: what has been learned is not pending.
        for number, (ids, rows) in enumerate(self._up_to_date().batches()):
            described, arrays = self._kind.pack(rows, f"{_BATCH}.{number}")
            batches.append({"ids": [_plain_id(one) for one in ids], "rows": described})
            tensors |= arrays
        header, model_tensors = self.model.pack()
        tensors |= {_MODEL + name: tensor for name, tensor in model_tensors.items()}
        own = {"max_rows": int(self.max_rows), "model": header, "batches": batches}
        return model_file.new_header(type(self).__name__) | own, tensors

    @classmethod
    def from_file(
        cls, header: dict[str, Any], tensors: dict[str, Array], encoders: Any = None, embed: Any = None
    ) -> Self:
        """Make it from the content of its file; `labelrace.load` calls this."""
        own = {name.removeprefix(_MODEL): tensor for name, tensor in tensors.items() if name.startswith(_MODEL)}
        model = state_file.class_of(header["model"]).from_file(header["model"], own, encoders, embed)
        delayed = cls(model, max_rows=header["max_rows"])
        for number, batch in enumerate(header["batches"]):
            rows = delayed._kind.unpack(batch["rows"], f"{_BATCH}.{number}", tensors)
            ids = _check_ids(map(_read_id, batch["ids"]), rows.n_rows)
            if len(set(ids)) < len(ids):
                raise ValueError("two of its pending rows have the same id")
            delayed._rows.keep(ids, rows, delayed.max_rows)
        return delayed


def _plain_id(identity: Any) -> Any:
    """Return an id as JSON has it."""
    if isinstance(identity, tuple):
        return {"tuple": list(map(_plain_id, identity))}
    plain = identity.item() if isinstance(identity, np.generic) else identity
    if not isinstance(plain, (str, int, float)) and plain is not None:
        raise ValueError(f"ids must be numbers, text or tuples of these to be saved, got {identity!r}.")
    return plain


def _read_id(plain: Any) -> Hashable:
    """Read what `_plain_id` returned."""
    return tuple(map(_read_id, plain["tuple"])) if isinstance(plain, dict) else plain


def _check_ids(ids: Any, n_rows: int | None = None) -> list[Hashable]:
    """List ids: one for each of ``n_rows`` rows, if that is given; otherwise distinct ones."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise ValueError(f"ids must be a list of ids, one for each row, got {ids!r}.")
    listed = list(ids)
    try:
        distinct = set(listed)
    except TypeError:
        raise ValueError("ids must hold numbers, text or tuples of these, got what cannot be an id.") from None
    if any(one != one for one in listed):
        raise ValueError("ids must hold what is equal to itself, got NaN: give such rows an id.")
    if n_rows is not None and len(listed) != n_rows:
        raise ValueError(f"X and ids must have the same number of rows, got {n_rows} and {len(listed)}.")
    if n_rows is None and not listed:
        raise ValueError("ids must hold at least one id, got none.")
    if n_rows is None and len(distinct) < len(listed):
        raise ValueError("ids must be distinct, got an id twice: give each row's labels once.")
    return listed
