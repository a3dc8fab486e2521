"""What the arrays of a state must look like, as the annotations of its NamedTuples declare.

A model file may come from a stranger, and native code trusts the arrays that it is given. So every field of a state
says what it holds, and `Shapes` compares all of them before any is used:

====================================================== ===============================================================
``A: Annotated[FloatArray, "l k"]``                    axes; a name stands for one size in the whole state
``rows: Annotated[FloatArray, "k+1"]``                 the size of a name and a number
``labels: Annotated[IntArray, "_n", "<l"]``            entries are at least 0 and below the size of ``l``
``indptr: Annotated[IntArray, "_n+1", "starts _z"]``   entries never fall, from 0 to the size of ``_z``
``scale: Annotated[float, ">0"]``                      entries are above 0; ``">=0"`` allows for 0
``bounds: Annotated[FloatArray, "k", "inf"]``          infinite entries are allowed; ``"nan"`` allows for NaN, too
``orders: Annotated[IntArray, "_e l", "orders"]``      each row is an order of the numbers from 0
``ranks: Annotated[IntArray, "M t", "ranks"]``         for the values of each nominal feature, an order of them
``n_values: Annotated[IntArray, "m", "values"]``       numbers of values of the features, which give further sizes
``learners: Annotated[Any, "t=k"]``                    in what follows, ``t`` is the size of ``k``
``sums: Annotated[Array, "table"]``                    a `Table`, made of the array without a copy; not compared
``stacks: Annotated[State, "stacked"]``                several states in one, with an axis before: not compared
====================================================== ===============================================================

``l`` labels and ``m`` features are known from the start. Of ``n_values`` follow ``d`` numeric features, ``j`` nominal
ones, ``i`` indicators of their values and ``M = d + i`` columns of the design. A name that begins with an underscore
belongs to one NamedTuple. Banks call their targets ``t``. All numbers are finite unless a field says otherwise.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from labelrace.core.schema import Schema
from labelrace.learners import columns
from labelrace.learners.table import Table
from labelrace.typing import Array, IntArray

__all__ = ["Shapes"]

_AXIS = re.compile(r"(\w+?)(?:\+(\d+))?")


class Shapes:
    """The sizes that names stand for, and the arrays that must fit them.

    Parameters
    ----------
    schema : Schema
        What the file says of labels and features.

    Examples
    --------
    >>> import numpy as np
    >>> shapes = Shapes(Schema(np.array([0, 0]), None, 3, None))
    >>> shapes.add("state", "A", np.zeros((3, 2)), "l k")
    >>> shapes.add("state", "bias", np.zeros(4), "k")
    Traceback (most recent call last):
    ...
    ValueError: state.bias has the shape (4,), but k is 2
    """

    def __init__(self, schema: Schema) -> None:
        self._n_values = self._grown = schema.n_values
        self._sizes = {"l": schema.n_labels, "m": schema.n_features}
        self._later: list[tuple[str, str, Any, tuple[str, ...]]] = []

    def add(self, path: str, name: str, array: Array, axes: str, *marks: str) -> None:
        """Compare the shape of an array, found at a path, and keep its entries for `check`."""
        place, names = f"{path}.{name}", axes.split()
        if len(names) != array.ndim:
            raise ValueError(f"{place} has {array.ndim} axes, not {len(names)}")
        for axis, size in zip(names, array.shape, strict=True):
            known, more = self._read(path, axis)
            expected = self._sizes.setdefault(known, size - more) + more
            if expected != size or size < more:
                raise ValueError(f"{place} has the shape {array.shape}, but {axis} is {expected}")
        if "values" in marks:
            self._add_values(place, array)
        self._later.append((path, name, array, marks))

    def equate(self, mark: str) -> None:
        """Let a name stand for the size of another."""
        name, _, known = mark.partition("=")
        self._sizes[name] = self._sizes[known]

    def check(self) -> None:
        """Compare the entries of all arrays, now that all sizes are known."""
        for path, name, array, marks in self._later:
            if isinstance(array, Table):
                continue  # filled on demand, by what its maker has checked
            reason = self._why_wrong(path, array, marks)
            if reason:
                raise ValueError(f"{path}.{name} {reason}")

    def _read(self, path: str, axis: str) -> tuple[str, int]:
        """Take an axis apart: its name, of one NamedTuple or of all, and what is added to its size."""
        match = _AXIS.fullmatch(axis)
        assert match is not None, axis
        name = match[1]
        return (f"{path}.{name}" if name.startswith("_") else name), int(match[2] or 0)

    def _add_values(self, place: str, n_values: IntArray) -> None:
        """Derive the sizes that follow from the numbers of values, which may have grown since the schema was made."""
        if (n_values < self._n_values).any() or ((n_values > 0) != (self._n_values > 0)).any():
            raise ValueError(f"{place} does not fit the model's features")
        is_nominal = n_values > 0
        width, n_numeric = columns.width(n_values), int((~is_nominal).sum())
        sizes = {"d": n_numeric, "j": int(is_nominal.sum()), "i": width - n_numeric, "M": width}
        self._grown = n_values
        for name, size in sizes.items():
            if self._sizes.setdefault(name, size) != size:
                raise ValueError(f"{place} is not what other parts know of the features")

    def _why_wrong(self, path: str, array: Array, marks: tuple[str, ...]) -> str | None:
        if array.dtype.kind == "f":
            allowed = np.isfinite(array)
            if "inf" in marks or "nan" in marks:
                allowed = ~np.isnan(array) | ("nan" in marks)
            if not allowed.all():
                return "holds numbers that are not finite"
        for mark in marks:
            if mark == ">0" and not (array > 0).all():
                return "holds numbers that are not above 0"
            if mark == ">=0" and (array < 0).any():
                return "holds numbers below 0"
            if mark == "orders" and (not array.size or (np.sort(array, axis=-1) != np.arange(array.shape[-1])).any()):
                return "holds rows that are no orders"
            if mark == "ranks" and not _are_ranks(array, self._grown):
                return "holds what cannot be the ranks of values"
            if mark.startswith("<"):
                known, more = self._read(path, mark[1:])
                if array.size and not 0 <= array.min() <= array.max() < self._sizes[known] + more:
                    return f"holds numbers that are not from 0 to below {self._sizes[known] + more}"
            if mark.startswith("starts "):
                end = self._sizes[self._read(path, mark.split()[1])[0]]
                if not len(array) or array[0] != 0 or array[-1] != end or (np.diff(array) < 0).any():
                    return f"does not rise from 0 to {end}"
        return None


def _are_ranks(ranks: IntArray, n_values: IntArray) -> bool:
    """Tell whether the ranks of each feature's indicators, with that left over for its first value, are an order."""
    for _, places in columns.value_groups(n_values):
        n_indicators = places.shape[1]
        total = np.array((n_indicators + 1) * n_indicators // 2)
        of_values = np.sort(columns.with_first(ranks[places], total), axis=1)
        if (of_values != np.arange(n_indicators + 1)[:, None]).any():
            return False
    return bool((ranks >= 0).all())
