"""Reports of runs: records -> summary dict -> tables, figures, and one HTML page that works offline.

>>> from labelrace.report import print_table, summarize, write_report
"""

from __future__ import annotations

from labelrace.report.summary import Summary, summarize
from labelrace.report.terminal import print_table
from labelrace.report.write import FORMATS, write_report

__all__ = ["FORMATS", "Summary", "print_table", "summarize", "write_report"]
