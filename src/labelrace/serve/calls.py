"""The requests of a client and the reading of their answers, without sending anything.

Each call is a generator: it yields a request or a wait, gets the reply, and returns the result. The two clients
(`labelrace.serve.client`) differ in how they send and wait, and in nothing else.
"""

from __future__ import annotations

import email.utils
import json
import math
import random
import time
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit

from labelrace.exceptions import ServiceError

# Statuses after which the same request may succeed: too many requests, and a service or a proxy that is not available.
_AGAIN = frozenset((429, 502, 503, 504))
# Seconds to wait before the first repetition, which double with each, and the most to wait at all.
_FIRST_WAIT, _LONGEST_WAIT, _LONGEST_ASKED = 0.25, 10.0, 120.0
# Rows in a request, and in a page of rows; a service takes more of either only if it is told to.
_PART, _PAGE = 500, 200
# Characters of a key.
_KEY = 200
# The whole numbers up to this are exact as floats.
_EXACT = 2.0**53

T = TypeVar("T")
Row: TypeAlias = dict[str, Any]


class Request(NamedTuple):
    """A request: the path below the service's address, with parameters and body."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: Any = None
    key: str | None = None  # of a request that is to count once, however often it is sent

    @property
    def content(self) -> bytes | None:
        """The body as JSON."""
        return None if self.body is None else json.dumps(self.body, allow_nan=False).encode()

    @property
    def headers(self) -> dict[str, str]:
        """The headers that belong to this request."""
        sent = {} if self.body is None else {"Content-Type": "application/json"}
        return sent | ({} if self.key is None else {"Idempotency-Key": self.key})


class Wait(NamedTuple):
    """How long to wait before the next request."""

    seconds: float


class Reply(NamedTuple):
    """A reply; status 0 if there was none, and then the content says why."""

    status: int
    headers: Mapping[str, str]  # by names in lower case
    content: bytes


class Event(NamedTuple):
    """An event, ``position``, ``row``, ``open`` or ``mark``, with its data."""

    name: str
    data: dict[str, Any]


Steps: TypeAlias = Generator[Request | Wait, Reply | None, T]


def checked_url(url: str) -> str:
    """Return the address of a service, without a slash at its end.

    Examples
    --------
    >>> checked_url("http://127.0.0.1:8080/")
    'http://127.0.0.1:8080'
    """
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"url must be the address of a service, such as http://127.0.0.1:8080, got {url!r}.")
    return url.rstrip("/")


def is_loopback(url: str) -> bool:
    """Return whether an address is on this machine, so that no proxy is used."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def given_headers(token: str | None, user: str | None) -> dict[str, str]:
    """Return the headers of all requests: user and token."""
    for name, value in (("token", token), ("user", user)):
        if value is not None and not (isinstance(value, str) and value.strip() and value.isprintable()):
            raise ValueError(f"{name} must be a text in one line, got {'another' if name == 'token' else repr(value)}.")
    if token is not None and not token.isascii():
        raise ValueError("token must be of ASCII characters, got others: copy it from the token file.")
    sent = {"Accept": "application/json"}
    sent |= {} if token is None else {"Authorization": f"Bearer {token.strip()}"}
    # Headers are ASCII: a name in another script is sent as the pages send it.
    return sent | ({} if user is None else {"X-Labelrace-User": quote(user, safe=" ")})


def with_retries(request: Request, retries: int, url: str) -> Steps[Reply]:
    """Send a request until it is answered, and return the answer; in the end raise the last error.

    It is sent again after errors of the connection, and if the service is busy, after the seconds that it names.
    Nothing counts twice by that: predicting changes nothing that matters, and lessons have a key.
    """
    attempt = 0
    while True:
        reply = yield request
        assert reply is not None
        if 200 <= reply.status < 300:
            return reply
        yield wait_after(reply, attempt, retries, url)
        attempt += 1


def wait_after(reply: Reply, attempt: int, retries: int, url: str) -> Wait:
    """Return the wait after a reply that is no success; raise its error if a retry is useless."""
    if attempt >= retries or (reply.status and reply.status not in _AGAIN):
        raise error_of(reply, url)
    return Wait(_pause(attempt, reply.headers.get("retry-after")))


def _pause(attempt: int, retry_after: str | None) -> float:
    """Return the seconds to wait: those that the service names, or random ones that grow each time."""
    wanted = _retry_seconds(retry_after)
    drawn = random.uniform(0.5, 1.0) * min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt)
    # A little longer: refused clients come back at different times.
    return drawn if wanted is None else min(wanted, _LONGEST_ASKED) + random.uniform(0.0, 0.25)


