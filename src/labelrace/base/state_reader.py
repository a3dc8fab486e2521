"""Makes a state of the arrays of a model file, and refuses arrays that are not those of the state.

A model file may come from a stranger, and native code trusts the arrays that it is given. So a field of a state says
what its array looks like (`labelrace.base.growth` moves states by the same annotations), and `StateReader` compares all
arrays before any is used. It checks what memory safety needs, and no more: how many axes there are and how long each
is, the type of the entries, and that indices are within bounds. Other numbers may be any: they can make predictions
wrong, but no code leave its arrays.

====================================================== ===============================================================
``A: Annotated[FloatArray, "l k"]``                    axes; a name stands for one size in the whole state
``rows: Annotated[FloatArray, "k+1"]``                 the sum of names and numbers; at most one is not known before
``weights: Annotated[FloatArray, "l k|0 0"]``          one of several shapes: the first that fits
``stored: Annotated[FloatArray, "_n <=m"]``            a size of at most that of ``m``
``table: Annotated[FloatArray, "l @k+1"]``             a setting of the algorithm, or of its bank; ``"@k(l)"`` a method
                                                       for the size of ``l``
``weights: Annotated[Array, "m k", "float"]``          floats of single or double precision
``sums: Annotated[Array, "l k", Rows]``                becomes a ``Rows`` by ``Rows.taking``, without a copy
``labels: Annotated[IntArray, "_n", "<l"]``            entries are at least 0 and below the size of ``l``
``leader: Annotated[IntArray, "_n", "-1<l"]``          the same, or -1
``n_labels: Annotated[float, "=l"]``                   the size of ``l``
``indptr: Annotated[IntArray, "_n+1", "starts _z"]``   entries never fall, from 0 to the size of ``_z``
``ends: Annotated[IntArray, "_n", "ends _z"]``         entries never fall, from 0 or more to the size of ``_z``
``n_values: Annotated[IntArray, "m", "values"]``       numbers of values of the features, as a `FeatureKinds` has them
``learners: Annotated[Any, "t=k"]``                    in the state below, ``t`` is the size of ``k``; with ``"t~k"``,
                                                       if ``t`` is not known so far
``stacks: Annotated[State, "stacked L"]``              several states in one: all but ``n_values`` have an axis before
``learners: Annotated[Any, "own h"]``                  a state with names of its own, and ``h`` numeric features;
                                                       ``"own m"`` is one with the same features; in ``"own m C"``
                                                       what it calls ``l`` is the size of ``C``
``trees: Annotated[tuple[State, ...], …]``             any number of states, to each of which the marks apply
====================================================== ===============================================================

``l`` labels and ``m`` features are known from the start. The kinds of the features give ``d`` numeric ones, ``j``
nominal ones, ``i`` indicators of their values and ``M = d + i`` columns of the design. A name that begins with an
underscore belongs to one NamedTuple. Banks call their targets ``t``. A check that one NamedTuple alone needs is its
method ``why_malformed``: it is given a function from axes to their sizes, and returns a reason or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_args, get_origin

import numpy as np

from labelrace.base import limits
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import SAME, SUM, Field, fields_of
from labelrace.base.model_file import has_parts
from labelrace.typing import Array, IntArray

# Marks of arrays that say nothing of single entries.
_OTHER = re.compile(f"float|values|new |{SUM}|{SAME}")


class StateReader:
    """Makes a state of its arrays.

    Parameters
    ----------
    tensors : dict
        The arrays by their paths, such as ``state.decoder.gram``.
    absent, parts : set and dict
        Paths of what the state does not have, and numbers of parts, as the header tells.

    Examples
    --------
    >>> from typing import Annotated, NamedTuple
    >>> fields = [("A", Annotated[Array, "l k", "float"]), ("bias", Annotated[Array, "k", "float"])]
    >>> State = NamedTuple("State", fields)
    >>> tensors = {"state.A": np.zeros((3, 2)), "state.bias": np.zeros(4)}
    >>> StateReader(tensors, set(), {}).read(State, Sizes(FeatureKinds.numbers(5), 3))
    Traceback (most recent call last):
    ...
    ValueError: state.bias has the shape (4,), not k, where k is 2
    """

    def __init__(self, tensors: Mapping[str, Array], absent: set[str], parts: Mapping[str, int]) -> None:
        self._tensors = {path: tensor for path, tensor in tensors.items() if path.startswith("state.")}
        self._absent = absent
        self._parts = parts
        # What can be compared only when all sizes are known.
        self._checks: list[tuple[str, Callable[[], str | None]]] = []

    def read(self, kind: Any, sizes: Sizes, field_types: Mapping[str, Any] | None = None) -> Any:
        """Make a state; ``field_types`` are the types of fields whose annotation leaves them open."""
        state = self._state(kind, "state", sizes, field_types)
        if self._tensors:
            raise ValueError(f"{min(self._tensors)} belongs to no part of the model")
        for path, why_wrong in self._checks:
            reason = why_wrong()
            if reason:
                raise ValueError(f"{path} {reason}")
        return state

    def _state(
        self, kind: Any, path: str, sizes: Sizes, field_types: Mapping[str, Any] | None = None, stack: str = ""
    ) -> Any:
        """Make a NamedTuple; ``stack`` is an axis before those that its fields declare."""
        values = []
        for field in fields_of(kind):
            known = field._replace(kind=(field_types or {}).get(field.name, field.kind))
            values.append(self._field(known, path, sizes, stack))
        state = kind(*values)
        if hasattr(state, "why_malformed"):
            self._checks.append((path, lambda: _prefixed("has ", state.why_malformed(partial(sizes.size, path)))))
        return state

    def _field(self, field: Field, path: str, sizes: Sizes, stack: str) -> Any:
        own_path = f"{path}.{field.name}"
        if hasattr(field.kind, "_fields"):
            return self._part(field.kind, field.marks, own_path, path, sizes, stack)
        if get_origin(field.kind) is tuple:
            several = (f"{own_path}.{number}" for number in range(self._parts[own_path]))
            return tuple(self._part(get_args(field.kind)[0], field.marks, each, path, sizes, stack) for each in several)
        if field.is_optional and own_path in self._absent:
            return None
        if own_path not in self._tensors:
            raise ValueError(f"{own_path} is missing")
        array = self._tensors.pop(own_path)
        if field.kind is FeatureKinds:
            self._check_array(field._replace(kind=IntArray, marks=("m", "values")), array, path, sizes, "")
            return FeatureKinds(array)
        self._check_array(field, array, path, sizes, "" if "values" in field.marks else stack)
        for holder in field.marks:
            if isinstance(holder, type):
                return holder.taking(array)  # type: ignore[attr-defined]
        return float(array) if field.kind is float else array

    def _part(self, kind: Any, marks: tuple[Any, ...], path: str, parent: str, sizes: Sizes, stack: str) -> Any:
        """Make a state that is part of another, whose field has marks."""
        for mark in marks:
            if mark.startswith("stacked "):
                stack = mark.split()[1]
            elif mark.startswith("own "):
                sizes = sizes.own(parent, *mark.split()[1:])
            elif re.fullmatch(r"\w+[=~].+", mark):
                sizes.equate(path, mark)
            elif mark not in (SUM, SAME):
                raise TypeError(f"{path} has the mark {mark!r}, which means nothing")
        return self._state(kind, path, sizes, stack=stack)

    def _check_array(self, field: Field, array: Array, path: str, sizes: Sizes, stack: str) -> None:
        """Compare the type and the shape of an array now, and its entries later."""
        own_path = f"{path}.{field.name}"
        _check_type(field, array, own_path)
        axes, *marks = ("", *field.marks) if field.kind is float else field.marks
        options = [f"{stack} {option}".split() for option in axes.split("|")]
        fitting = next((number for number, option in enumerate(options) if sizes.fit(path, array.shape, option)), None)
        if fitting is None:
            raise ValueError(f"{own_path} has the shape {array.shape}, not {axes}{sizes.known(path, axes)}")
        for axis, size in zip(options[fitting], array.shape, strict=True):
            if axis.startswith("<="):
                self._checks.append((own_path, partial(_why_too_long, size, sizes, path, axis[2:])))
        if "values" in marks:
            sizes.take_values(own_path, array)
        # Entries of an array in another shape than its first are none. A table that is filled on demand has no indices.
        if fitting == 0 and not has_parts(array):
            for mark in marks:
                if isinstance(mark, str) and not _OTHER.match(mark):
                    self._checks.append((own_path, partial(_why_wrong, array, mark, partial(sizes.size, path))))


class Sizes:
    """What the names of axes stand for.

    Parameters
    ----------
    kinds : FeatureKinds
        The kinds of the features.
    n_labels : int
        The number of labels.
    settings : object, default=None
        Whose attributes are the sizes that begin with ``@``.
    """

    def __init__(self, kinds: FeatureKinds, n_labels: int, settings: Any = None) -> None:
        self._kinds = kinds
        self._settings = settings
        self._sizes = {"l": n_labels, "m": len(kinds)}
        self._meanings: dict[str, str] = {}

    def own(self, path: str, features: str, labels: str = "l") -> Sizes:
        """Make the sizes of a state with names of its own, with as many numeric features and labels as names say."""
        kinds = self._kinds if features == "m" else FeatureKinds.numbers(self.size(path, features))
        return Sizes(kinds, self.size(path, labels), self._settings)

    def equate(self, path: str, mark: str) -> None:
        """Let a name, which may belong to the NamedTuple at the path, stand for the size of another."""
        name, sign, meaning = re.fullmatch(r"(\w+)([=~])(.+)", mark).groups()  # type: ignore[union-attr]
        if sign == "~" and (name in self._sizes or name in self._meanings):
            return
        if meaning.isidentifier():
            self._meanings[_full_name(path, name)] = meaning
        else:
            self._sizes[_full_name(path, name)] = self.size(path, meaning)

    def fit(self, path: str, shape: tuple[int, ...], axes: list[str]) -> bool:
        """Return whether a shape fits axes; if so, names that were not known stand for its sizes from then on."""
        if len(axes) != len(shape):
            return False
        new: dict[str, int] = {}
        for axis, size in zip(axes, shape, strict=True):
            if axis.startswith("<="):
                continue
            total, unknown = self._sum(path, axis, new)
            if unknown is not None and size >= total:
                new[unknown] = size - total
            elif unknown is not None or size != total:
                return False
        self._sizes |= new
        return True

    def size(self, path: str, axis: str) -> int:
        """Return the size of an axis at a path; what is not known counts nothing."""
        return self._sum(path, axis, {})[0]

    def known(self, path: str, axes: str) -> str:
        """Say, for an error, what the names of axes stand for."""
        names = dict.fromkeys(re.findall(r"[^\W\d]\w*", axes))
        sizes = [f"{name} is {self.size(path, name)}" for name in names if self._meaning(path, name) in self._sizes]
        return ", where " + " and ".join(sizes) if sizes else ""

    def take_values(self, path: str, n_values: IntArray) -> None:
        """Derive sizes from the numbers of values, which may have grown since the schema was made."""
        known = self._kinds.n_values
        if (n_values < known).any() or ((n_values > 0) != (known > 0)).any():
            raise ValueError(f"{path} does not fit the model's features")
        limits.VALUES.check(int(n_values.max(initial=0)), path)
        kinds = FeatureKinds(n_values)
        sizes = {"d": kinds.n_numeric, "j": kinds.n_nominal, "i": kinds.n_indicators, "M": kinds.width}
        for name, size in sizes.items():
            if self._sizes.setdefault(name, size) != size:
                raise ValueError(f"{path} is not what other parts know of the features")

    def _sum(self, path: str, axis: str, new: Mapping[str, int]) -> tuple[int, str | None]:
        """Add up the parts of an axis; return the one that is not known, too."""
        total, unknown = 0, None
        for part in axis.split("+"):
            meaning = self._meaning(path, part)
            if part.isdigit():
                total += int(part)
            elif part.startswith("@"):
                total += self._setting(path, part)
            elif meaning in self._sizes or meaning in new:
                total += new.get(meaning, self._sizes.get(meaning, 0))
            else:
                assert unknown is None, axis
                unknown = meaning
        return total, unknown

    def _meaning(self, path: str, name: str) -> str:
        """Return what the name of an axis stands for: a name of one NamedTuple or of all."""
        meaning = _full_name(path, name)
        while meaning in self._meanings:
            meaning = self._meanings[meaning]
        return meaning

    def _setting(self, path: str, part: str) -> int:
        """Return a setting of the algorithm, or of the bank of its learners, which may depend on a size."""
        name, axis = re.fullmatch(r"@(\w+)(?:\((\w+)\))?", part).groups()  # type: ignore[union-attr]
        setting = getattr(self._settings if hasattr(self._settings, name) else self._settings.bank, name)
        return int(setting if axis is None else setting(self.size(path, axis)))


def _full_name(path: str, name: str) -> str:
    return f"{path}.{name}" if name.startswith("_") else name


def _prefixed(prefix: str, reason: str | None) -> str | None:
    return reason and prefix + reason


# --- What is wrong with an array --------------------------------------------------------------------------------------


def _check_type(field: Field, array: Array, path: str) -> None:
    """Compare the type of an array's entries."""
    scalar = float if field.kind is float else _scalar_type(field.kind)
    if scalar is Any:
        if "float" in field.marks and array.dtype not in (np.float32, np.float64):
            raise ValueError(f"{path} is of type {array.dtype}, which is no type of floats")
    elif array.dtype != np.dtype(scalar) and not array.dtype.kind == np.dtype(scalar).kind == "i":
        # SciPy chooses how wide the indices of a sparse matrix are.
        raise ValueError(f"{path} is of type {array.dtype}, not {np.dtype(scalar)}")


