"""A table with tags as a dataset of numbers, to compare models on it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from labelrace.exceptions import DataFormatError
from labelrace.features import TableFeatures
from labelrace.streams import Dataset

__all__ = ["TaggedDataset", "tagged_dataset"]


@dataclass(frozen=True, eq=False)
class TaggedDataset(Dataset):
    """A dataset that was made from a table with tags.

    Attributes
    ----------
    feature_seconds : float
        CPU time to turn the table into matrices, which is the same for every model.
    """

    feature_seconds: float = 0.0


def tagged_dataset(tagger: Any, source: Any, delimiter: str | None = None) -> tuple[TaggedDataset, TableFeatures]:
    """Turn a table into the matrices that a tagger's model would learn, all with the columns of the last batch.

    The table is read once, batch by batch: only the cells of one batch are in memory at a time.

    Parameters
    ----------
    tagger : Tagger
        Its parameters say what the columns are; it is not changed.
    source : table or path
    delimiter : str, default=None
        The delimiter of a CSV file.

    Returns
    -------
    dataset, features
    """
    start, features = time.process_time(), tagger.new_features()
    parts, rows, places = list[Any](), list[list[int]](), dict[str, int]()
    for table, tags, _ in tagger.tagged_batches(source, delimiter=delimiter):
        known = [row for row, names in enumerate(tags) if names is not None or tagger.untagged == "none"]
        if not known:
            continue
        parts.append(features.partial_fit_transform(table)[known])
        rows += [[places.setdefault(tag, len(places)) for tag in sorted(tags[row] or ())] for row in known]
    if not places:
        raise DataFormatError(f"{source}: no row has tags; name the column that holds them.")
    width = parts[-1].shape[1]
    for part in parts:
        part.resize((part.shape[0], width))
    ends = np.cumsum([0, *map(len, rows)])
    indices = np.array([place for row in rows for place in row], dtype=np.int32)
    Y = scipy.sparse.csr_array((np.ones(len(indices), np.int8), indices, ends), shape=(len(rows), len(places)))
    X = scipy.sparse.vstack(parts, format="csr")
    name = Path(source).name.partition(".")[0] if isinstance(source, (str, Path)) else "table"
    mask = np.zeros(width, dtype=bool)
    seconds = time.process_time() - start
    names = tuple(features.get_feature_names_out())
    return TaggedDataset(X, Y, names, tuple(places), mask, name, feature_seconds=seconds), features
