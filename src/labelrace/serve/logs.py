"""Structured logs on the standard error: a JSON object a line, without anything of the rows."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime

_LEVELS = {"level": "INFO", "handlers": ["stderr"], "propagate": False}

# For `logging.config.dictConfig`; uvicorn takes it as it is.
CONFIG = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "labelrace.serve.logs.Formatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}},
    "loggers": {
        "labelrace": _LEVELS,
        # Its own reports of starting and stopping are of no use beside ours.
        "uvicorn": _LEVELS | {"level": "ERROR"},
        "asyncio": _LEVELS | {"level": "ERROR"},
    },
}


class Formatter(logging.Formatter):
    """Formats a record as JSON; of an exception its type and where it was raised, as its message may quote a row."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "time": _time(record.created),
            "level": record.levelname.lower(),
            "message": record.getMessage().strip(),
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            frames = traceback.extract_tb(error.__traceback__)
            line["error"] = type(error).__name__
            line["where"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(line)


class RequestLog:
    """A line for each request, written a few times a second rather than one by one.

    Parameters
    ----------
    write : callable, default=None
        Takes a text; by default it goes to the standard error.
    """

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        self._write = write or _to_stderr
        self._requests: list[tuple[float, str, str, int, float, str | None]] = []

    def add(self, time: float, method: str, path: str, status: int, seconds: float, user: str | None) -> bool:
        """Note a request; return whether it is the first since the last `flush`."""
        self._requests.append((time, method, path, status, seconds, user))
        return len(self._requests) == 1

    def flush(self) -> None:
        """Write what was noted."""
        requests, self._requests = self._requests, []
        if requests:
            self._write("".join(map(_request_line, requests)))


def _request_line(request: tuple[float, str, str, int, float, str | None]) -> str:
    time, method, path, status, seconds, user = request
    line = {"time": _time(time), "method": method, "path": path, "status": status, "ms": round(1000 * seconds, 2)}
    return json.dumps(line | ({"user": user} if user else {})) + "\n"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
