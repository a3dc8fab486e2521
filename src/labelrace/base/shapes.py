"""What the arrays of a state must look like, as the annotations of its NamedTuples declare.

A model file may come from a stranger, and native code trusts the arrays that it is given. So every field of a state
says what it holds, and `Shapes` compares all of them before any is used:

====================================================== ===============================================================
``A: Annotated[FloatArray, "l k"]``                    axes; a name stands for one size in the whole state
``rows: Annotated[FloatArray, "k+1"]``                 the sum of names and numbers; at most one is not known before
``weights: Annotated[FloatArray, "l k|0 0"]``          one of several shapes: the first that fits
``stored: Annotated[FloatArray, "_n <=m"]``            a size of at most that of ``m``
``table: Annotated[FloatArray, "l @k+1"]``             a setting of the algorithm, or of its bank; ``"@k(l)"`` a method
                                                       for the size of ``l``
``labels: Annotated[IntArray, "_n", "<l"]``            entries are at least 0 and below the size of ``l``
``leader: Annotated[IntArray, "_n", "-1<l"]``          the same, or -1
``data: Annotated[FloatArray, "_n", "<=_top"]``        entries are from 0 to the size of ``_top``, if something gives it
``n_labels: Annotated[float, "=l"]``                   entries are the size of ``l``
``indptr: Annotated[IntArray, "_n+1", "starts _z"]``   entries never fall, from 0 to the size of ``_z``
``ends: Annotated[IntArray, "_n", "ends _z"]``         entries never fall, from 0 or more to the size of ``_z``
``labels: Annotated[IntArray, "_z", "sets ends"]``     entries up to each of the neighbour ``ends`` are different
``scale: Annotated[float, ">0"]``                      entries are above 0; ``">=0"``: 0 or more, ``">=1"``: 1 or more
``bounds: Annotated[FloatArray, "k", "inf"]``          infinite entries are allowed; ``"nan"`` allows for NaN, too,
                                                       and ``"missing"`` for both where the algorithm skips NaN in ``X``
``weights: Annotated[Array, "m k", "float"]``          floats of single or double precision
``orders: Annotated[IntArray, "_e l", "orders"]``      each row is an order of the numbers from 0
``ranks: Annotated[IntArray, "M t", "ranks"]``         for the values of each nominal feature, an order of them
``n_values: Annotated[IntArray, "m", "values"]``       numbers of values of the features, which give further sizes
``child: Annotated[IntArray, "_n", "tree L"]``         with its neighbours ``kind``, ``feature``, ``threshold`` and
                                                       ``roots``: the nodes of trees with ``L`` leaves
``indptr: Annotated[…, "instead dense"]``              there, in its first shape, where ``dense`` is not; ``"with …"``
                                                       where it is. A number is there if it is not 0.
``learners: Annotated[Any, "t=k"]``                    in what follows, ``t`` is the size of ``k``; with ``"t~k"``, if
                                                       ``t`` is not known so far
``inner: Annotated[tuple[State, ...], "o|l"]``         either one part, and ``o`` is 0; or none, and ``o`` is ``l``
``trees: Annotated[tuple[Tree, ...], "each L", …]``    as many parts as the size of ``L``, to which further marks apply
``layers: Annotated[tuple[Layer, ...], "chain l k"]``  the ``_o`` of each is the ``_i`` of the next, from ``l`` to ``k``
``sums: Annotated[Array, "l k", "float", "table"]``    becomes a `VersionedRows`, without a copy
``stacks: Annotated[State, "stacked L"]``              several states in one: all but ``n_values`` have an axis before
``learners: Annotated[Any, "own h"]``                  a state with names of its own, and ``h`` numeric features;
                                                       ``"own m"`` is one with the same features; in ``"own m C"``
                                                       what it calls ``l`` is the size of ``C``
====================================================== ===============================================================

``l`` labels and ``m`` features are known from the start. Of ``n_values`` follow ``d`` numeric features, ``j`` nominal
ones, ``i`` indicators of their values and ``M = d + i`` columns of the design. A name that begins with an underscore
belongs to one NamedTuple. Banks call their targets ``t``. All numbers are finite, and none is above 1e250, unless a
field says otherwise.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from labelrace.base.schema import Schema
from labelrace.learners import design as columns
from labelrace.linear.versioned import VersionedRows
from labelrace.related.trees import tree
from labelrace.typing import Array, IntArray

# Larger numbers leave no room for what is derived from them; sums of squares of features are far below.
_LARGEST = 1e250
# What every model has at least one of: pseudo labels and codes, hidden units, leaves, trees, chunks, slots of a table.
_NEEDED = ("k", "c", "h", "L", "T", "K", "slots")


class _Entry(NamedTuple):
    """An array whose entries are to be compared, and whether it has the first of its shapes."""

    path: str
    name: str
    array: Any
    marks: tuple[str, ...]
    is_there: bool


class Shapes:
    """The sizes that names stand for, and the arrays that must fit them.

    Parameters
    ----------
    schema : Schema
        What the file says of labels and features.
    settings : object, default=None
        Whose attributes are the sizes that begin with ``@``.

    Examples
    --------
    >>> import numpy as np
    >>> shapes = Shapes(Schema(np.array([0, 0]), None, 3, None))
    >>> shapes.add("state", "A", np.zeros((3, 2)), "l k")
    >>> shapes.add("state", "bias", np.zeros(4), "k")
    Traceback (most recent call last):
    ...
    ValueError: state.bias has the shape (4,), not k, where k is 2
    """

    def __init__(self, schema: Schema, settings: Any = None) -> None:
        self._n_values = self._grown = schema.n_values
        self._sizes = {"l": schema.n_labels, "m": schema.n_features}
        self._same: dict[str, str] = {}
        self._settings = settings
        self._entries: dict[str, _Entry] = {}
        self._bounds: list[tuple[str, int, str]] = []

    # --- Sizes --------------------------------------------------------------------------------------------------------

    def add(self, path: str, name: str, array: Array, axes: str, *marks: str) -> None:
        """Compare the shape of an array, found at a path, and keep its entries for `check`."""
        place, options = f"{path}.{name}", axes.split("|")
        for number, option in enumerate(options):
            if self._fits(path, array.shape, option.split()):
                self._entries[place] = _Entry(path, name, array, marks, number == 0)
                if "values" in marks:
                    self._add_values(place, array)
                return
        names = [known for known in re.findall(r"[^\W\d]\w*", axes) if self._find(path, known) in self._sizes]
        sizes = " and ".join(f"{known} is {self._sizes[self._find(path, known)]}" for known in dict.fromkeys(names))
        raise ValueError(f"{place} has the shape {array.shape}, not {axes}{f', where {sizes}' if sizes else ''}")

    def add_missing(self, path: str, name: str) -> None:
        """Note an array that may be missing and is."""
        self._entries[f"{path}.{name}"] = _Entry(path, name, np.zeros(0), (), is_there=False)

    def own(self, path: str, name: str, labels: str = "l") -> Shapes:
        """Make the shapes of a state with names of its own, with as many numeric features and labels as names say."""
        n_values = self._n_values if name == "m" else np.zeros(self.size(path, name), dtype=np.intp)
        return Shapes(Schema(n_values, None, self.size(path, labels), None), self._settings)

    def equate(self, path: str, mark: str) -> None:
        """Let a name, which may belong to the NamedTuple at the path, stand for the size of another."""
        name, is_default, known = re.fullmatch(r"(\w+)([=~])(.+)", mark).groups()  # type: ignore[union-attr]
        if is_default == "~" and (name in self._sizes or name in self._same):
            return
        if known.isidentifier():
            self._same[self._own(path, name)] = known
        else:
            self._sizes[self._own(path, name)] = self.size(path, known)

    def choose(self, place: str, mark: str, n_parts: int) -> None:
        """Refuse a tuple that is not in the place of what a size stands for, and that in its place."""
        name, whole = mark.split("|")
        if n_parts not in (0, 1) or self._sizes[name] != (0 if n_parts else self._sizes[whole]):
            raise ValueError(f"{place} has {n_parts} parts, but {name} is {self._sizes[name]}")

    def _own(self, path: str, name: str) -> str:
        return f"{path}.{name}" if name.startswith("_") else name

    def _find(self, path: str, name: str) -> str:
        """Return what a name of an axis stands for: a name of one NamedTuple or of all."""
        known = self._own(path, name)
        while known in self._same:
            known = self._same[known]
        return known

    def _fits(self, path: str, shape: tuple[int, ...], axes: list[str]) -> bool:
        """Tell whether a shape fits; the names that were not known before are known then."""
        if len(axes) != len(shape):
            return False
        found: dict[str, int] = {}
        bounds = []
        for axis, size in zip(axes, shape, strict=True):
            if axis.startswith("<="):
                bounds.append((path, size, axis[2:]))
                continue
            known, unknown = self._sum(path, axis, found)
            if unknown is not None and size >= known:
                found[unknown] = size - known
            elif unknown is not None or size != known:
                return False
        self._sizes |= found
        self._bounds += bounds
        return True

    def _sum(self, path: str, axis: str, found: dict[str, int]) -> tuple[int, str | None]:
        """Add up the parts of an axis; return the one that is not known, too."""
        total, unknown = 0, None
        for part in axis.split("+"):
            if part.isdigit():
                total += int(part)
            elif part.startswith("@"):
                total += self._setting(path, part)
            else:
                known = self._find(path, part)
                if known in self._sizes or known in found:
                    total += found.get(known, self._sizes.get(known, 0))
                else:
                    assert unknown is None, axis
                    unknown = known
        return total, unknown

    def _setting(self, path: str, part: str) -> int:
        """Ask the algorithm, or the bank of its learners, for a size, which may depend on another."""
        name, known = re.fullmatch(r"@(\w+)(?:\((\w+)\))?", part).groups()  # type: ignore[union-attr]
        asked = self._settings if hasattr(self._settings, name) else self._settings.bank
        found = getattr(asked, name)
        return int(found if known is None else found(self.size(path, known)))

    def size(self, path: str, axis: str) -> int:
        """Return the size of an axis at a path; what is not known counts nothing."""
        return self._sum(path, axis, {})[0]

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

    # --- Entries ------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Compare the entries of all arrays, now that all sizes are known."""
        none = [name for name in _NEEDED if self._sizes.get(name) == 0]
        if none:
            raise ValueError(f"{none[0]} is 0")
        for path, size, axis in self._bounds:
            if size > self.size(path, axis):
                raise ValueError(f"{path} has an array of {size} columns, but {axis} is {self.size(path, axis)}")
        for place, entry in self._entries.items():
            if isinstance(entry.array, VersionedRows):
                continue  # filled on demand, by what its maker has checked
            reason = self._why_wrong(entry)
            if reason:
                raise ValueError(f"{place} {reason}")

    def _why_wrong(self, entry: _Entry) -> str | None:
        array, marks = entry.array, entry.marks
        if "missing" in marks and self._settings.skips_missing:
            marks = (*marks, "nan")
        if array.dtype.kind == "f" and not _are_small(array, marks):
            return "holds numbers that are not finite, or too large"
        for mark in marks:
            word, _, rest = mark.partition(" ")
            if word in ("with", "instead"):
                other = self._is_there(f"{entry.path}.{rest}")
                if self._is_there(f"{entry.path}.{entry.name}") != (other if word == "with" else not other):
                    return f"does not fit {entry.path}.{rest}"
            elif word == "sets":
                sizes = np.diff(self._entries[f"{entry.path}.{rest}"].array, prepend=0)
                owners = np.repeat(np.arange(len(sizes)), sizes)
                if len(np.unique(np.column_stack([owners, array]), axis=0)) < len(array):
                    return "has the same twice in a set"
            elif word == "tree":
                near = {name: self._entries[f"{entry.path}.{name}"].array for name in tree.TreeArrays._fields}
                reason = _why_no_trees(tree.TreeArrays(**near), self._sizes["m"], self.size(entry.path, rest))
                if reason:
                    return reason
            elif entry.is_there:
                reason = self._why_entries_wrong(entry.path, array, mark)
                if reason:
                    return reason
        return None

    def _is_there(self, place: str) -> bool:
        entry = self._entries[place]
        return bool(entry.array) if entry.array.ndim == 0 else entry.is_there

    def _why_entries_wrong(self, path: str, array: Array, mark: str) -> str | None:
        """Compare entries with one mark."""
        word, _, rest = mark.partition(" ")
        if mark == "float" and array.dtype not in (np.float32, np.float64):
            return "does not hold floats"
        if mark == ">0" and not (array > 0).all():
            return "holds numbers that are not above 0"
        if mark in (">=0", ">=1") and (array < float(mark[2:])).any():
            return f"holds numbers below {mark[2:]}"
        if mark == "orders" and (not array.size or (np.sort(array, axis=-1) != np.arange(array.shape[-1])).any()):
            return "holds rows that are no orders"
        if mark == "ranks" and not _are_ranks(array, self._grown):
            return "holds what cannot be the ranks of values"
        if mark.startswith("=") and (array != self.size(path, mark[1:])).any():
            return f"is not {self.size(path, mark[1:])}"
        if mark.startswith("<="):
            top = self._sizes.get(self._find(path, mark[2:]))
            return None if top is None or ((array >= 0) & (array <= top)).all() else f"is not from 0 to {top}"
        if mark.startswith(("<", "-1<")):
            least, most = (-1 if mark.startswith("-") else 0), self.size(path, mark.split("<")[1])
            if array.size and not least <= array.min() <= array.max() < most:
                return f"holds numbers that are not from {least} to below {most}"
        if word in ("starts", "ends"):
            end, rises = self.size(path, rest), not (np.diff(array) < 0).any()
            if len(array) == 0:
                return f"does not rise to {end}" if word == "starts" or end else None
            if not rises or array[-1] != end or (array[0] != 0 if word == "starts" else array[0] < 0):
                return f"does not rise to {end}"
        return None


