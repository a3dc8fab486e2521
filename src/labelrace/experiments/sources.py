"""The paper's datasets: which are at hand, where, and what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from labelrace.experiments.published import Facts, paper_datasets
from labelrace.streams import open_stream
from labelrace.streams.catalog import data_folders
from labelrace.streams.load import has_format
from labelrace.streams.synthetic import SyntheticStream, like
from labelrace.typing import AnyMatrix

__all__ = ["BenchSource", "SourceFacts", "find_sources", "source_facts"]

_ROWS_AT_ONCE = 2000


@dataclass(frozen=True)
class BenchSource:
    """Data for the benchmark.

    Parameters
    ----------
    name : str
        The dataset's name in the paper.
    data : Path or SyntheticStream
        Its file, or a stream that has its shape and nothing else of it.
    """

    name: str
    data: Path | SyntheticStream

    @property
    def synthetic(self) -> bool:
        """Whether this is not the dataset."""
        return isinstance(self.data, SyntheticStream)

    @property
    def title(self) -> str:
        """What to call it wherever it is shown."""
        return f"synthetic like {self.name}" if self.synthetic else self.name

    @property
    def folder(self) -> str:
        """The folder its runs are recorded in."""
        return self.title.replace(" ", "-")

    @property
    def batch_size(self) -> int:
        """Rows in a batch, as in the paper."""
        return paper_datasets()[self.name][1]


@dataclass(frozen=True)
class SourceFacts:
    """A dataset as measured and as published."""

    source: BenchSource
    measured: Facts
    published: Facts

    @property
    def same(self) -> bool:
        """Whether this can be the paper's dataset: rows, features and labels are as many."""
        return not self.source.synthetic and self.measured[:3] == self.published[:3]


def find_sources(
    folders: Iterable[Path] = (), *, synthetic: bool = False, synthetic_rows: int | None = None
) -> tuple[list[BenchSource], list[str]]:
    """Look for the paper's datasets.

    Parameters
    ----------
    folders : iterable of paths
        Looked in first; then those of ``$LABELRACE_DATA`` and the cache.
    synthetic : bool
        Whether to make a synthetic stream for each dataset that is not found.
    synthetic_rows : int or None
        Rows of such a stream, if not as many as the dataset has.

    Returns
    -------
    sources : list of BenchSource
        In the paper's order.
    missing : list of str
        The datasets that were not found.
    """
    searched = [*folders, *data_folders()]
    for folder in folders:
        if not folder.is_dir():
            raise FileNotFoundError(f"no such folder: {folder}")
    sources, missing = [], []
    for name in paper_datasets():
        path = _find(name, searched)
        if path is not None:
            sources.append(BenchSource(name, path))
            continue
        missing.append(name)
        if synthetic:
            sources.append(BenchSource(name, like(name, n_rows=synthetic_rows)))
    return sources, missing


def source_facts(source: BenchSource) -> SourceFacts:
    """Return what Table 1 tells of a dataset, beside what there is to count."""
    return SourceFacts(source, _measure(source), paper_datasets()[source.name][0])


def _measure(source: BenchSource) -> Facts:
    stream: Any = source.data if isinstance(source.data, SyntheticStream) else open_stream(source.data)
    rows, ones = 0, 0
    label_sets: set[bytes] = set()
    for _, Y in stream.batches(_ROWS_AT_ONCE):
        rows += Y.shape[0]
        ones += int(Y.sum())
        label_sets.update(_label_sets(Y))
    labels = len(stream.label_names)
    cardinality = ones / max(rows, 1)
    return Facts(rows, len(stream.feature_names), labels, cardinality, cardinality / labels, len(label_sets))


def _label_sets(Y: AnyMatrix) -> list[bytes]:
    labels = scipy.sparse.csr_array(Y)
    labels.eliminate_zeros()
    labels.sort_indices()
    indices = labels.indices.astype(np.int64)
    return [indices[start:end].tobytes() for start, end in zip(labels.indptr[:-1], labels.indptr[1:], strict=True)]


def _find(name: str, folders: Sequence[Path]) -> Path | None:
    """Return the first file with the dataset's name; ARFF, the paper's own format, before others of a folder."""
    for folder in folders:
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        matches = [file for file in files if has_format(file) and _plain(file.name.partition(".")[0]) == _plain(name)]
        if matches:
            return min(matches, key=lambda file: (".arff" not in file.name.lower(), file.name))
    return None


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
