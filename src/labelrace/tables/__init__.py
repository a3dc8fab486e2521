"""Tables and texts in, tags out: `Tagger`; columns as one sparse matrix, online: `TableFeatures`."""

from __future__ import annotations

from labelrace.tables.column_kinds import Column
from labelrace.tables.features import TableFeatures
from labelrace.tables.read import file_tables, table_batches, text_tables
from labelrace.tables.state import TagCounts
from labelrace.tables.tagger import Tagger
from labelrace.tables.tags import tagged_dataset
from labelrace.tables.write import join_tags

__all__ = [
    "Column",
    "TableFeatures",
    "TagCounts",
    "Tagger",
    "file_tables",
    "join_tags",
    "table_batches",
    "tagged_dataset",
    "text_tables",
]