def _are_small(array: Array, marks: Any) -> bool:
    """Tell whether entries are finite, or what marks allow, and such that sums of their squares are finite, too."""
    largest = _LARGEST if array.dtype == np.float64 else np.finfo(array.dtype).max
    if "inf" not in marks and "nan" not in marks:
        # Without an array of the same size, which the check of a large model would need beside it.
        return not array.size or bool(-largest <= array.min() and array.max() <= largest)
    allowed = np.abs(array) <= largest
    allowed |= np.isinf(array) | (np.isnan(array) & ("nan" in marks))
    return bool(allowed.all())


def _are_ranks(ranks: IntArray, n_values: IntArray) -> bool:
    """Tell whether the ranks of each feature's indicators, with that left over for its first value, are an order."""
    for _, places in columns.value_groups(n_values):
        n_indicators = places.shape[1]
        total = np.array((n_indicators + 1) * n_indicators // 2)
        of_values = np.sort(columns.with_first(ranks[places], total), axis=1)
        if (of_values != np.arange(n_indicators + 1)[:, None]).any():
            return False
    return bool((ranks >= 0).all())


def _why_no_trees(shape: tree.TreeArrays, n_features: int, n_leaves: int) -> str | None:
    """Return why nodes are not those of trees; None if every way down ends at one of the leaves."""
    kind, n_nodes = shape.kind, len(shape.kind)
    is_leaf, counts = kind == tree.LEAF, np.where(kind == tree.EACH_VALUE, shape.threshold, 2.0)
    if not np.isin(kind, [tree.LEAF, tree.AT_MOST, tree.EACH_VALUE, tree.ONE_VALUE]).all():
        return "has nodes of a kind that there is not"
    if not ((shape.roots >= 0) & (shape.roots < n_nodes)).all():
        return "has roots that are no nodes"
    leaf, inner = shape.child[is_leaf], np.flatnonzero(~is_leaf)
    if not ((leaf >= 0) & (leaf < n_leaves)).all():
        return "has leaves that there are not"
    asked = shape.feature[inner]
    if not ((asked >= 0) & (asked < n_features)).all():
        return "asks about features that there are not"
    # Children come after their parents, so that no way leads back.
    if not (
        (shape.child[inner] > inner) & (counts[inner] >= 1) & (shape.child[inner] + counts[inner] <= n_nodes)
    ).all():
        return "has children that are no nodes, or that come before their parents"
    return None
