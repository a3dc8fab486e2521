"""Tables in, tags out: `Tagger`."""

from __future__ import annotations

from labelrace.tagger.state import TagCounts
from labelrace.tagger.tables import batches_of, file_tables, joined, tagged_dataset, text_tables
from labelrace.tagger.tagger import Tagger

__all__ = ["TagCounts", "Tagger", "batches_of", "file_tables", "joined", "tagged_dataset", "text_tables"]
