"""Tables as one sparse matrix, online: `TableFeatures`, a scikit-learn transformer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags

from labelrace.base import parameters
from labelrace.base.declared_parameters import DeclaredParameters
from labelrace.base.events import LOGGER
from labelrace.base.parameters import quoted_list
from labelrace.base.sparse import entry_rows
from labelrace.exceptions import MergeError
from labelrace.tables import embedding, vocabulary
from labelrace.tables.cells import Cells
from labelrace.tables.column_blocks import (
    Block,
    Moments,
    add_moments,
    encode_block,
    make_block,
    merge_moments,
    moments_since,
    refuse_contradiction,
    weighted,
)
from labelrace.tables.column_kinds import (
    KINDS_BY_PARAMETER,
    LEFT_OUT,
    Column,
    batch_pattern,
    check_overrides,
    column_of,
    exchanged,
    with_signs,
)
from labelrace.tables.name_matches import TextWords
from labelrace.tables.read import Table, as_table
from labelrace.tables.vocabulary import Hashes, Keys, Vocabulary
from labelrace.tables.write import WRITTEN
from labelrace.typing import Array, FloatArray, IntArray, SparseMatrix


class FeatureState(NamedTuple):
    """Everything that was learned about the columns of a table."""

    columns: tuple[Column, ...]  # the kind of each column, in the order of the first table
    moments: dict[str, Moments]  # the moments of the columns of numbers, by name
    vocabulary: Vocabulary  # the columns of words and values in the matrix


class Values(NamedTuple):
    """The values of a category or a list: in which rows each of them, a column, is, and the hashes of the values."""

    counts: SparseMatrix
    hashes: Hashes


class Rows(NamedTuple):
    """The rows of a table as a model reads them, the words of its texts, and the values of its categories and lists."""

    matrix: SparseMatrix
    texts: tuple[TextWords, ...]
    values: tuple[Values, ...] = ()

    def take(self, rows: list[int]) -> Rows:
        """Return some of the rows."""
        if len(rows) == self.matrix.shape[0]:
            return self
        texts = tuple(text._replace(counts=text.counts[rows]) for text in self.texts)
        return Rows(self.matrix[rows], texts, tuple(one._replace(counts=one.counts[rows]) for one in self.values))


class Update(NamedTuple):
    """The result of learning a further table."""

    state: FeatureState  # the state after it
    matrix: SparseMatrix
    texts: tuple[TextWords, ...]
    values: tuple[Values, ...]
    reused: IntArray  # columns that were taken from other words
    as_before: Callable[[], SparseMatrix]  # makes the matrix that `transform` makes before the table is learned


def since(start: FeatureState, end: FeatureState) -> FeatureState:
    """Return the state with the counts since a start."""
    moments = {
        name: moments_since(start.moments.get(name, Moments()), moments) for name, moments in end.moments.items()
    }
    return FeatureState(end.columns, moments, vocabulary.since(start.vocabulary, end.vocabulary))


def merge(one: FeatureState, other: FeatureState) -> tuple[FeatureState, IntArray]:
    """Merge two states, with words by name; return the result and the new columns of the other's words.

    Raises
    ------
    MergeError
        If a column is of different kinds, or of lists with other separators.
    """
    known = {column.name: column for column in one.columns}
    for column in other.columns:
        before = known.setdefault(column.name, column)
        if before.kind == "empty":
            known[column.name] = column
        elif column.kind not in ("empty", before.kind):
            raise MergeError(
                f"The tables cannot be merged: the column {column.name!r} is {before} in one and {column} in the "
                "other; give its kind (text=, category=, …), or let both start from one model."
            )
        elif None not in (before.separator, column.separator) and before.separator != column.separator:
            raise MergeError(
                f"The tables cannot be merged: the column {column.name!r} is {before} in one and {column} in the "
                "other; learn lists, or texts with one separator, or leave the column out (drop=)."
            )
        else:
            separator, decimal = before.separator or column.separator, before.decimal or column.decimal
            known[column.name] = before._replace(separator=separator, decimal=decimal)
            if before.is_open and column.pattern in (before.pattern, exchanged(before.pattern)):
                known[column.name] = before._replace(pattern=column.pattern, is_open=column.is_open)
    moments = {
        name: merge_moments(one.moments.get(name, Moments()), other.moments.get(name, Moments()))
        for name in {**one.moments, **other.moments}
    }
    words, columns = vocabulary.merge(one.vocabulary, other.vocabulary)
    return FeatureState(tuple(known.values()), moments, words), columns


class ColumnParameters(DeclaredParameters):
    """Parameters for the columns of a table, of `TableFeatures` and of the tagger.

    Parameters
    ----------
    text, category, number, date, id, drop : str or list of str, default=None
        Columns of these kinds, instead of the detected ones; ``id`` and ``drop`` are left out.
    min_rows : int, default=None
        Number of rows that a word must occur in to be learned; a larger one takes less memory. By default 3 for words
        of long texts, and 1 for words of short texts, such as titles, and for values of categories and lists.
    max_features : int, default=262144
        Maximum number of words and values, each a column of the matrix; those that have not been seen for long are
        replaced by new ones.
    encoders : dict of callables by column, default=None
        Own encoders for text columns: from a list of texts to an array with a row for each. They are not saved with a
        tagger: give them to `labelrace.load` again.
    embed : dict of folders by column, default=None
        Embedding models for text columns: folders with ``model.onnx`` and ``tokenizer.json``. They are encoders, too.
        A tagger notes which model it has learned with. They need the extra ``embed``.
    encoders_only : bool, default=False
        Whether columns with an encoder are represented by it alone, without their words.
    """

    text: Any = None
    category: Any = None
    number: Any = None
    date: Any = None
    id: Any = None
    drop: Any = None
    min_rows: int | None = None
    max_features: int = 2**18
    encoders: Mapping[str, Any] | None = None
    embed: Mapping[str, Any] | None = None
    encoders_only: bool = False


class TableFeatures(ColumnParameters, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn tables into sparse matrices, batch by batch, without a first pass over the data.

    The kind of each column is detected from the first batch: text, category, number, date, boolean, list of values, or
    identifier, which is left out. The words of each text column are features of their own: ``1 + log`` of the count,
    times the square root of the inverse document frequency in the rows before, scaled to length one. The matrix gets
    more columns as words and values appear; if there are too many, those of words that have not been seen for long are
    reused.

    Later tables may have their columns in another order, lack some or have additional ones; cells may be empty or hold
    new values.

    Attributes
    ----------
    columns_ : tuple of Column
        The kind of each column.

    Examples
    --------
    >>> rows = [
    ...     {"id": 1, "body": "The oven is too hot", "product": "oven"},
    ...     {"id": 2, "body": "The toaster does not heat", "product": "toaster"},
    ... ]
    >>> features = TableFeatures(min_rows=1).fit(rows)
    >>> [(column.name, str(column)) for column in features.columns_]
    [('id', 'identifier, left out'), ('body', 'text'), ('product', 'category')]
    >>> X = features.transform([{"body": "A hot oven", "product": "grill"}])
    >>> features.get_feature_names_out()[X.indices].tolist()
    ['body: oven', 'body: hot']
    """

    _state: FeatureState = field(init=False)

    warns = True
    """Whether columns that are new or absent are warned of, and not only logged."""

    # --- Learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a table, and forget everything learned before.

        Parameters
        ----------
        X : data frame, Arrow table, list of dicts, dict of columns or (n, m) array
        y : None
            Not used.

        Returns
        -------
        self
        """
        self._state = self.update(None, X).state
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a further table; see `fit`.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        self
        """
        self._state = self.update(getattr(self, "_state", None), X).state
        return self

    def partial_fit_transform(self, X: Any, y: Any = None) -> SparseMatrix:
        """Learn from a further table and return its matrix, with words weighted by the rows before it.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        sparse array
        """
        update = self.update(getattr(self, "_state", None), X)
        self._state = update.state
        return update.matrix

    def update(self, state: FeatureState | None, X: Any) -> Update:
        """Return the state after a table, and its matrix.

        Nothing is assigned: the caller does that with `restore` when nothing else can fail.
        """
        if self.min_rows is not None:
            parameters.check_whole("min_rows", self.min_rows, 1)
        parameters.check_whole("max_features", self.max_features, 1)
        table = self._checked_table(X, state)
        if state is None:
            state = self.detect_columns(table)
        columns = tuple(
            column_of(column.name, cells) if column.kind == "empty" else with_signs(column, cells)
            for column, cells in ((column, _cells(table, column)) for column in state.columns)
        )
        for before, column in zip(state.columns, columns, strict=True):
            if before.kind == "date":
                self._exchanged(before, column.pattern)
        moments = {
            name: add_moments(state.moments.get(name, Moments()), table.columns[name], decimal)
            for name, decimal in ((column.name, column.decimal) for column in columns if column.kind == "number")
            if name in table.columns
        }
        # Numbers are scaled by the moments before, or by their own in the first batch.
        scales = {name: old if (old := state.moments.get(name, Moments())).n else new for name, new in moments.items()}
        by_encoders = self._encode_columns(columns, table)
        blocks = self._blocks(columns, scales, table, by_encoders)
        columns = tuple(
            self._with_encoder(column, by_encoders[column.name]) if column.name in by_encoders else column
            for column in columns
        )
        keys = _keys(blocks, self.min_rows)
        known, positions, reused = vocabulary.learn(state.vocabulary, keys, table.n_rows, self.max_features)
        matrix = _assemble(blocks, known, positions, keys.rows, table.n_rows)

        def as_before() -> SparseMatrix:
            # The blocks are the same, unless this batch is the first with cells of some column.
            is_new = [column.kind == "empty" for column in state.columns]
            if not any(is_new) and all(state.moments.get(name) == scale for name, scale in scales.items()):
                return _known_words(blocks, state.vocabulary, table.n_rows)
            old = tuple(one if new else two for one, two, new in zip(state.columns, columns, is_new, strict=True))
            return self._read(state._replace(columns=old), table).matrix

        after = FeatureState(columns, {**state.moments, **moments}, known)
        return Update(after, matrix, _texts(blocks), _values(blocks), reused, as_before)

    def detect_columns(self, table: Table) -> FeatureState:
        """Detect the kinds of the columns of a first table."""
        lists = {name: getattr(self, name) for name in KINDS_BY_PARAMETER}
        given = dict.fromkeys(self.encoders or (), "encoders") | dict.fromkeys(self.embed or (), "embed")
        given |= check_overrides(lists)
        if unknown := sorted(given.keys() - table.columns.keys()):
            raise ValueError(
                f"X has no column {unknown[0]!r}, which {given[unknown[0]]}= names; it has: "
                f"{quoted_list(table.columns, 20)}."
            )
        kinds = {**KINDS_BY_PARAMETER, "encoders": "text", "embed": "text"}
        columns = [column_of(name, cells, kinds.get(given.get(name, ""))) for name, cells in table.columns.items()]
        return FeatureState(tuple(columns), {}, vocabulary.empty())

    # --- Transforming -------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> SparseMatrix:
        """Turn a table into a matrix.

        Parameters
        ----------
        X : data frame, Arrow table, list of dicts, dict of columns or (n, m) array
            Unknown words and values are left out.

        Returns
        -------
        (n, m) sparse array in compressed rows
        """
        return self.read(X).matrix

    def read(self, X: Any) -> Rows:
        """Turn a table into a matrix, as `transform` does, and into the words of its texts."""
        return self._read(self.state, self._checked_table(X, self.state))

    def _read(self, state: FeatureState, table: Table) -> Rows:
        blocks = self._blocks(state.columns, state.moments, table, self._encode_columns(state.columns, table))
        return Rows(_known_words(blocks, state.vocabulary, table.n_rows), _texts(blocks), _values(blocks))

    def _encode_columns(self, columns: tuple[Column, ...], table: Table) -> dict[str, Block]:
        """Return the blocks of the columns that have an encoder."""
        named = {*(self.encoders or ()), *(self.embed or ())}
        return {
            column.name: encode_block(column, _cells(table, column), self._encoder(column.name))
            for column in columns
            if column.name in named and column.uses_encoder and column.kind not in LEFT_OUT
        }

    def _encoder(self, name: str) -> Any:
        """Return the encoder of a column; that of a folder is opened once."""
        own, folders = self.encoders or {}, self.embed or {}
        if name in own and name in folders:
            raise ValueError(f"The column {name!r} must have one encoder, got one in encoders= and one in embed=.")
        if name in own:
            return own[name]
        opened: dict[Any, Any] = self.__dict__.setdefault("_opened", {})
        if folders[name] not in opened:
            opened[folders[name]] = embedding.open_folder(folders[name])
        return opened[folders[name]]

    def _with_encoder(self, column: Column, block: Block) -> Column:
        """Note the output size and the model of a column's encoder."""
        digest = getattr(self._encoder(column.name), "digest", "")
        return column._replace(width=block.matrix.shape[1], embedding=digest)

    def _blocks(
        self,
        columns: tuple[Column, ...],
        moments: Mapping[str, Moments],
        table: Table,
        by_encoders: Mapping[str, Block],
    ) -> list[Block]:
        """Return the blocks of a table's columns, in the order of the known columns."""
        self._warn_of_other_columns(columns, table)
        blocks = []
        for column in columns:
            cells = _cells(table, column)
            if column.kind in LEFT_OUT:
                continue
            if column.name in by_encoders:
                blocks.append(by_encoders[column.name])
            if column.name not in by_encoders or not self.encoders_only:
                column = self._as_written(column, cells)
                block, wrong = make_block(column, cells, moments.get(column.name, Moments()))
                if wrong:
                    refuse_contradiction(column, cells, wrong)
                    self._say(
                        f"The column {column.name!r} holds {column}, but in some cells something else, which counts as "
                        "missing."
                    )
                blocks.append(block)
        return blocks

    def _as_written(self, column: Column, cells: Cells) -> Column:
        """Return a column with the format of the dates of a batch."""
        return self._exchanged(column, batch_pattern(column, cells)) if column.kind == "date" else column

    def _exchanged(self, column: Column, pattern: str) -> Column:
        """Return a column of dates with another format, and say so if it is another one."""
        if pattern != column.pattern:
            self._say(
                f"The column {column.name!r} holds dates that only {pattern!r} fits, as which they are read; those "
                f"learned were read as {column.pattern!r}. Write dates as 2024-12-31, which leaves no doubt."
            )
        return column._replace(pattern=pattern)

    def _warn_of_other_columns(self, columns: tuple[Column, ...], table: Table) -> None:
        known = {column.name: column for column in columns}
        used = [name for name, column in known.items() if column.kind not in LEFT_OUT]
        if used and not any(name in table.columns for name in used):
            raise ValueError(
                f"X must have some of the columns that were learned, {quoted_list(used)}, got "
                f"{quoted_list(table.columns)}: give them their names."
            )
        new = [name for name in table.columns if name not in known and name not in WRITTEN]
        absent = [name for name in used if name not in table.columns]
        if new:
            self._say(f"Columns that are new are ignored: {quoted_list(new)}.")
        if absent:
            self._say(f"Columns are not there, and their cells count as missing: {quoted_list(absent)}.")

    def _say(self, text: str) -> None:
        """Warn, once for each text, and log it."""
        said: set[str] = self.__dict__.setdefault("_said", set())
        if text not in said:
            said.add(text)
            LOGGER.warning(text)
            if self.warns:
                warnings.warn(text, UserWarning, stacklevel=2)

    def _checked_table(self, X: Any, state: FeatureState | None) -> Table:
        if scipy.sparse.issparse(X):
            raise TypeError("X must be a table with columns of values, got a sparse matrix: it has no text to read.")
        table = as_table(X)
        n_columns = len(table.columns)
        for what, count in (("sample", table.n_rows), ("feature", n_columns)):
            if count == 0:
                raise ValueError(
                    f"X must have rows and columns, got 0 {what}(s) (shape=({table.n_rows}, {n_columns})) while a "
                    "minimum of 1 is required."
                )
        if state is not None and not table.has_names and n_columns != len(state.columns):
            raise ValueError(
                f"X has {n_columns} features, but {type(self).__name__} is expecting {len(state.columns)} features as "
                "input: only columns with names may come and go."
            )
        return table

    # --- What was learned ---------------------------------------------------------------------------------------------

    @property
    def state(self) -> FeatureState:
        """The learned state, as a value."""
        if "_state" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' or 'partial_fit' with appropriate "
                "arguments before using this estimator."
            )
        return self._state

    def restore(self, state: FeatureState) -> Self:
        """Take over a state."""
        self._state = state
        return self

    @property
    def columns_(self) -> tuple[Column, ...]:
        """The kind of each column."""
        return self.state.columns

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the table."""
        return len(self.columns_)

    @property
    def feature_names_in_(self) -> Array:
        """Names of the columns of the table."""
        return np.array([column.name for column in self.columns_], dtype=object)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Name the columns of the matrix: ``column: word``, ``column=value``, or the column itself.

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        array of str
        """
        return np.array(self.state.vocabulary.names or ["nothing"], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in self.__dict__

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags


def _cells(table: Table, column: Column) -> Cells:
    """Return the cells of a column; all are missing if the table lacks it."""
    return table.columns.get(column.name, [None] * table.n_rows)


def _texts(blocks: list[Block]) -> tuple[TextWords, ...]:
    """Return the words of the blocks that are texts."""
    return tuple(TextWords(b.matrix, b.words, b.min_rows == 1, b.hashes) for b in blocks if b.words is not None)


def _values(blocks: list[Block]) -> tuple[Values, ...]:
    """Return the values of the blocks that are categories or lists."""
    return tuple(Values(block.matrix, block.hashes) for block in blocks if block.has_values)


def _keys(blocks: list[Block], min_rows: int | None) -> Keys:
    """Return the words and values of all blocks."""
    if not blocks:
        return Keys(np.zeros(0, np.uint64), [], np.zeros(0), np.zeros(0))
    rows = [np.bincount(block.matrix.indices, minlength=len(block.names)).astype(float) for block in blocks]
    return Keys(
        np.concatenate([block.hashes for block in blocks]),
        [name for block in blocks for name in block.names],
        np.concatenate(rows),
        np.concatenate([np.full(len(block.names), float(min_rows or block.min_rows)) for block in blocks]),
    )


def _known_words(blocks: list[Block], known: Vocabulary, n_rows: int) -> SparseMatrix:
    """Assemble the blocks with the words of a vocabulary."""
    hashes = np.concatenate([np.zeros(0, np.uint64), *(block.hashes for block in blocks)])
    return _assemble(blocks, known, vocabulary.find(known, hashes), None, n_rows)


def _assemble(
    blocks: list[Block], known: Vocabulary, positions: IntArray, counts: FloatArray | None, n_rows: int
) -> SparseMatrix:
    """Assemble the blocks to a matrix, with their columns at the given positions.

    Words are weighted by the rows that the vocabulary knows, but for those of the batch itself if it has `learned`
    these, which is how many rows each word of the batch is in.
    """
    width = max(1, len(known.rows))
    if not blocks:
        return scipy.sparse.csr_array((n_rows, width))
    counted = np.append(known.rows, 0.0)[positions] - (0.0 if counts is None else counts)
    before, n_before = np.where(positions >= 0, counted, 0.0), known.n_rows - (0 if counts is None else n_rows)
    parts, start = [], 0
    for block in blocks:
        part, of_entries = slice(start, start + len(block.names)), entry_rows(block.matrix)
        values = weighted(block, of_entries, before[part], n_before)
        parts.append((of_entries, positions[part][block.matrix.indices], values))
        start = part.stop
    rows, columns, values = map(np.concatenate, zip(*parts, strict=True))
    kept = np.flatnonzero(columns >= 0)
    kept = kept[np.argsort(rows[kept], kind="stable")]
    ends = np.searchsorted(rows[kept], np.arange(n_rows + 1)).astype(np.int32)
    matrix = scipy.sparse.csr_array((values[kept], columns[kept].astype(np.int32), ends), shape=(n_rows, width))
    matrix.sum_duplicates()
    return matrix
