"""Tables and texts in, tags out: `Tagger`; columns as one sparse matrix, online: `TableFeatures`."""

from __future__ import annotations

from labelrace.tables.features import TableFeatures
from labelrace.tables.kinds import Column
from labelrace.tables.state import TagCounts
from labelrace.tables.tagger import Tagger
from labelrace.tables.tags import batches_of, file_tables, joined, tagged_dataset, text_tables

__all__ = [
    "Column",
    "TableFeatures",
    "TagCounts",
    "Tagger",
    "batches_of",
    "file_tables",
    "joined",
    "tagged_dataset",
    "text_tables",
]
