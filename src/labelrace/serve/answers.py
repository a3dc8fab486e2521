"""Bodies in and answers out: JSON that is read strictly, and encoded once."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pydantic_core import to_json
from starlette.responses import JSONResponse

from labelrace.serve.problems import Problem

# Escapes that may be half of a surrogate pair.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class Answer(JSONResponse):
    """A value as JSON."""

    def render(self, content: Any) -> bytes:
        """Return the value as bytes; numbers that JSON does not have are null."""
        return to_json(content, inf_nan_mode="null")


class ProblemAnswer(Answer):
    """A problem in the form of RFC 9457."""

    media_type = "application/problem+json"

    def __init__(self, problem: Problem, headers: Mapping[str, str] | None = None) -> None:
        more = dict(headers or {})
        if problem.retry_after is not None:
            more["Retry-After"] = str(math.ceil(problem.retry_after))
        super().__init__(problem.as_json(), problem.status, more)


def read_json(body: bytes) -> Any:
    """Return the value of a body, read strictly: UTF-8, no name twice in an object, no infinite numbers.

    Examples
    --------
    >>> read_json(b'{"rows": [{"title": "An oven"}]}')
    {'rows': [{'title': 'An oven'}]}
    >>> read_json(b'{"rows": [], "rows": []}')
    Traceback (most recent call last):
    ...
    labelrace.serve.problems.Problem: The body must be JSON: duplicate name 'rows' in an object.
    """
    try:
        text = body.decode()
        value = _decoder.decode(text)
        if _SURROGATE.search(text):
            to_json(value)
    except RecursionError:
        raise _malformed("it is nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg}, line {error.lineno} column {error.colno}.") from None
    except UnicodeDecodeError:
        raise _malformed("it is not UTF-8.") from None
    except ValueError as error:
        raise _malformed("it has an unpaired surrogate." if "surrogate" in str(error) else str(error)) from None
    return value


def invalid(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """Return the problem of a request that pydantic refused: each error names the field, and the row if it is in one.

    Examples
    --------
    >>> error = {"loc": ("query", "limit"), "msg": "Input should be a valid integer"}
    >>> invalid([error]).as_json()["errors"]
    [{'field': 'limit', 'detail': 'Input should be a valid integer'}]
    """
    told = [_error(error) for error in errors]
    first = told[0]
    more = f" And {len(told) - 1} more." if len(told) > 1 else ""
    return Problem(422, "Request has wrong values", f"{first['field']}: {first['detail']}.{more}", told)


def _error(error: Mapping[str, Any]) -> dict[str, Any]:
    where = [part for part in error["loc"] if part not in ("body", "query", "path", "header")]
    row = {"row": where[1]} if len(where) > 1 and where[0] == "rows" and isinstance(where[1], int) else {}
    field = ".".join(printable(str(part)) for part in (where[2:] if row else where))
    return row | {"field": field or "body", "detail": printable(str(error["msg"]))}


def printable(text: str) -> str:
    """Return a text of a request so that it can be shown: at most 200 characters, all of which can be encoded."""
    return text[:200].encode("utf-8", "backslashreplace").decode()


def _malformed(detail: str) -> Problem:
    return Problem(400, "Malformed JSON", f"The body must be JSON: {detail}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"duplicate name {printable(twice)!r} in an object.")
    return values


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:20]} is too large.")
    return value


def _whole(text: str) -> int | float:
    """Return a whole number; one that does not fit 64 bits is a float, as in other languages."""
    return int(text) if len(text) < 19 else _finite(text)


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number.")


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_int=_whole, parse_constant=_constant)
