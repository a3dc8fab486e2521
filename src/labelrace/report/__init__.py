"""Reports: records -> summary -> tables, figures, and one HTML page that works offline.

>>> from labelrace.report import print_report, summarize, write_report
"""

from __future__ import annotations

from labelrace.report.results import print_report, write_report
from labelrace.report.summary import Summary, summarize
from labelrace.report.write import FORMATS

__all__ = ["FORMATS", "Summary", "print_report", "summarize", "write_report"]
