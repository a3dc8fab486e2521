"""Datasets by name: the folders they are looked for in, and the public files they can be fetched from."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from labelrace.streams._catalog_table import ENTRIES, Entry, RemoteFile
from labelrace.streams._download import DownloadError, Progress, download, git_blob_id, is_there, verify

__all__ = [
    "CatalogEntry",
    "DownloadError",
    "cache_folder",
    "catalog",
    "data_folders",
    "fetch",
    "find_dataset",
    "find_labels",
    "git_blob_id",
    "verify",
]

_MOST_NAMES = 30
_SUFFIXES = (".arff", ".mat")  # the first is preferred where a folder has both


@dataclass(frozen=True)
class CatalogEntry:
    """A dataset of the catalog.

    Parameters
    ----------
    name : str
    rows, features, labels : int
    files : tuple of RemoteFile
        Name, address and checksum of each; empty if there is no public source.
    note : str
        What it is about.
    found : Path or None
        The data file on this computer, if it is there.
    """

    name: str
    rows: int
    features: int
    labels: int
    files: tuple[RemoteFile, ...]
    note: str
    found: Path | None


def cache_folder() -> Path:
    """Return the user's cache folder for labelrace, whether it exists or not."""
    home = Path.home()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg, "labelrace")
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local", "labelrace", "Cache")
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "labelrace"
    return home / ".cache" / "labelrace"


def data_folders() -> list[Path]:
    """Return the folders to look for datasets in: those of ``$LABELRACE_DATA``, then the cache."""
    listed = os.environ.get("LABELRACE_DATA", "").split(os.pathsep)
    return [*(Path(folder).expanduser() for folder in listed if folder), cache_folder()]


def catalog() -> list[CatalogEntry]:
    """List the datasets that labelrace knows by name, and where they are if they are here.

    Examples
    --------
    >>> [entry.name for entry in catalog()][:5]
    ['bibtex', 'birds-train', 'birds-test', 'cal500', 'corel5k']
    """
    return [CatalogEntry(*entry, found=_locate(entry.name)) for entry in ENTRIES]


def find_dataset(name: str) -> Path:
    """Return the path of the dataset file ``name.arff`` or ``name.mat`` in the first folder that has it.

    Parameters
    ----------
    name : str
        The file's name without suffix; upper and lower case do not matter. `find_labels` tells the file that names
        its labels.

    Raises
    ------
    FileNotFoundError
        If no folder has it. The message lists the folders and the names found there.
    """
    path = _locate(name)
    if path is not None:
        return path
    folders = data_folders()
    found = {file.stem for folder in folders for file in _data_files(folder)}
    names = ", ".join(sorted(found)[:_MOST_NAMES]) or "no datasets"
    entry = _entry(name)
    raise FileNotFoundError(
        f"no dataset named {name!r}: looked in {', '.join(map(str, folders))} and found {names} there. "
        + (f"{_advice(entry)} " if entry else "")
        + f"Set LABELRACE_DATA to the folders that hold your NAME.arff and NAME.xml files (separated by "
        f"{os.pathsep!r}), or give the path of a file"
    )


def find_labels(name: str) -> Path | None:
    """Return the path of the Mulan XML file that names the labels of a dataset, None if there is none beside it.

    It is called like the data file, or as the catalog says: birds-train and birds-test share birds.xml.

    Parameters
    ----------
    name : str
        As for `find_dataset`.
    """
    path = find_dataset(name)
    if path.suffix.lower() != ".arff":
        return None
    entry = _entry(name)
    shared = [path.with_name(file.name) for file in entry.files[1:]] if entry else []
    return next((file for file in (path.with_suffix(".xml"), *shared) if file.is_file()), None)


def fetch(
    name: str,
    folder: str | os.PathLike[str] | None = None,
    base_url: str | None = None,
    progress: Progress | None = None,
    force: bool = False,
) -> Path:
    """Download a dataset of the catalog; return the path of its data file.

    A file gets its name only after its checksum was found right. What is already there, and right, is not
    downloaded.

    Parameters
    ----------
    name : str
        One of `catalog`; upper and lower case do not matter.
    folder : path or None
        Where to put it; by default the cache, unless one of the `data_folders` has it.
    base_url : str or None
        The address of a mirror, with the paths of the original repository below it.
    progress : callable or None
        Is told a file's name, the number of bytes that have come and the number expected (0 if unknown).
    force : bool
        Replace files that are there but are not the catalogued ones.

    Raises
    ------
    ValueError
        If the catalog does not have the name.
    DownloadError
        If there is no public source, if the download fails, or if a checksum is wrong.

    Examples
    --------
    >>> fetch("yeast")  # doctest: +SKIP
    PosixPath('/home/ada/.cache/labelrace/yeast.arff')
    """
    entry = _entry(name)
    if entry is None:
        raise ValueError(f"There is no dataset {name!r} in the catalog. It has: {', '.join(_near(name))}.")
    if not entry.files:
        raise DownloadError(_advice(entry))
    folders = data_folders() if folder is None else [Path(folder)]
    for place in folders:
        if all((place / file.name).is_file() and verify(place / file.name, file.checksum) for file in entry.files):
            return place / entry.files[0].name
    target = folders[-1]
    wanted = [file for file in entry.files if not is_there(target / file.name, file.checksum, force)]
    target.mkdir(parents=True, exist_ok=True)
    for file in reversed(wanted):  # the data last: it is never there without its labels
        download(file, target, base_url or file.base_url, progress)
    return target / entry.files[0].name


def _entry(name: str) -> Entry | None:
    return next((entry for entry in ENTRIES if _plain(entry.name) == _plain(name)), None)


def _plain(name: str) -> str:
    return name.lower().replace("-", "")


def _near(name: str) -> list[str]:
    """Return the names of the catalog that begin like the given one, or all of them."""
    names = [entry.name for entry in ENTRIES]
    return [known for known in names if name and known.startswith(name.lower())] or names


def _advice(entry: Entry) -> str:
    """Say how a dataset of the catalog can be had."""
    if entry.files:
        return f"`labelrace data fetch {entry.name}` downloads it."
    return (
        f"{entry.name} has no public source: bring its Mulan files as {entry.name}.arff and {entry.name}.xml, or use "
        f"the synthetic stream of the same shape, labelrace.streams.synthetic.like({entry.name!r})."
    )


def _locate(name: str) -> Path | None:
    for folder in data_folders():
        matches = [file for file in _data_files(folder) if file.stem.lower() == name.lower()]
        if matches:
            # Where case is all that tells two files apart, the name as given comes first.
            return min(matches, key=lambda file: (_SUFFIXES.index(file.suffix.lower()), file.stem != name))
    return None


def _data_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in _SUFFIXES)
