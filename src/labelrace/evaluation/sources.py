"""Where the rows of a run come from, and how a manifest describes it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.streams import Dataset, open_stream
from labelrace.streams.catalog import find_dataset
from labelrace.streams.dataset import collect
from labelrace.streams.synthetic import SyntheticStream
from labelrace.typing import AnyMatrix

__all__ = ["Source", "open_source"]


# Files up to this size are loaded once, for all runs; larger ones are read anew by each, a batch at a time.
_LOADED_BYTES = 64 * 1024**2


class Source(NamedTuple):
    """Data that can be sent to another process, and its description."""

    data: Any
    description: dict[str, Any]


def open_source(source: Any, labels: Any = None) -> Source:
    """Load and describe a source.

    Parameters
    ----------
    source : str, path, Dataset, or object with ``batches(size)``
        A dataset's name or file, a dataset in memory, or a stream that gives the same rows each time it is asked.
    labels : optional
        Which attributes of a file are labels, as `labelrace.load_dataset` takes it.

    Returns
    -------
    Source
        Its checksum is that of the file, of the rows in memory, or of the parameters of a `SyntheticStream`; other
        streams have none.

    Examples
    --------
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> description = open_source(SyntheticStream(n_rows=100, n_features=5, n_labels=4, cardinality=1.5)).description
    >>> {key: value for key, value in description.items() if key != "checksum"}
    {'name': 'synthetic', 'kind': 'synthetic', 'rows': 100, 'features': 5, 'labels': 4, 'cardinality': 1.5}
    """
    if isinstance(source, (str, os.PathLike)):
        stream, path = open_stream(source, labels), _path(source)
        if path.stat().st_size > _LOADED_BYTES:
            return Source(stream, {**_describe_stream(stream), "checksum": _file_digest(path)})
        data = collect(stream)
        return Source(data, _describe_dataset(data, _file_digest(path)))
    if labels is not None:
        raise ValueError("labels tells which attributes of a file are labels: it is not for data in memory or streams")
    if isinstance(source, Dataset):
        return Source(source, _describe_dataset(source, _rows_digest(source)))
    if not hasattr(source, "batches"):
        raise TypeError(f"a source is a name, a file, a Dataset or a stream with batches(size), got {source!r}")
    return Source(source, _describe_stream(source))


def _describe_dataset(data: Dataset, checksum: str) -> dict[str, Any]:
    return {
        "name": data.name,
        "kind": "file",
        "checksum": checksum,
        "rows": len(data),
        "features": len(data.feature_names),
        "labels": len(data.label_names),
        "cardinality": float(data.Y.sum() / max(len(data), 1)),
    }


def _describe_stream(stream: Any) -> dict[str, Any]:
    X, Y = next(iter(stream.batches(1)))
    cardinality = getattr(stream, "cardinality", None)
    return {
        "name": getattr(stream, "name", type(stream).__name__),
        "kind": "synthetic" if isinstance(stream, SyntheticStream) else "file",
        "checksum": _parameters_digest(stream),
        "rows": len(stream) if hasattr(stream, "__len__") else None,
        "features": int(X.shape[1]),
        "labels": int(Y.shape[1]),
        "cardinality": None if cardinality is None else float(cardinality),
    }


def _path(source: str | os.PathLike[str]) -> Path:
    return Path(source) if Path(source).is_file() else find_dataset(os.fspath(source))


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _rows_digest(data: Dataset) -> str:
    digest = hashlib.sha256()
    for matrix in (data.X, data.Y):
        digest.update(repr(matrix.shape).encode())
        for part in _parts(matrix):
            digest.update(np.ascontiguousarray(part).tobytes())
    return f"sha256:{digest.hexdigest()}"


def _parts(matrix: AnyMatrix) -> list[Any]:
    if not scipy.sparse.issparse(matrix):
        return [matrix]
    # SciPy indexes with 32 or 64 bits as it sees fit.
    return [matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)]


def _parameters_digest(stream: Any) -> str | None:
    if not isinstance(stream, SyntheticStream):
        return None
    parameters = json.dumps(dataclasses.asdict(stream), sort_keys=True)
    return f"sha256:{hashlib.sha256(parameters.encode()).hexdigest()}"
