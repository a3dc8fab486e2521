"""The data: every dataset that is at hand, and synthetic streams with each kind of drift."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

from labelrace.evaluation.sources import open_source
from labelrace.exceptions import DataFormatError
from labelrace.experiments.published import paper_datasets
from labelrace.streams.catalog import catalog, data_folders, find_labels
from labelrace.streams.files import plain_path
from labelrace.streams.load import has_format
from labelrace.streams.synthetic import Drift, SyntheticStream

__all__ = ["DRIFTS", "Found", "QualitySource", "drifting_streams", "find_datasets"]

DRIFTS: tuple[Drift, ...] = get_args(Drift)

# The paper has batches of 500 rows from 6,000 rows on, and smaller ones below.
_MANY_ROWS, _LARGE_BATCH, _SMALL_BATCH = 5000, 500, 100
# Share of a stream that is looked at before its drift, and after it.
_SPAN = 0.2


@dataclass(frozen=True)
class QualitySource:
    """Data for the benchmark.

    Parameters
    ----------
    name : str
        As the paper calls the dataset, or as its file is called.
    data : Path or SyntheticStream
    labels : Path or None
        The file that names the labels, where the data file does not tell by itself.
    batch_size : int
        The paper's, where it has the dataset.
    rows, features, n_labels : int or None
        None where only the whole stream tells.
    cardinality : float or None
    """

    name: str
    data: Path | SyntheticStream
    labels: Path | None
    batch_size: int
    rows: int | None
    features: int
    n_labels: int
    cardinality: float | None

    @property
    def synthetic(self) -> bool:
        """Whether this is no dataset."""
        return isinstance(self.data, SyntheticStream)

    @property
    def drift(self) -> str | None:
        """How it drifts, where that is known."""
        return self.data.drift if isinstance(self.data, SyntheticStream) else None

    @property
    def title(self) -> str:
        """What to call it wherever it is shown."""
        return self.name

    @property
    def folder(self) -> str:
        """The folder its runs are recorded in."""
        return self.name.replace(", ", "-").replace(" ", "-")

    @property
    def cost(self) -> float:
        """About how long it takes, in no particular unit."""
        return float((self.rows or 10 * _MANY_ROWS) * self.n_labels)

    @property
    def windows(self) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Rows before the first drift begins and after the last one is over; without drift, about the middle.

        Examples
        --------
        >>> [sudden] = [source for source in drifting_streams(1000) if source.drift == "sudden"]
        >>> sudden.windows
        ((300.0, 500.0), (500.0, 700.0))
        """
        if not isinstance(self.data, SyntheticStream):
            return None
        drifts, half = self.data.drifts or (0.5,), self.data.drift_takes / 2
        begins, over = drifts[0] - half, drifts[-1] + half
        shares = (max(begins - _SPAN, 0.0), begins), (over, min(over + _SPAN, 1.0))
        (a, b), (c, d) = (tuple(round(share * self.data.n_rows, 6) for share in pair) for pair in shares)
        return (a, b), (c, d)


class Found(NamedTuple):
    """The datasets at hand, the names of the paper's that are not, and sentences on files that cannot be read."""

    sources: list[QualitySource]
    missing: list[str]
    unreadable: list[str]


def find_datasets(folders: Iterable[Path] = (), names: Sequence[str] = ()) -> Found:
    """Look for datasets.

    Parameters
    ----------
    folders : iterable of paths
        Looked in first; then those of ``$LABELRACE_DATA`` and the cache.
    names : sequence of str
        Which datasets, if not all that are found; case and hyphens do not matter.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or no dataset of a name.
    """
    given = list(folders)
    for folder in given:
        if not folder.is_dir():
            raise FileNotFoundError(f"no such folder: {folder}")
    files = _data_files([*given, *data_folders()])
    missing = [name for name in paper_datasets() if _plain(name) not in files]
    if unknown := [name for name in names if _plain(name) not in files]:
        at_hand = ", ".join(map(_name, files.values())) or "none"
        raise FileNotFoundError(f"no dataset {unknown[0]!r} is at hand; there is {at_hand}: see `labelrace data list`")
    wanted = {_plain(name) for name in names} or set(files)
    sources, unreadable = [], []
    for key in files.keys() & wanted:
        try:
            sources.append(_describe(files[key]))
        except (DataFormatError, ValueError, OSError) as error:
            unreadable.append(f"{files[key]} was left out, as it cannot be read: {str(error).partition(chr(10))[0]}")
    return Found(sorted(sources, key=lambda source: source.cost), missing, sorted(unreadable))


def drifting_streams(rows: int = 4000, seed: int = 0) -> list[QualitySource]:
    """Make a synthetic stream without drift and one with each kind of drift, all else equal."""
    streams = []
    for kind in DRIFTS:
        name = f"synthetic, {'no' if kind == 'none' else kind} drift"
        stream = SyntheticStream(n_rows=rows, drift=kind, seed=seed, name=name)
        sizes = (stream.n_rows, stream.n_features, stream.n_labels, stream.cardinality)
        streams.append(QualitySource(name, stream, None, _batch_size(rows), *sizes))
    return streams


def _data_files(folders: Iterable[Path]) -> dict[str, Path]:
    """Return the first file of each name; ARFF, the paper's own format, before others of a folder."""
    found: dict[str, Path] = {}
    for folder in folders:
        files = [file for file in folder.iterdir() if _is_data(file)] if folder.is_dir() else []
        for file in sorted(files, key=lambda file: (".arff" not in file.name.lower(), file.name)):
            found.setdefault(_plain(_stem(file)), file)
    return found


def _is_data(file: Path) -> bool:
    return file.is_file() and has_format(file) and not file.name.startswith(".")


def _describe(file: Path) -> QualitySource:
    # Some datasets share the file that names their labels, as the catalog knows.
    labels = next((find_labels(entry.name) for entry in catalog() if entry.found == file), None)
    about: dict[str, Any] = open_source(file, labels).description
    name, rows = _name(file), about["rows"]
    batch_size = paper_datasets()[name][1] if name in paper_datasets() else _batch_size(rows)
    return QualitySource(name, file, labels, batch_size, rows, about["features"], about["labels"], about["cardinality"])


def _batch_size(rows: int | None) -> int:
    return _LARGE_BATCH if rows is None or rows >= _MANY_ROWS else _SMALL_BATCH


def _name(file: Path) -> str:
    """Return the paper's name for a dataset, or the file's."""
    return next((name for name in paper_datasets() if _plain(name) == _plain(_stem(file))), _stem(file))


def _stem(file: Path) -> str:
    return plain_path(file).stem


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
