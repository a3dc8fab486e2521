"""What is done to a whole state by the axes that its fields declare: moving, growing, emptying, adding.

A field of a state says what its axes are, and what else is true of it:

====================================================== ===============================================================
``A: Annotated[FloatArray, "l k"]``                    axes: labels and pseudo labels
``rows: Annotated[FloatArray, "t+1"]``                 a last entry for totals: new targets come before it
``mean: Annotated[FloatArray, "M|0"]``                 or nothing, which stays so
``labels: Annotated[IntArray, "_n", "<l"]``            entries are labels, which follow where labels move
``n_labels: Annotated[float, "=l"]``                   the number of labels
``sums: Annotated[FloatArray, "m l", SUM]``            a sum over rows: models are merged by adding it
``bias: Annotated[FloatArray, "k", SAME]``             settled at the start: the same in models that are merged
``seen: Annotated[FloatArray, "l", "new inf"]``        what new entries are; 0 unless a field says so
``learners: Annotated[Any, "t=l"]``                    what is called ``t`` in the state below is ``l`` here
``leaves: Annotated[Leaf, "stacked L"]``               arrays of the state below have one axis more, before theirs
====================================================== ===============================================================

``l`` are labels, ``m`` features; of these ``d`` are numeric and ``j`` nominal, with ``i`` indicators of their values,
and ``M`` are the columns of the design, ``d + i``. Banks call their targets ``t``. Other names are a method's own, and
do not move. A part that needs more is named with a function, as in ``take(state, moves, learners=bank.take)``.
`labelrace.base.state_reader` checks files by the same annotations. A batch with new labels or features comes here by
`Fitted.grow` and `Algorithm.grow`, where a method adds what it draws.

Examples
--------
>>> class State(NamedTuple):
...     rows: Annotated[float, SUM]
...     sums: Annotated[Array, "m l", SUM]
>>> state = State(2.0, np.ones((2, 1)))
>>> take(state, Moves({"l": longer(1, 3)})).sums
array([[1., 0., 0.],
       [1., 0., 0.]])
>>> add(state, state).rows
4.0
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.typing import Array, IntArray

SUM = "sum"
"""Mark of a sum over rows: it adds where models are merged, and is 0 in a model that has learned nothing."""

SAME = "same"
"""Mark of a field that models must share to be merged: it was drawn, or taken from a first batch."""


class Field(NamedTuple):
    """A field of a state, as its annotation declares it."""

    name: str
    kind: Any
    marks: tuple[Any, ...]
    is_optional: bool

    @property
    def axes(self) -> str | None:
        """The axes of an array; None for what is none."""
        kind = get_origin(self.kind) or self.kind
        # ``NDArray`` is an alias that keeps its name, from Python 3.12 on and with a NumPy that makes it one.
        kind = get_origin(getattr(kind, "__value__", None)) or kind
        return self.marks[0] if kind is np.ndarray and self.marks else None

    def mark(self, word: str) -> str | None:
        """Return what follows a word among the marks; None if it is not there."""
        found = (mark[len(word) :].strip() for mark in self.marks if isinstance(mark, str) and mark.startswith(word))
        return next(found, None)


def fields_of(state: Any) -> tuple[Field, ...]:
    """Read the annotations of a NamedTuple, or of its class."""
    return _fields_of(state if isinstance(state, type) else type(state))


@cache
def _fields_of(state_type: type) -> tuple[Field, ...]:
    fields = []
    for name, hint in get_type_hints(state_type, include_extras=True).items():
        kind, marks = (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())
        options = [option for option in get_args(kind) if option is not type(None)]
        is_optional = len(options) == 1 and type(None) in get_args(kind)
        fields.append(Field(name, options[0] if is_optional else kind, marks, is_optional))
    return tuple(fields)


def longer(size: int, wanted: int) -> IntArray:
    """Return the source of an axis that gets new entries behind the others."""
    source = np.arange(wanted)
    source[size:] = -1
    return source


@dataclass(frozen=True)
class Moves:
    """Where the entries of axes come from.

    Parameters
    ----------
    sources : dict
        By axis: for each entry afterwards, which one it was before; -1 for a new one. None is left out.
    kinds : FeatureKinds or None, default=None
        The kinds of the features afterwards; None where features stay.
    names : dict, default={}
        What axes that a state calls otherwise stand for.

    Examples
    --------
    >>> Moves({"l": np.array([1, 0])}, names={"t": "l"}).source("t+1", 3)
    array([1, 0, 2])
    """

    sources: Mapping[str, IntArray]
    kinds: FeatureKinds | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def source(self, axis: str, size: int) -> IntArray | None:
        """Return where the entries of an axis come from, which had a size; None where they stay."""
        parts = self._meaning(axis).split("+")
        if not any(part in self.sources for part in parts):
            return None
        sizes = [self._size(part) for part in parts]
        rest = size - sum(known for known in sizes if known is not None)
        moved, start = [], 0
        for part, known in zip(parts, sizes, strict=True):
            length = rest if known is None else known
            source = self.sources.get(part, np.arange(length))
            moved.append(np.where(source < 0, -1, source + start))
            start += length
        return np.concatenate(moved) if len(moved) > 1 else moved[0]

    def _size(self, part: str) -> int | None:
        if part in self.sources:
            # Nothing is ever left out.
            return int(self.sources[part].max(initial=-1)) + 1
        return int(part) if part.isdigit() else None

    def _meaning(self, axis: str) -> str:
        return "+".join(self.names.get(part, part) for part in axis.split("+"))

    def inside(self, marks: tuple[Any, ...]) -> Moves:
        """Return the moves as a part names them whose field has these marks."""
        names, sources, kinds = dict(self.names), self.sources, self.kinds
        for mark in filter(lambda mark: isinstance(mark, str), marks):
            if mark.startswith("own ") and mark.split()[1] != "m":
                # A state of other features and labels.
                sources, kinds, names = {}, None, {}
            elif "=" in mark or "~" in mark:
                name, _, meaning = mark.replace("~", "=").partition("=")
                if "~" in mark and name in names:
                    continue
                names[name] = self._meaning(meaning)
                known = {part for part in names[name].split("+") if part in self.sources}
                sources = {**sources, **{part: self.sources[part] for part in known}}
        return Moves(sources, kinds, names)


def kinds_of(state: Any) -> FeatureKinds | None:
    """Return the kinds of features that a state knows; None if it does not know any."""
    for each, value in zip(fields_of(state), state, strict=True):
        if isinstance(value, FeatureKinds):
            return value
        if hasattr(value, "_fields") and each.mark("own ") in (None, "m"):
            found = kinds_of(value)
            if found is not None:
                return found
    return None


def to_grow(state: Any, old: FeatureKinds, new: FeatureKinds, **sizes: tuple[int, int]) -> Moves:
    """Return the moves of a state to further features, and of axes from one size to another.

    Of the known features the state may know more values by now.
    """
    sources = {axis: longer(before, after) for axis, (before, after) in sizes.items() if after > before}
    if len(new) <= len(old):
        return Moves(sources)
    known = kinds_of(state) or old
    after = known.extended(new)
    return Moves({**sources, **known.moves(after)}, after)


def to_reorder(state: Any, features: IntArray, **sources: IntArray | None) -> Moves:
    """Return the moves of a state to another order of features, ``features[0]`` first, and of axes."""
    known = kinds_of(state)
    moved = {axis: source for axis, source in sources.items() if source is not None}
    if known is None:
        return Moves({**moved, "m": features})
    after = FeatureKinds(known.n_values[features])
    return Moves({**moved, **known.moves(after, features)}, after)


def is_declared(state_type: Any, *parts: str) -> bool:
    """Return whether the annotations of a state say what its fields are, but for the parts named."""
    for each in fields_of(state_type):
        kind = get_args(each.kind)[0] if get_origin(each.kind) is tuple else each.kind
        is_known = each.name in parts or kind in (float, FeatureKinds) or each.axes is not None
        if not is_known and not (hasattr(kind, "_fields") and is_declared(kind)):
            return False
    return True


# --- Moving -----------------------------------------------------------------------------------------------------------


def take(state: Any, moves: Moves, **parts: Callable[[Any, Moves], Any]) -> Any:
    """Move the entries of a state's axes: in another order, or with new ones.

    ``parts`` are functions for fields that need more; they are given the moves as the part names them.
    """
    return _take(state, moves, parts, 0)


def _take(state: Any, moves: Moves, parts: Mapping[str, Callable[[Any, Moves], Any]], n_stacked: int) -> Any:
    values = []
    for each, value in zip(fields_of(state), state, strict=True):
        if each.name in parts:
            values.append(parts[each.name](value, moves.inside(each.marks)))
        elif hasattr(value, "_fields"):
            is_stacked = each.mark("stacked ") is not None
            values.append(_take(value, moves.inside(each.marks), {}, n_stacked + is_stacked))
        elif isinstance(value, tuple):
            inside = moves.inside(each.marks)
            are_states = bool(value) and hasattr(value[0], "_fields")
            values.append(tuple(_take(part, inside, {}, n_stacked) for part in value) if are_states else value)
        elif isinstance(value, FeatureKinds):
            values.append(value if moves.kinds is None else moves.kinds)
        elif each.axes is not None and value is not None:
            values.append(_take_array(value, each, moves, n_stacked))
        else:
            values.append(_counted(value, each, moves))
    return type(state)(*values)


def _counted(value: Any, each: Field, moves: Moves) -> Any:
    """Return a number, which may be the size of an axis."""
    axis = each.mark("=")
    source = None if axis is None or value is None else moves.source(axis, int(value))
    return value if source is None else float(len(source))


def _take_array(array: Any, each: Field, moves: Moves, n_stacked: int) -> Any:
    shape, fill = array.shape[n_stacked:], float(each.mark("new ") or 0.0)
    first, *others = (option.split() for option in (each.axes or "").split("|"))
    # Where something may be missing, the size of 0 says that it is.
    missing = [option for option in others if all(axis != "0" or not shape[i] for i, axis in enumerate(option))]
    axes = missing[0] if missing else first
    for number, axis in enumerate(axes):
        source = moves.source(axis.removeprefix("<="), shape[number])
        if source is not None:
            array = moved(array, source, n_stacked + number, fill, is_short=axis.startswith("<="))
    for mark in each.marks[1:]:
        indexed = re.fullmatch(r"(?:-1)?<(\w+)", mark) if isinstance(mark, str) else None
        if indexed is not None:
            array = _renumbered(array, moves.source(indexed[1], 0))
    return array


def moved(array: Any, source: IntArray, axis: int = 0, fill: float = 0.0, *, is_short: bool = False) -> Any:
    """Take entries of an array along an axis, -1 for new ones; a short array lacks the last ones, which are new."""
    size = array.shape[axis]
    if len(source) >= size and (source[:size] == np.arange(size)).all() and (source[size:] < 0).all():
        return array if is_short or len(source) == size else _padded(array, len(source), axis, fill)
    if is_short:
        array = _padded(array, int(source.max()) + 1, axis, fill)
    if not isinstance(array, np.ndarray):
        return type(array).taking(moved(np.asarray(array), source, axis, fill))
    result = np.take(array, source, axis=axis)
    result[(slice(None),) * axis + (source < 0,)] = fill
    return result


def _padded(array: Any, size: int, axis: int, fill: float) -> Any:
    if not isinstance(array, np.ndarray) and axis == 0:
        return array.grown(size)
    known, before = np.asarray(array), (slice(None),) * axis
    # By hand, as models grow in most batches of texts, and np.pad takes longer than the rest.
    padded = np.full((*known.shape[:axis], size, *known.shape[axis + 1 :]), fill, dtype=known.dtype)
    padded[(*before, slice(known.shape[axis]))] = known
    return padded if isinstance(array, np.ndarray) else type(array).taking(padded)


def _renumbered(entries: Array, source: IntArray | None) -> Array:
    """Let entries that stand for those of an axis follow where these move; -1 stands for none."""
    if source is None or not len(entries):
        return entries
    known = source >= 0
    target = np.full(int(source.max(initial=-1)) + 2, -1)
    target[source[known]] = np.flatnonzero(known)
    return target[entries].astype(entries.dtype, copy=False)


# --- Sums -------------------------------------------------------------------------------------------------------------


def zeros(state_type: Any, **sizes: int) -> Any:
    """Make a state of zeros, of fields whose axes have these sizes.

    Examples
    --------
    >>> class Counts(NamedTuple):
    ...     rows: Annotated[float, SUM]
    ...     counts: Annotated[Array, "l", SUM]
    >>> zeros(Counts, l=2)
    Counts(rows=0.0, counts=array([0., 0.]))
    """

    def zero(each: Field) -> Any:
        if each.kind is float:
            return 0.0
        if each.axes is None or not sizes.keys() >= set(each.axes.split()):
            raise TypeError(f"{state_type.__name__}.{each.name} is no array of {', '.join(sizes)}: define init.")
        return np.zeros([sizes[axis] for axis in each.axes.split()])

    return state_type(*map(zero, fields_of(state_type)))


def empty(state: Any, **parts: Callable[[Any], Any]) -> Any:
    """Make the state of a model that has learned nothing: sums are zero, or none if they may be; all else stays."""

    def emptied(each: Field, value: Any) -> Any:
        if each.name in parts:
            return parts[each.name](value)
        if hasattr(value, "_fields"):
            return empty(value)
        if SUM not in each.marks or value is None:
            return value
        return None if each.is_optional else 0.0 if isinstance(value, float) else np.zeros_like(value)

    return type(state)(*map(emptied, fields_of(state), state))


def add(one: Any, other: Any, **parts: Callable[[Any, Any], Any]) -> Any:
    """Add the sums of two states of the same axes; what is not a sum is that of the first."""

    def added(each: Field, a: Any, b: Any) -> Any:
        if each.name in parts:
            return parts[each.name](a, b)
        if hasattr(a, "_fields"):
            return add(a, b)
        if SUM not in each.marks:
            return a
        return b if a is None else a if b is None else a + b

    return type(one)(*map(added, fields_of(one), one, other))


def adds(state_type: Any, *parts: str) -> bool:
    """Return whether states can be merged by adding: whether all is a sum or the same, but for the parts named."""
    for each in fields_of(state_type):
        is_known = each.name in parts or each.kind is FeatureKinds or SUM in each.marks or SAME in each.marks
        if not is_known and not (hasattr(each.kind, "_fields") and adds(each.kind)):
            return False
    return True


def differing(one: Any, other: Any, *parts: str) -> str | None:
    """Return the name of a field that must be the same in two states and is not, other than the parts named."""
    for each, a, b in zip(fields_of(one), one, other, strict=True):
        # Sums may have been added up in another order.
        if SAME in each.marks and not (np.shape(a) == np.shape(b) and np.allclose(a, b, 1e-9, 1e-12)):
            return each.name
        if hasattr(a, "_fields") and each.name not in parts and (found := differing(a, b)):
            return found
    return None


def functions(parts: Mapping[str, Any], name: str) -> dict[str, Callable[..., Any]]:
    """Return what parts have by a name, such as ``take``; those that do not have it need nothing special."""
    return {field: getattr(part, name) for field, part in parts.items() if hasattr(part, name)}
