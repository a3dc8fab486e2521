"""Load a dataset, whatever its format."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from labelrace.exceptions import DataFormatError
from labelrace.streams._arff_labels import LabelSource
from labelrace.streams.arff import read_arff
from labelrace.streams.batch import Dataset
from labelrace.streams.catalog import find_dataset

__all__ = ["load_dataset"]

_READERS: dict[str, Callable[[Path, LabelSource], Dataset]] = {".arff": read_arff}


def load_dataset(source: str | os.PathLike[str], labels: LabelSource = None) -> Dataset:
    """Load a dataset by its name or from a file.

    Parameters
    ----------
    source : str or path
        The path of an ``.arff`` file, or the name of a dataset in one of the folders of ``$LABELRACE_DATA``
        or in the user's cache folder.
    labels : int, path, sequence of str or None
        Which attributes are labels: the path of a Mulan XML file, a count (n > 0: the last n attributes,
        n < 0: the first), or a list of names. By default the XML file beside it, or the file itself, tells.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> load_dataset("enron")  # doctest: +SKIP
    Dataset('enron': 1702 rows, 1001 features (1001 categorical), 53 labels, cardinality 3.38)
    """
    path = Path(source) if _is_path(source) else find_dataset(os.fspath(source))
    if not path.is_file():
        raise FileNotFoundError(f"no such data file: {path}")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(_READERS)
        raise DataFormatError(f"{path}: cannot read files of type {path.suffix!r}; known types are {known}")
    return reader(path, labels)


def _is_path(source: str | os.PathLike[str]) -> bool:
    # A dataset's name may have a dot in it (rcv1.subset1), and a folder may have a dataset's name.
    path = Path(source)
    has_folder = path.name != os.fspath(source)
    return not isinstance(source, str) or has_folder or path.suffix.lower() in _READERS or path.is_file()
