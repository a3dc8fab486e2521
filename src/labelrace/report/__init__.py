"""Reports: records -> summary -> tables and charts -> one HTML page that works offline, and files.

- `summary`: what came out of the runs, as plain values; `runs` groups the records that it is made from.
- `tables` and `charts`: how it is shown, as data.
- `results`: the report of a run, a document of such tables and charts.
- `document`: what a report consists of, written in all formats; `page` renders HTML, `figures` draws files.
- `text`: numbers and words for readers.

>>> from labelrace.report import print_report, summarize, write_report
"""

from __future__ import annotations

from labelrace.report.document import FORMATS
from labelrace.report.run_report import print_report, write_report
from labelrace.report.summary import Summary, summarize

__all__ = ["FORMATS", "Summary", "print_report", "summarize", "write_report"]
