"""Datasets by name: the folders they are looked for in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["cache_folder", "data_folders", "find_dataset"]

_MOST_NAMES = 30


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


def find_dataset(name: str) -> Path:
    """Return the path of the dataset file ``name.arff`` in the first folder that has it.

    Parameters
    ----------
    name : str
        The file's name without suffix; upper and lower case do not matter. A Mulan XML file of the same name,
        which tells the labels, is expected beside it.

    Raises
    ------
    FileNotFoundError
        If no folder has it. The message lists the folders and the names found there.
    """
    folders = data_folders()
    found: list[str] = []
    for folder in folders:
        files = _arff_files(folder)
        matches = [file for file in files if file.stem.lower() == name.lower()]
        if matches:
            # Where case is all that tells two files apart, the name as given comes first.
            return min(matches, key=lambda file: file.stem != name)
        found += [file.stem for file in files]
    names = ", ".join(sorted(set(found))[:_MOST_NAMES]) or "no datasets"
    raise FileNotFoundError(
        f"no dataset named {name!r}: looked in {', '.join(map(str, folders))} and found {names} there. "
        f"Set LABELRACE_DATA to the folders that hold your NAME.arff and NAME.xml files (separated by "
        f"{os.pathsep!r}), or give the path of a file"
    )


def _arff_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.suffix.lower() == ".arff")
