"""A table with tags as a dataset of numbers, for those who compare models on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from labelrace.exceptions import DataFormatError
from labelrace.features import TableFeatures
from labelrace.streams import Dataset

__all__ = ["tagged_dataset"]


def tagged_dataset(tagger: Any, source: Any, delimiter: str | None = None) -> tuple[Dataset, TableFeatures]:
    """Turn a table into the matrices that a tagger's model would learn, batch by batch, but as wide as the last one.

    Parameters
    ----------
    tagger : Tagger
        Its parameters tell what the columns are; it is not changed.
    source : table or path
    delimiter : str, default=None
        What separates the cells of a CSV file.

    Returns
    -------
    dataset, features
    """
    features = tagger.new_features()
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
    return Dataset(X, Y, tuple(features.get_feature_names_out()), tuple(places), mask, name), features