def _scalar_type(hint: Any) -> Any:
    """Return the type of an array's entries, whose annotation is ``NDArray[T]`` or what that stands for."""
    last = get_args(hint)[-1]
    return get_args(last)[0] if get_args(last) else last


def _why_too_long(size: int, sizes: Sizes, path: str, axis: str) -> str | None:
    most = sizes.size(path, axis)
    return f"has an axis of {size}, but {axis} is {most}" if size > most else None


def _why_wrong(array: Array, mark: str, size: Callable[[str], int]) -> str | None:
    """Return what is wrong with entries by a mark; None if nothing is."""
    word, _, axis = mark.partition(" ")
    if word in ("starts", "ends"):
        end = size(axis)
        # Not by differences, which can overflow.
        rises = not (array[1:] < array[:-1]).any()
        first, last = (array[0], array[-1]) if len(array) else (0, 0)
        is_right = rises and last == end and (first >= 0 if word == "ends" else len(array) and first == 0)
        return None if is_right else f"does not rise to {end}"
    if mark.startswith("="):
        return None if (array == size(mark[1:])).all() else f"is not {size(mark[1:])}"
    bound = re.fullmatch(r"(-1)?<([\w@+()]+)", mark)
    if bound is None:
        raise TypeError(f"has the mark {mark!r}, which means nothing")
    least, most = int(bound[1] or 0), size(bound[2])
    if array.size and not least <= array.min() <= array.max() < most:
        return f"holds numbers that are not from {least} to below {most}"
    return None
