"""Reports: records -> summary -> tables, figures, and one HTML page that works offline.

>>> from labelrace.report import print_report, summarize, write_report
"""

from __future__ import annotations

from labelrace.report.page import Document
from labelrace.report.results import print_report, report_document, write_report
from labelrace.report.summary import Summary, summarize
from labelrace.report.write import FORMATS, print_document, write_document

__all__ = [
    "FORMATS",
    "Document",
    "Summary",
    "print_document",
    "print_report",
    "report_document",
    "summarize",
    "write_document",
    "write_report",
]
