"""Metrics of the requests and of the service, in the form of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any

# Upper bounds of the histogram, in seconds.
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

# The values of `Service.status`, with the help of the metric.
_STATUS = {
    "rows": "Rows learned.",
    "position": "Position of the journal up to which this process has learned.",
    "journal_position": "Newest position of the journal.",
    "snapshot_position": "Position of the newest snapshot.",
    "tags": "Tags known.",
    "waiting": "Rows that wait for their tags.",
    "known": "Rows that were sent again with the same tags, and not learned again.",
    "corrections": "Rows learned again with other tags.",
    "alarms": "Alarms of falling quality.",
    "drifts": "Drifts that were confirmed.",
}


class Requests:
    """Counts of requests by method, path and status, and how long they took by path.

    Paths are those of the routes, so that no request can make a new series.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, int], int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def add(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (method, path, status)
        self._counts[key] = self._counts.get(key, 0) + 1
        buckets = self._buckets.get(path)
        if buckets is None:
            buckets = self._buckets[path] = [0] * (len(_BOUNDS) + 1)
            self._seconds[path] = 0.0
        buckets[bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[path] += seconds

    def lines(self) -> Iterable[str]:
        """Yield the counts as text."""
        yield from _head("requests_total", "counter", "Requests answered.")
        for (method, path, status), count in sorted(self._counts.items()):
            yield f'labelrace_requests_total{{method="{method}",path="{_escaped(path)}",status="{status}"}} {count}'
        yield from _head("request_seconds", "histogram", "Seconds from the headers of a request to its answer's end.")
        for path, buckets in sorted(self._buckets.items()):
            label, total = f'path="{_escaped(path)}"', 0
            for bound, count in zip((*_BOUNDS, "+Inf"), buckets, strict=True):
                total += count
                yield f'labelrace_request_seconds_bucket{{{label},le="{bound}"}} {total}'
            yield f"labelrace_request_seconds_sum{{{label}}} {self._seconds[path]:.6f}"
            yield f"labelrace_request_seconds_count{{{label}}} {total}"


def as_text(requests: Requests, status: Mapping[str, Any], gauges: Mapping[str, tuple[str, float]]) -> str:
    """Return all metrics as text.

    Parameters
    ----------
    requests : Requests
    status : dict
        The values of `Service.status`.
    gauges : dict
        Further names with their help and value.

    Examples
    --------
    >>> print(as_text(Requests(), {"rows": 12}, {}).splitlines()[-1])
    labelrace_rows 12
    """
    lines = list(requests.lines())
    said = {name: (text, status[name]) for name, text in _STATUS.items() if isinstance(status.get(name), int | float)}
    if {"position", "journal_position"} <= said.keys():
        behind = max(0, status["journal_position"] - status["position"])
        said["lag"] = ("Positions of the journal that this process has not learned yet.", behind)
    for name, (text, value) in (said | dict(gauges)).items():
        lines += [*_head(name, "gauge", text), f"labelrace_{name} {value}"]
    return "\n".join(lines) + "\n"


def _head(name: str, kind: str, text: str) -> tuple[str, str]:
    return f"# HELP labelrace_{name} {text}", f"# TYPE labelrace_{name} {kind}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
