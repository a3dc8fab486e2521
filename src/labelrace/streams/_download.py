"""Files from the network, which are kept only if their checksum is right."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from labelrace.exceptions import LabelraceError
from labelrace.streams._catalog_table import RemoteFile

__all__ = ["DownloadError", "Progress", "download", "git_blob_id", "is_there", "verify"]

# Is told the name of a file, the bytes that have come, and the bytes expected: 0 if that is unknown.
Progress: TypeAlias = Callable[[str, int, int], object]

_BLOCK = 1 << 16


class DownloadError(LabelraceError, OSError):
    """A dataset cannot be downloaded, or what came or what is there is not the catalogued file."""


def verify(path: str | os.PathLike[str], checksum: str) -> bool:
    """Tell whether a file has a checksum.

    Parameters
    ----------
    path : path
    checksum : str
        ``sha256:`` or ``git-blob:`` and hexadecimal digits.
    """
    kind, _, digits = checksum.partition(":")
    if kind == "sha256":
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == digits.lower()
    if kind == "git-blob":
        return git_blob_id(path) == digits.lower()
    raise ValueError(f"checksum must begin with sha256: or git-blob:, got {checksum!r}")


def git_blob_id(path: str | os.PathLike[str]) -> str:
    """Return the name that Git gives to the content of a file: the SHA-1 of its length and itself."""
    with open(path, "rb") as file:
        digest = hashlib.sha1(b"blob %d\0" % os.fstat(file.fileno()).st_size, usedforsecurity=False)
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def is_there(path: Path, checksum: str, force: bool) -> bool:
    """Tell whether a file is there as it should be; if it is but is another one, say so unless it may be replaced."""
    if not path.exists():
        return False
    right = verify(path, checksum)
    if not right and not force:
        raise DownloadError(
            f"{path} is there, but it is not the catalogued file: its checksum is not {checksum}. Move it away, "
            "or replace it with force=True"
        )
    return right


def download(file: RemoteFile, folder: Path, base_url: str, progress: Progress | None) -> None:
    """Download a file into a folder; it gets its name there only after its checksum was found right."""
    import pooch  # type: ignore[import-untyped]  # here, as it takes a while and few need it

    url = f"{base_url.rstrip('/')}/{file.path}"
    downloader = pooch.HTTPDownloader(
        progressbar=_Bar(file.name, progress) if progress else False,
        chunk_size=_BLOCK,
        headers={"Accept-Encoding": "identity"},  # so that bytes can be counted, and a download cut short is noticed
    )
    # In the folder itself, as a file can be renamed in one step only where it already is.
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as temporary:
        path = Path(temporary, file.name)
        try:
            downloader(url, str(path), None)
        except OSError as error:  # all that Requests raises is one
            raise DownloadError(f"cannot download {url}: {error}") from error
        if not verify(path, file.checksum):
            raise DownloadError(
                f"what came from {url} is not the catalogued file: its checksum is not {file.checksum}. "
                "It was not kept; try again, or from another mirror"
            )
        path.replace(folder / file.name)


class _Bar:
    """What Pooch takes for a progress bar: passes on how far a download is."""

    def __init__(self, name: str, tell: Progress) -> None:
        self.name, self.tell, self.done, self.total = name, tell, 0, 0

    def update(self, count: int) -> None:
        # Pooch counts whole blocks, also the last one.
        self.done = min(self.done + count, self.total) if self.total else self.done + count
        self.tell(self.name, self.done, self.total)

    def reset(self) -> None:
        # Pooch starts again in order to end at exactly the total, if it knows one.
        if self.total:
            self.done = 0

    def close(self) -> None:
        pass
