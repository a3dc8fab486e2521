"""The data of the benchmarks: which datasets are available, and what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from benchmarks.published import Facts, paper_datasets
from labelrace.exceptions import DataFormatError
from labelrace.streams import Stream, catalog, open_stream
from labelrace.streams.files import plain_path
from labelrace.streams.formats import has_format

# The paper has batches of 500 rows from 6,000 rows on, and smaller ones below.
_MANY_ROWS, _LARGE_BATCH, _SMALL_BATCH = 5000, 500, 100
_ROWS_AT_ONCE = 2000


@dataclass(frozen=True)
class Source:
    """A dataset in a file."""

    name: str  # the dataset's name in the paper, or that of its file
    data: Path
    labels: Path | None = None  # the file that names the labels, if the data file does not tell by itself
    facts: Facts = field(default=Facts(), compare=False)  # the paper's, or none, until they have been counted
    row_size: float = field(default=0.0, compare=False)  # stored values of a row, if they have been counted
    numeric: bool = field(default=True, compare=False)  # whether it has numeric features

    @property
    def batch_size(self) -> int:
        """The paper's, if it has the dataset, or else a size like those."""
        _, papers = paper_datasets().get(self.name, (None, None))
        return papers or (_LARGE_BATCH if self.facts.rows >= _MANY_ROWS else _SMALL_BATCH)

    def open(self) -> Stream:
        """Return it as a stream."""
        return open_stream(self.data, self.labels)


class Found(NamedTuple):
    """The datasets found, the names of the paper's that are not, and sentences on files that cannot be read."""

    sources: list[Source]
    missing: list[str]
    unreadable: list[str]


def find_paper_datasets(folders: Iterable[Path] = (), names: Sequence[str] = ()) -> Found:
    """Look for the paper's datasets, or those of some names, by the names of files alone, in the paper's order.

    `folders` are searched first; then those of ``$LABELRACE_DATA`` and the cache. A name that none of them has is a
    FileNotFoundError.
    """
    files = {name: file for name, file in _data_files(folders).items() if name in paper_datasets()}
    chosen = _chosen(files, names)
    known = paper_datasets()
    sources = [Source(name, files[name], facts=facts) for name, (facts, _) in known.items() if name in chosen]
    return Found(sources, [name for name in known if name not in files], [])


def find_datasets(folders: Iterable[Path] = (), names: Sequence[str] = (), *, needed: bool = True) -> Found:
    """Look for all datasets, or those of some names, and count what is in them; small datasets come first.

    Folders are those of `find_paper_datasets`; case and hyphens of names do not matter. If there is no such folder, no
    dataset of a name, or none at all where some are needed, that is a FileNotFoundError.
    """
    files = _data_files(folders)
    missing = [name for name in paper_datasets() if name not in files]
    sources, unreadable = [], []
    for name in sorted(_chosen(files, names), key=_key):
        file = files[name]
        try:
            # Some datasets share the file that names their labels, as the catalog knows.
            labels = next((catalog.find_labels(entry.name) for entry in catalog.ENTRIES if entry.path == file), None)
            sources.append(counted(Source(name, file, labels)))
        except (DataFormatError, ValueError, OSError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            unreadable.append(f"{file} was left out, as it cannot be read: {reason}.")
    if needed and not sources:
        raise FileNotFoundError(
            "no dataset is available: see `labelrace data list`, or give a folder of them by --data or LABELRACE_DATA"
        )
    sources.sort(key=lambda source: source.facts.rows * source.facts.labels)
    return Found(sources, missing, unreadable)


def _chosen(files: Iterable[str], names: Sequence[str]) -> set[str]:
    """Return which of the datasets in files have these names, or all if there are none; raise for an unknown name."""
    known = {_key(name): name for name in files}
    if unknown := [name for name in names if _key(name) not in known]:
        available = ", ".join(known.values()) or "none"
        raise FileNotFoundError(
            f"no dataset {unknown[0]!r} is available; there is {available}: see `labelrace data list`"
        )
    return {known[_key(name)] for name in names} if names else set(known.values())


def counted(source: Source) -> Source:
    """Read a source and count what Table 1 of the paper has of a dataset, and the values of a row."""
    stream = source.open()
    rows, ones, values = 0, 0, 0
    label_sets = set[bytes]()
    for X, Y in stream.batches(_ROWS_AT_ONCE):
        rows += Y.shape[0]
        values += X.nnz if scipy.sparse.issparse(X) else X.size
        ones += int(Y.sum())
        labels = scipy.sparse.csr_array(Y)
        labels.sort_indices()
        label_sets.update(row.astype(np.int32).tobytes() for row in np.split(labels.indices, labels.indptr[1:-1]))
    cardinality = ones / max(rows, 1)
    density = cardinality / stream.n_labels
    facts = Facts(rows, stream.n_features, stream.n_labels, cardinality, density, len(label_sets))
    return replace(source, facts=facts, row_size=values / max(rows, 1), numeric=not np.all(stream.categorical))


def _data_files(given: Iterable[Path]) -> dict[str, Path]:
    """Return the first file of each dataset, by the paper's name for it or else the file's.

    ARFF, the paper's own format, comes before other files of a folder.
    """
    given = list(given)
    if gone := [folder for folder in given if not folder.is_dir()]:
        raise FileNotFoundError(f"no such folder: {gone[0]}")
    papers = {_key(name): name for name in paper_datasets()}
    found: dict[str, tuple[str, Path]] = {}
    for folder in [*given, *catalog.data_folders()]:
        for file in sorted(folder.glob("[!.]*"), key=lambda file: (".arff" not in file.name.lower(), file.name)):
            if file.is_file() and has_format(file):
                stem = plain_path(file).stem
                found.setdefault(_key(stem), (papers.get(_key(stem), stem), file))
    return dict(found.values())


def _key(name: str) -> str:
    entry = catalog.entry_of(name)
    return catalog.plain_name(entry.name if entry else name)
