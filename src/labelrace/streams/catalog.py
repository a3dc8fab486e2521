"""Datasets by name: the folders that are searched for them, and the public files they can be downloaded from.

``catalog.json`` beside this module lists the datasets, the addresses of their files and the checksums.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, TypeAlias

from labelrace.base.files import atomic_file
from labelrace.exceptions import LabelraceError

# Called with the name of a file, the bytes received and the bytes expected (0 if unknown).
Progress: TypeAlias = Callable[[str, int, int], object]

_BLOCK = 1 << 16
_MAX_NAMES = 30
_SUFFIXES = (".arff", ".mat", ".npz", ".txt")  # the first is preferred where a folder has several
# Archives there can only be downloaded with a browser.
EXTREME_REPOSITORY = "http://manikvarma.org/downloads/XC/XMLRepository.html"


class DownloadError(LabelraceError, OSError):
    """A dataset cannot be downloaded, or a file is not the one in the catalog."""


class RemoteFile(NamedTuple):
    """A public file: its local name, its address, and its checksum as ``kind:hexadecimal digits``."""

    name: str
    base_url: str
    path: str
    checksum: str


class CatalogEntry(NamedTuple):
    """A dataset of the catalog, with a note on its content.

    ``files`` are the data file and the file that names the labels, if there is one; none without a public source.
    ``also`` are other names that the data file may have. ``bring`` is the path of the data file in its archive, for a
    dataset of the Extreme Classification repository.
    """

    name: str
    rows: int
    features: int
    labels: int
    files: tuple[RemoteFile, ...]
    note: str
    also: tuple[str, ...] = ()
    bring: str = ""

    @property
    def command(self) -> str:
        """The command that runs a model on the unpacked archive; empty for other datasets."""
        return f"labelrace run {self.bring} --model race" if self.bring else ""

    @property
    def path(self) -> Path | None:
        """The path of the data file on this computer, if it is there."""
        return _locate(self.name)


def _read_catalog() -> tuple[CatalogEntry, ...]:
    content = json.loads(files("labelrace.streams").joinpath("catalog.json").read_text(encoding="utf-8"))
    for item in content["datasets"]:
        remote = [(file.pop("source"), file) for file in item["files"]]
        item["files"] = tuple(RemoteFile(base_url=content["sources"][source], **file) for source, file in remote)
    return tuple(CatalogEntry(**item) for item in content["datasets"])


# The datasets that labelrace knows by name.
ENTRIES = _read_catalog()


def cache_folder() -> Path:
    """Return the user's cache folder for labelrace, whether it exists or not."""
    import pooch  # type: ignore[import-untyped]  # here, as importing it takes time and paths do not need it

    return Path(pooch.os_cache("labelrace"))


def data_folders() -> list[Path]:
    """Return the folders that are searched for datasets: those of ``$LABELRACE_DATA``, then the cache."""
    listed = os.environ.get("LABELRACE_DATA", "").split(os.pathsep)
    return [*(Path(folder).expanduser() for folder in listed if folder), cache_folder()]


def find_dataset(name: str) -> Path:
    """Return the path of the dataset file ``name.arff``, ``name.mat`` or ``name.npz`` in the first folder that has it.

    Files of the Extreme Classification repository are also found under their own names, such as ``eurlex_train.txt``.

    Parameters
    ----------
    name : str
        The name of the file without suffix; case, hyphens and underscores do not matter. `find_labels` finds the file
        that names its labels.

    Raises
    ------
    FileNotFoundError
        If no folder has it. The message lists the folders and the names found there.
    """
    path = _locate(name)
    if path is not None:
        return path
    folders = data_folders()
    known = {file.stem for folder in folders for file in _data_files(folder)}
    names = ", ".join(sorted(known)[:_MAX_NAMES]) or "no datasets"
    entry = entry_of(name)
    raise FileNotFoundError(
        f"no dataset named {name!r}: looked in {', '.join(map(str, folders))} and found {names} there. "
        + (f"{_advice(entry)} " if entry else "")
        + f"Set LABELRACE_DATA to the folders that hold your NAME.arff and NAME.xml files (separated by "
        f"{os.pathsep!r}), or give the path of a file"
    )


def find_labels(name: str) -> Path | None:
    """Return the path of the Mulan XML file that names the labels of a dataset, None if there is none.

    It has the name of the data file, or the one in the catalog: birds-train and birds-test share birds.xml.
    """
    path = find_dataset(name)
    if path.suffix.lower() != ".arff":
        return None
    entry = entry_of(name)
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

    A file gets its name only after its checksum was verified. Existing files are not downloaded again.

    Parameters
    ----------
    name : str
        A name in the catalog, in upper or lower case.
    folder : path or None, default=None
        The target folder; by default the cache, unless one of the `data_folders` has the dataset.
    base_url : str or None, default=None
        The address of a mirror, with the paths of the original repository below it.
    progress : callable or None, default=None
        Called with a file's name, the number of bytes received and the number expected (0 if unknown).
    force : bool, default=False
        Replace existing files that are not the catalogued ones.

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
    entry = entry_of(name)
    if entry is None:
        names = [entry.name for entry in ENTRIES]
        near = [known for known in names if name and known.startswith(name.lower())] or names
        raise ValueError(f"There is no dataset {name!r} in the catalog. It has: {', '.join(near)}.")
    if not entry.files:
        raise DownloadError(_advice(entry))
    folders = data_folders() if folder is None else [Path(folder)]
    for candidate in folders:
        paths = [candidate / file.name for file in entry.files]
        if all(path.is_file() and verify(path, file.checksum) for path, file in zip(paths, entry.files, strict=True)):
            return paths[0]
    target = folders[-1]
    missing = [file for file in entry.files if not _is_complete(target / file.name, file.checksum, force)]
    target.mkdir(parents=True, exist_ok=True)
    for file in reversed(missing):  # the data last, so that it is never without its labels
        _download(file, target, base_url or file.base_url, progress)
    return target / entry.files[0].name