def _retry_seconds(retry_after: str | None) -> float | None:
    """Read a header Retry-After: seconds, or a date."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
        except ValueError:
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def error_of(reply: Reply, url: str) -> ServiceError:
    """Return the error in a reply: a problem of RFC 9457, or whatever came instead."""
    if not reply.status:
        why = reply.content.decode(errors="replace").rstrip(".")
        return ServiceError(f"The service at {url} cannot be reached ({why}): check that it runs, and its address.")
    try:
        problem = json.loads(reply.content)
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or not isinstance(problem.get("detail"), str):
        return ServiceError(f"The service at {url} answered with status {reply.status}.", reply.status)
    errors = [error for error in problem.get("errors") or () if isinstance(error, dict)]
    return ServiceError(problem["detail"], reply.status, errors)


def json_of(reply: Reply, url: str) -> Any:
    """Read an answer; what is not JSON does not come from the service."""
    try:
        return json.loads(reply.content)
    except ValueError:
        raise ServiceError(
            f"The answer from {url} is not JSON: check that this is the address of a service.", reply.status
        ) from None


class Calls:
    """The calls of a service, as steps to take.

    Parameters
    ----------
    url : str
    retries : int
        How often a request is sent again at most.
    """

    def __init__(self, url: str, retries: int) -> None:
        if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
            raise ValueError(f"retries must be a whole number of at least 0, got {retries!r}.")
        self.url = checked_url(url)
        self.retries = retries

    def _ask(self, method: str, path: str, *, key: str | None = None, body: Any = None, **query: Any) -> Steps[Any]:
        texts = {name: str(value) for name, value in query.items() if value not in ("", None)}
        reply = yield from with_retries(Request(method, path, texts, body, key), self.retries, self.url)
        return json_of(reply, self.url)

    def predict(self, rows: Any, explain: bool) -> Steps[list[Row]]:
        """Predict rows, part by part."""
        found = list[Row]()
        for part in _parts(json_rows(rows)):
            answer = yield from self._ask("POST", "/v1/predict", body={"rows": part, "explain": bool(explain)})
            found += answer["rows"]
        return found

    def teach(self, path: str, rows: Any, key: str | None) -> Steps[dict[str, Any]]:
        """Send tagged rows, part by part: each part is learned whole or not at all."""
        parts, answer = list(_parts(json_rows(rows))), {"learned": 0, "position": None}
        key = key or new_key()
        keys = [key] if len(parts) == 1 else [f"{key}-{number}" for number in range(len(parts))]
        check_key(keys[-1] if keys else key, key)
        for part, whole in zip(parts, keys, strict=True):
            one = yield from self._ask("POST", path, body={"rows": part}, key=whole)
            answer = one | {"learned": answer["learned"] + one["learned"]}
        return answer

    def rows(self, state: str, order: str, search: str, tag: str, limit: int) -> Steps[list[Row]]:
        """List rows, page by page."""
        found, after = list[Row](), ""
        while len(found) < limit:
            size = min(limit - len(found), _PAGE)
            query: dict[str, Any] = {
                "state": state,
                "order": order,
                "search": search,
                "tag": tag,
                "limit": size,
                "after": after,
            }
            page = yield from self._ask("GET", "/v1/rows", **query)
            found += page["rows"]
            after = page["next"] or ""
            if not after:
                break
        return found

    def row(self, id: str | int) -> Steps[Row]:
        """Return one row."""
        return (yield from self._ask("GET", f"/v1/rows/{quote(str(id), safe='')}"))

    def tags(self, search: str, limit: int) -> Steps[list[dict[str, Any]]]:
        """List tags."""
        answer = yield from self._ask("GET", "/v1/tags", search=search, limit=limit)
        return answer["tags"]

    def change_tags(self, verb: str, body: dict[str, Any], preview: bool) -> Steps[dict[str, Any]]:
        """Rename, merge, retire or describe tags, or preview that."""
        body = body | {"preview": bool(preview)}
        return (yield from self._ask("POST", f"/v1/tags/{verb}", body=body, key=None if preview else new_key()))

    def status(self) -> Steps[dict[str, Any]]:
        """Get the state of the service, see `Client.status`."""
        return (yield from self._ask("GET", "/v1/status"))

    def quality(self) -> Steps[dict[str, Any]]:
        """Get the quality of the suggestions, see `Client.quality`."""
        return (yield from self._ask("GET", "/v1/quality"))


def check_key(sent: str, key: str) -> None:
    """Refuse a key that no header can hold, as it is sent: with the number of the part, if there are several.

    Examples
    --------
    >>> check_key("May-0", "May")
    """
    if not isinstance(key, str) or not (sent.isascii() and sent.isprintable()):
        raise ValueError(f"key must be of printable ASCII characters, got {key!r:.80}.")
    if len(sent) > _KEY:
        most = _KEY - len(sent) + len(key)
        parts = "" if sent == key else f" for so many rows, which go in parts of {_PART} with a number at their keys"
        raise ValueError(f"key must have at most {most} characters{parts}, got {len(key)}.")


def new_key() -> str:
    """Return a key that no other request has."""
    return uuid.uuid4().hex


def _parts(rows: list[Row]) -> Iterator[list[Row]]:
    """Split rows into requests."""
    return (rows[start : start + _PART] for start in range(0, len(rows), _PART))


def json_rows(rows: Any) -> list[Row]:
    """Turn a table of any kind into rows of a request.

    Cells that are missing in a data frame or an Arrow table are left out; those of dicts are sent as they are. Dates
    are texts, whole numbers have no decimal point, and sets are lists.

    Examples
    --------
    >>> json_rows([{"id": 7, "title": "Hot oven", "tags": {"oven"}}])
    [{'id': 7, 'title': 'Hot oven', 'tags': ['oven']}]
    """
    # Imported here, as other calls do without pyarrow.
    from labelrace.tables.read import as_table

    table = as_table(rows)
    if not table.has_names:
        raise ValueError("rows must have columns with names: give a data frame, an Arrow table or a list of dicts.")
    columns = {name: [_json_cell(cell, name) for cell in cells] for name, cells in table.columns.items()}
    if isinstance(rows, list | tuple):
        # A missing cell and None mean different things.
        return [{name: columns[name][number] for name in row} for number, row in enumerate(rows)]
    found = ({name: cells[number] for name, cells in columns.items()} for number in range(table.n_rows))
    return [{name: cell for name, cell in row.items() if cell is not None} for row in found]


def _json_cell(cell: Any, name: str) -> Any:
    """Return a cell as a JSON value."""
    if cell is None or isinstance(cell, str | bool | int):
        return cell
    if hasattr(cell, "tolist"):
        # NumPy: its scalars, among them dates, and arrays within cells.
        cell = cell.tolist()
    if isinstance(cell, float):
        if math.isnan(cell):
            return None
        if math.isinf(cell):
            raise ValueError(f"rows must have finite numbers, got {cell} in the column {name!r}.")
        return int(cell) if cell.is_integer() and abs(cell) < _EXACT else cell
    if hasattr(cell, "isoformat"):
        return cell.isoformat()
    if isinstance(cell, set | frozenset):
        return sorted(str(part) for part in cell)
    if isinstance(cell, Sequence) and not isinstance(cell, bytes | bytearray):
        return [_json_cell(part, name) for part in cell]
    if cell is None or isinstance(cell, str | bool | int):
        return cell
    raise ValueError(
        f"rows must have texts, numbers, dates, true or false, or lists of texts in their cells, got "
        f"{type(cell).__name__} in the column {name!r}."
    )


class EventReader:
    r"""Parses the bytes of a stream of server-sent events.

    Examples
    --------
    >>> reader = EventReader()
    >>> list(reader.read(b'event: position\ndata: {"rows"'))
    []
    >>> list(reader.read(b': 5}\n\n'))
    [Event(name='position', data={'rows': 5})]
    """

    def __init__(self) -> None:
        self._left = b""
        self._name, self._data = "message", list[str]()

    def read(self, part: bytes) -> Iterator[Event]:
        """Take some bytes and yield the events that they complete."""
        *lines, self._left = (self._left + part).split(b"\n")
        for line in lines:
            field, _, value = line.rstrip(b"\r").decode(errors="replace").partition(":")
            if field == "event":
                self._name = value.strip()
            elif field == "data":
                self._data.append(value.removeprefix(" "))
            elif not field and not value and (event := self._take()) is not None:
                yield event

    def _take(self) -> Event | None:
        """Return the event that an empty line ends, if it is one."""
        name, text = self._name, "\n".join(self._data)
        self._name, self._data = "message", []
        try:
            data = json.loads(text)
        except ValueError:
            return None
        return Event(name, data) if isinstance(data, dict) else None


class LineReader:
    """Splits the bytes of an answer into whole lines."""

    def __init__(self) -> None:
        self._left = b""

    def read(self, part: bytes) -> Iterator[bytes]:
        """Take some bytes and yield the lines that they complete, each with its end."""
        *lines, self._left = (self._left + part).split(b"\n")
        return (line + b"\n" for line in lines)

    def rest(self) -> Iterator[bytes]:
        """Yield what came after the last end of a line."""
        return iter([self._left] if self._left else [])
