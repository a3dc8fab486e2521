"""The data of the experiments: which datasets are available, what is in them, and synthetic streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import scipy.sparse

from labelrace.exceptions import DataFormatError
from labelrace.experiments.published import Facts, paper_datasets
from labelrace.related.compression import label_sets
from labelrace.streams import Stream, catalog, open_stream
from labelrace.streams.files import plain_path
from labelrace.streams.open import has_format
from labelrace.streams.synthetic import Drift, SyntheticStream, like

DRIFTS: tuple[Drift, ...] = get_args(Drift)
# The paper has batches of 500 rows from 6,000 rows on, and smaller ones below.
_MANY_ROWS, _LARGE_BATCH, _SMALL_BATCH = 5000, 500, 100
_ROWS_AT_ONCE = 2000
# Share of a stream that is looked at before its drift, and after it.
_SPAN = 0.2


@dataclass(frozen=True)
class Source:
    """Data for an experiment: a file, or a synthetic stream."""

    name: str  # the dataset's name in the paper, or that of its file
    data: Path | SyntheticStream
    labels: Path | None = None  # the file that names the labels, if the data file does not tell by itself
    facts: Facts = field(default=Facts(), compare=False)  # the paper's, or none, until they have been counted
    row_size: float = field(default=0.0, compare=False)  # stored values of a row, if they have been counted
    numeric: bool = field(default=True, compare=False)  # whether it has numeric features

    @property
    def synthetic(self) -> bool:
        """Whether this is a synthetic stream and not a dataset."""
        return isinstance(self.data, SyntheticStream)

    @property
    def batch_size(self) -> int:
        """The paper's, if it has the dataset, or else a size like those."""
        _, papers = paper_datasets().get(self.name, (None, None))
        return papers or (_LARGE_BATCH if self.facts.rows >= _MANY_ROWS else _SMALL_BATCH)

    @property
    def title(self) -> str:
        """What to call it wherever it is shown."""
        return f"synthetic like {self.name}" if self.synthetic and self.name in paper_datasets() else self.name

    @property
    def drift(self) -> str | None:
        """How it drifts, if that is known."""
        return self.data.drift if isinstance(self.data, SyntheticStream) else None

    def open(self) -> Stream:
        """Return it as a stream."""
        return self.data if isinstance(self.data, SyntheticStream) else open_stream(self.data, self.labels)

    @property
    def windows(self) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Rows before the first drift begins and after the last one ends; without drift, around the middle."""
        if not isinstance(self.data, SyntheticStream):
            return None
        drifts, half = self.data.drifts or (0.5,), self.data.drift_takes / 2
        begins, over = drifts[0] - half, drifts[-1] + half
        shares = (max(begins - _SPAN, 0.0), begins, over, min(over + _SPAN, 1.0))
        a, b, c, d = (round(share * self.data.n_rows, 6) for share in shares)
        return (a, b), (c, d)


class Found(NamedTuple):
    """The datasets found, the names of the paper's that are not, and sentences on files that cannot be read."""

    sources: list[Source]
    missing: list[str]
    unreadable: list[str]


def find_paper_datasets(
    folders: Iterable[Path] = (), *, synthetic: bool = False, synthetic_rows: int | None = None
) -> Found:
    """Look for the paper's datasets, by the names of files alone, and return them in the paper's order.

    `folders` are searched first; then those of ``$LABELRACE_DATA`` and the cache. If `synthetic`, there is a stream of
    the same shape for each dataset that is not found, with `synthetic_rows` rows, or as many as the dataset has.
    """
    files = _data_files(folders)
    sources, missing = [], []
    for name, (facts, _) in paper_datasets().items():
        if name in files:
            sources.append(Source(name, files[name], facts=facts))
            continue
        missing.append(name)
        if synthetic:
            sources.append(Source(name, like(name, n_rows=synthetic_rows), facts=facts))
    return Found(sources, missing, [])


def find_datasets(folders: Iterable[Path] = (), names: Sequence[str] = ()) -> Found:
    """Look for all datasets, or those of some names, and count what is in them; small datasets come first.

    Folders are those of `find_paper_datasets`; case and hyphens of names do not matter. If there is no such folder, or
    no dataset of a name, that is a FileNotFoundError.
    """
    files = _data_files(folders)
    missing = [name for name in paper_datasets() if name not in files]
    known = {_key(name): name for name in files}
    if unknown := [name for name in names if _key(name) not in known]:
        available = ", ".join(files) or "none"
        raise FileNotFoundError(
            f"no dataset {unknown[0]!r} is available; there is {available}: see `labelrace data list`"
        )
    sources, unreadable = [], []
    for name in sorted({known[_key(name)] for name in names or files}, key=_key):
        file = files[name]
        try:
            # Some datasets share the file that names their labels, as the catalog knows.
            labels = next((catalog.find_labels(entry.name) for entry in catalog.ENTRIES if entry.found == file), None)
            sources.append(counted(Source(name, file, labels)))
        except (DataFormatError, ValueError, OSError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            unreadable.append(f"{file} was left out, as it cannot be read: {reason}.")
    sources.sort(key=lambda source: source.facts.rows * source.facts.labels)
    return Found(sources, missing, unreadable)


def drifting_streams(rows: int = 4000, seed: int = 0) -> list[Source]:
    """Make a synthetic stream without drift and one with each kind of drift, all else equal."""
    sources = []
    for kind in DRIFTS:
        name = f"synthetic, {'no' if kind == 'none' else kind} drift"
        stream = SyntheticStream(n_rows=rows, drift=kind, seed=seed, name=name)
        sizes = stream.n_rows, stream.n_features, stream.n_labels
        facts = Facts(*sizes, stream.cardinality, stream.cardinality / stream.n_labels, 0)
        sources.append(Source(name, stream, None, facts, stream.n_features))
    return sources


def counted(source: Source) -> Source:
    """Read a source and count what Table 1 of the paper has of a dataset, and the values of a row."""
    stream = source.open()
    rows, ones, values = 0, 0, 0
    found = set[int]()
    for X, Y in stream.batches(_ROWS_AT_ONCE):
        rows += Y.shape[0]
        values += X.nnz if scipy.sparse.issparse(X) else X.size
        ones += int(Y.sum())
        found.update(label_sets.of_rows(Y).keys.tolist())
    cardinality = ones / max(rows, 1)
    density = cardinality / stream.n_labels
    facts = Facts(rows, stream.n_features, stream.n_labels, cardinality, density, len(found))
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
    entry = next((entry for entry in catalog.ENTRIES if name.lower() in entry.also), None)
    return catalog.plain_name(entry.name if entry else name).replace("_", "")
