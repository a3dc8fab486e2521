"""Seeded multi-label streams, with and without drift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from labelrace.core.categorical import CategoricalMask
from labelrace.streams._synthetic_checks import check_parameters
from labelrace.streams._synthetic_model import Drift, draw_rows, draw_structure
from labelrace.streams.batch import Dataset, check_batch_size
from labelrace.typing import AnyMatrix, SparseMatrix

__all__ = ["SyntheticStream", "demo_stream", "like"]

# Rows are made in chunks of this many numbers, which bounds the memory, and at most this many rows.
_CELLS, _MOST_ROWS = 1 << 19, 1024


@dataclass(frozen=True, repr=False, kw_only=True)
class SyntheticStream:
    """A stream of random rows whose labels can be learned from the features, to a degree.

    Hidden factors govern both: features are noisy functions of them, and a label is present where a combination of
    the factors, plus chance, is large. So labels correlate, with each other and with the features. Frequencies of
    labels fall as in Zipf's law and give the chosen cardinality.

    What drifts is what the factors mean for the labels. The distribution of the features and the frequency of each
    label stay as they are, so that nothing but a worse prediction tells of the drift.

    Parameters
    ----------
    n_rows, n_features, n_labels : int
    cardinality : float
        Mean number of labels of a row.
    density : float or None
        Share of non-zeros, at most 0.5, of sparse binary features; None for dense numeric ones.
    n_factors : int
        At least 2. The fewer there are, the more the labels correlate.
    noise : float
        Share of chance, from 0 (none) to below 1, in the features and in the labels.
    zipf : float
        How fast the frequencies of labels fall: the label of rank ``r`` has one proportional to ``r ** -zipf``.
    most_frequent : float
        Frequency that no label exceeds.
    drift : {"none", "sudden", "gradual", "incremental", "recurring"}
        A new concept takes over at one row; in ever more of the rows; by and by, through all that lies between the
        two; or in turns with the old one.
    drift_at : float, sequence of float or None
        Where in the stream it drifts, as shares of its rows. By default in the middle, and after each quarter for
        recurring drift.
    drift_width : float
        Share of the stream that a gradual or incremental drift takes, half of it before ``drift_at``.
    new_labels, new_labels_at : float
        Share of the labels that do not occur in the first ``new_labels_at`` of the stream.
    seed : int
    name : str
        Shown with the data; "synthetic" is put in front where it does not say so.

    Examples
    --------
    >>> stream = SyntheticStream(n_rows=1000, n_features=30, n_labels=20, cardinality=2.5, drift="sudden")
    >>> stream
    SyntheticStream('synthetic': 1000 rows, 30 dense features, 20 labels, cardinality 2.5, sudden drift)
    >>> [X.shape for X, Y in stream.batches(400)]
    [(400, 30), (400, 30), (200, 30)]
    >>> stream.load()
    Dataset('synthetic': 1000 rows, 30 features (0 categorical), 20 labels, cardinality 2.5...)
    """

    n_rows: int = 10_000
    n_features: int = 50
    n_labels: int = 40
    cardinality: float = 3.0
    density: float | None = None
    n_factors: int = 8
    noise: float = 0.1
    zipf: float = 1.0
    most_frequent: float = 0.9
    drift: Drift = "none"
    drift_at: float | Sequence[float] | None = None
    drift_width: float = 0.2
    new_labels: float = 0.0
    new_labels_at: float = 0.5
    seed: int = 0
    name: str = "synthetic"

    def __post_init__(self) -> None:
        check_parameters(self)
        if "synthetic" not in self.name.lower():
            object.__setattr__(self, "name", f"synthetic {self.name}")

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        kind = "dense features" if self.density is None else f"binary features ({100 * self.density:.3g}% dense)"
        drift = "no drift" if self.drift == "none" else f"{self.drift} drift"
        return (
            f"SyntheticStream({self.name!r}: {self.n_rows} rows, {self.n_features} {kind}, "
            f"{self.n_labels} labels, cardinality {self.cardinality:g}, {drift})"
        )

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"x{number}" for number in range(self.n_features))

    @cached_property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels."""
        return tuple(f"label{number}" for number in range(self.n_labels))

    @cached_property
    def categorical(self) -> CategoricalMask:
        """Mask of the nominal features: all of the sparse ones, none of the dense ones."""
        return CategoricalMask(np.full(self.n_features, 0 if self.density is None else 2))

    @property
    def drifts(self) -> tuple[float, ...]:
        """Where in the stream it drifts, as shares of its rows."""
        if self.drift == "none":
            return ()
        if self.drift_at is None:
            return (0.25, 0.5, 0.75) if self.drift == "recurring" else (0.5,)
        return tuple(self.drift_at) if isinstance(self.drift_at, Sequence) else (self.drift_at,)

    @property
    def drift_takes(self) -> float:
        """Share of the stream that each drift takes: 0 for one that happens at once."""
        return self.drift_width if self.drift in ("gradual", "incremental") else 0.0

    def batches(self, size: int) -> Iterator[tuple[AnyMatrix, SparseMatrix]]:
        """Iterate over (X, Y), from the first row on, in batches of `size` rows; the last one may be shorter.

        The rows are the same at each call and for each size; they are made as they are asked for.
        """
        check_batch_size(size)  # here, not in the generator: the error belongs to this call
        return _rebatch(self._chunks(), size)

    def load(self) -> Dataset:
        """Return the whole stream as a dataset in memory."""
        X, Y = next(self.batches(self.n_rows))
        return Dataset(X, Y, self.feature_names, self.label_names, self.categorical, self.name)

    def _chunks(self) -> Iterator[tuple[AnyMatrix, SparseMatrix]]:
        structure = draw_structure(self)
        size = min(max(_CELLS // structure.cells, 1), _MOST_ROWS)
        for start in range(0, self.n_rows, size):
            yield draw_rows(self, structure, np.arange(start, min(start + size, self.n_rows)))


def _rebatch(chunks: Iterator[tuple[AnyMatrix, SparseMatrix]], size: int) -> Iterator[tuple[AnyMatrix, SparseMatrix]]:
    parts: list[tuple[AnyMatrix, SparseMatrix]] = []
    missing = size
    for X, Y in chunks:
        start = 0
        while start < X.shape[0]:
            stop = min(start + missing, X.shape[0])
            parts.append((X[start:stop], Y[start:stop]))
            missing -= stop - start
            start = stop
            if missing == 0:
                yield _join(parts)
                parts, missing = [], size
    if parts:
        yield _join(parts)


def _join(parts: list[tuple[AnyMatrix, SparseMatrix]]) -> tuple[AnyMatrix, SparseMatrix]:
    if len(parts) == 1:
        return parts[0]
    X, Y = zip(*parts, strict=True)
    stack = scipy.sparse.vstack
    return stack(X, format="csr") if scipy.sparse.issparse(X[0]) else np.vstack(X), stack(Y, format="csr")


def _shape(
    n_rows: int, n_features: int, n_labels: int, cardinality: float, density: float | None, **labels: float
) -> dict[str, Any]:
    sizes = {"n_rows": n_rows, "n_features": n_features, "n_labels": n_labels}
    return {**sizes, "cardinality": cardinality, "density": density, **labels}


# Table 1 of the paper. Densities and label frequencies are fitted to the public files of CAL500, delicious, enron and
# (frequencies) rcv1v2; the densities of NUS-WIDE and rcv1v2 are estimates. The originals of these two have counts of
# visual words and weights of words, where this has words that are there or not.
_SHAPES: dict[str, dict[str, Any]] = {
    "CAL500": _shape(502, 68, 174, 26.044, None, zipf=1.0, most_frequent=0.7),
    "delicious": _shape(16105, 500, 983, 19.020, 0.0366, zipf=1.0, most_frequent=0.4),
    "enron": _shape(1702, 1001, 53, 3.378, 0.084, zipf=1.35, most_frequent=0.5),
    "mediamill": _shape(43907, 120, 101, 4.376, None),
    "NUS-WIDE": _shape(269648, 500, 81, 1.869, 0.05),
    "rcv1v2": _shape(6000, 47236, 101, 2.880, 0.0016, zipf=0.9, most_frequent=0.23),
}


def like(name: str, n_rows: int | None = None, seed: int = 0, **changes: Any) -> SyntheticStream:
    """Make a synthetic stream of the shape of one of the paper's six datasets.

    Rows, features, labels, cardinality, density and kind of features are those of the dataset. The data is not.

    Parameters
    ----------
    name : str
        CAL500, delicious, enron, mediamill, NUS-WIDE or rcv1v2; case and hyphens do not matter.
    n_rows : int or None
        As many rows as the dataset has, by default.
    seed : int
    **changes
        Other parameters of `SyntheticStream`.

    Examples
    --------
    >>> like("nuswide", n_rows=2000, drift="gradual")
    SyntheticStream('synthetic like NUS-WIDE': 2000 rows, 500 binary features (5% dense), 81 labels,
    cardinality 1.869, gradual drift)
    """
    known = {_plain(full): full for full in _SHAPES}
    full = known.get(_plain(name))
    if full is None:
        raise ValueError(f"There is no shape {name!r}. Known shapes: {', '.join(_SHAPES)}.")
    parameters = {"name": f"synthetic like {full}", **_SHAPES[full], "seed": seed, **changes}
    if n_rows is not None:
        parameters["n_rows"] = n_rows
    return SyntheticStream(**parameters)


def _plain(name: str) -> str:
    return name.lower().replace("-", "")


def demo_stream() -> SyntheticStream:
    """Make the stream that is shown where no data is given: small, with a drift in its middle.

    Examples
    --------
    >>> demo_stream()
    SyntheticStream('synthetic demo': 12000 rows, 60 dense features, 80 labels, cardinality 3.5, sudden drift)
    """
    return SyntheticStream(
        n_rows=12_000, n_features=60, n_labels=80, cardinality=3.5, drift="sudden", name="synthetic demo"
    )
