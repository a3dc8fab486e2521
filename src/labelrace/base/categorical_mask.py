"""A mask over features that also knows how many values each nominal feature declares."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelrace.typing import IntArray


class CategoricalMask(np.ndarray[Any, np.dtype[np.bool_]]):
    """Boolean mask of the nominal features, with the number of values each of them declares.

    Naive Bayes smooths a nominal feature by the number of its declared values, some of which the data at
    hand may never show. A plain mask cannot tell that number, so this one carries it. It can stand wherever
    a plain boolean mask can. Copies (also deep copies and pickles) keep ``n_values``; whatever else is
    derived from the mask is a plain array, or has ``n_values`` None, as the numbers would no longer fit.

    Parameters
    ----------
    n_values : array-like of int
        For each feature, how many values it declares; 0 for a numeric feature.

    Attributes
    ----------
    n_values : ndarray of int, or None

    Examples
    --------
    >>> mask = CategoricalMask([0, 2, 3])
    >>> mask
    CategoricalMask([False,  True,  True])
    >>> mask.n_values
    array([0, 2, 3])
    >>> ~mask
    array([ True, False, False])
    """

    n_values: IntArray | None

    def __new__(cls, n_values: npt.ArrayLike) -> CategoricalMask:
        """Make the mask from the counts, of which it keeps a copy."""
        counts = np.array(n_values, dtype=np.intp)
        if counts.ndim != 1 or (counts < 0).any():
            raise ValueError(f"n_values must be one count (0 or more) per feature, got {n_values!r}")
        counts.setflags(write=False)
        mask = (counts > 0).view(cls)
        mask.n_values = counts
        return mask

    def __array_finalize__(self, source: Any) -> None:
        # NumPy cannot tell a copy from a permutation here: only the copying methods below keep the counts.
        self.n_values = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            for target in kwargs["out"]:
                if isinstance(target, CategoricalMask):
                    target.n_values = None
            kwargs["out"] = tuple(map(_plain, kwargs["out"]))
        return getattr(ufunc, method)(*map(_plain, inputs), **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return _plain(self)[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.n_values = None

    def copy(self, order: Any = "C") -> CategoricalMask:
        """Return a copy that keeps ``n_values``.

        Parameters
        ----------
        order : str, default="C"
            As for NumPy's arrays.

        Returns
        -------
        CategoricalMask
        """
        if self.n_values is None:
            return super().copy(order)
        return CategoricalMask(self.n_values)

    def __copy__(self) -> CategoricalMask:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> CategoricalMask:
        return self.copy()

    def __reduce__(self) -> Any:
        return super().__reduce__() if self.n_values is None else (CategoricalMask, (self.n_values,))


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, CategoricalMask) else value
