"""Tables and texts as matrices, online."""

from __future__ import annotations

from labelrace.features.kinds import Column
from labelrace.features.table import TableFeatures

__all__ = ["Column", "TableFeatures"]