def verify(path: str | os.PathLike[str], checksum: str) -> bool:
    """Return whether a file has a checksum: ``sha256:`` or ``git-blob:`` and hexadecimal digits."""
    kind, _, digits = checksum.partition(":")
    if kind == "sha256":
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == digits.lower()
    if kind == "git-blob":
        return git_blob_id(path) == digits.lower()
    raise ValueError(f"checksum must begin with sha256: or git-blob:, got {checksum!r}")


def git_blob_id(path: str | os.PathLike[str]) -> str:
    """Return the id that Git gives to the content of a file: the SHA-1 of its length and content."""
    with open(path, "rb") as file:
        start = b"blob %d\0" % os.fstat(file.fileno()).st_size
        return hashlib.file_digest(file, lambda: hashlib.sha1(start, usedforsecurity=False)).hexdigest()


def entry_of(name: str) -> CatalogEntry | None:
    """Return the entry of the catalog with this name, or with this other name of its file, if there is one."""
    return next((entry for entry in ENTRIES if plain_name(name) in _names(entry)), None)


def plain_name(name: str) -> str:
    """Return the name of a dataset in lower case, without hyphens and underscores, to compare it."""
    return name.lower().replace("-", "").replace("_", "")


def _names(entry: CatalogEntry) -> set[str]:
    return {plain_name(name) for name in (entry.name, *entry.also)}


def _advice(entry: CatalogEntry) -> str:
    """Return a sentence on how to get a dataset of the catalog."""
    if entry.files:
        return f"`labelrace data fetch {entry.name}` downloads it."
    if entry.bring:
        return (
            f"{entry.name} is in the Extreme Classification repository, {EXTREME_REPOSITORY}: download and unpack its "
            f"archive (bag of words), then `{entry.command}`; with {Path(entry.bring).name} in a folder of "
            f"LABELRACE_DATA, `labelrace run {entry.name} --model race`."
        )
    return (
        f"{entry.name} has no public source: bring its Mulan files as {entry.name}.arff and {entry.name}.xml, or use "
        f"the synthetic stream of the same shape, labelrace.streams.synthetic.like({entry.name!r})."
    )


def _locate(name: str) -> Path | None:
    entry = entry_of(name)
    names = {plain_name(name)} | (_names(entry) if entry else set())
    for folder in data_folders():
        matches = [file for file in _data_files(folder) if plain_name(file.stem) in names]
        if matches:
            # If names differ only in case and hyphens, the name as given comes first.
            return min(matches, key=lambda file: (_SUFFIXES.index(file.suffix.lower()), file.stem != name))
    return None


def _data_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    # A .txt file may be anything, so it is a dataset only if its name is known.
    texts = {name for entry in ENTRIES if entry.bring for name in _names(entry)}
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in _SUFFIXES and (file.suffix.lower() != ".txt" or plain_name(file.stem) in texts)
    )


def _is_complete(path: Path, checksum: str, force: bool) -> bool:
    """Return whether the catalogued file exists; raise if another file has its name, unless `force` is given."""
    if not path.exists():
        return False
    right = verify(path, checksum)
    if not right and not force:
        raise DownloadError(
            f"{path} is there, but it is not the catalogued file: its checksum is not {checksum}. Move it away, "
            "or replace it with force=True"
        )
    return right


def _download(file: RemoteFile, folder: Path, base_url: str, progress: Progress | None) -> None:
    """Download a file into a folder; it gets its name there only after its checksum was verified."""
    import pooch

    url = f"{base_url.rstrip('/')}/{file.path}"
    downloader = pooch.HTTPDownloader(
        progressbar=_ProgressBar(file.name, progress) if progress else False,
        chunk_size=_BLOCK,
        headers={"Accept-Encoding": "identity"},  # to count bytes, and to notice an incomplete download
    )
    with atomic_file(folder / file.name) as output:
        try:
            downloader(url, output, None)
        except OSError as error:  # the base of all errors of Requests
            raise DownloadError(f"cannot download {url}: {error}") from error
        output.flush()
        if not verify(output.name, file.checksum):
            raise DownloadError(
                f"what came from {url} is not the catalogued file: its checksum is not {file.checksum}. "
                "It was deleted; try again, or from another mirror"
            )


class _ProgressBar:
    """A progress bar for Pooch that calls a function with the progress."""

    def __init__(self, name: str, report: Progress) -> None:
        self.name, self.report, self.done, self.total = name, report, 0, 0

    def update(self, count: int) -> None:
        # Pooch counts whole blocks, including the last one.
        self.done = min(self.done + count, self.total) if self.total else self.done + count
        self.report(self.name, self.done, self.total)

    def reset(self) -> None:
        # At the end Pooch resets the bar and then adds the total, if it is known.
        if self.total:
            self.done = 0

    def close(self) -> None:
        pass
