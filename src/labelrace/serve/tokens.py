"""Tokens and their roles: the user of a request, and the role that its path needs."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from labelrace.serve.origins import PUBLIC, SAFE, is_loopback

ROLES = ("predict", "teach", "admin")
# The roles of paths: the longest that a request's path begins with counts.
_PATHS = {
    "": "predict",
    "/static": "",
    "/v1": "admin",
    "/v1/predict": "predict",
    "/v1/status": "predict",
    "/v1/quality": "predict",
    "/v1/events": "predict",
    "/v1/tags": "predict",
    "/v1/tags/rename": "admin",
    "/v1/tags/merge": "admin",
    "/v1/tags/retire": "admin",
    "/v1/tags/describe": "teach",
    "/v1/rows": "teach",
    "/v1/learn": "teach",
    "/v1/feedback": "teach",
    "/webhook": "teach",
}


class User(NamedTuple):
    """A user and their role."""

    name: str
    role: str


class Tokens:
    """Tokens with their roles; of a token only its digest is kept.

    Parameters
    ----------
    lines : iterable of str
        Lines such as ``teach 0f3c… Ann``: a role, a token, and optionally its user. Empty lines and those that begin
        with ``#`` are skipped.

    Examples
    --------
    >>> tokens = Tokens(["teach correct-horse-battery Ann"])
    >>> tokens.user("correct-horse-battery")
    User(name='Ann', role='teach')
    >>> tokens.user("wrong") is None
    True
    """

    _MIN_LENGTH = 16

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._users: list[tuple[bytes, User]] = []
        for number, line in enumerate(lines, 1):
            parts = line.split(maxsplit=2)
            if not parts or parts[0].startswith("#"):
                continue
            if len(parts) < 2 or parts[0] not in ROLES:
                raise ValueError(f"Line {number} of the token file must be a role ({', '.join(ROLES)}) and a token.")
            if len(parts[1]) < self._MIN_LENGTH or not parts[1].isascii():
                least = f"at least {self._MIN_LENGTH} ASCII characters"
                raise ValueError(f"Line {number} of the token file must have a token of {least}.")
            name = parts[2].strip() if len(parts) > 2 else ""
            self._users.append((digest(parts[1]), User(name, parts[0])))
        if len({known for known, _ in self._users}) < len(self._users):
            raise ValueError("A token must be in the token file once.")

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """Return the tokens of a file."""
        try:
            tokens = cls(path.read_text(encoding="utf-8-sig").splitlines())
        except UnicodeDecodeError:
            raise ValueError(f"{path} must be a text in UTF-8: save it as one.") from None
        if not tokens:
            raise ValueError(f"{path} must have at least one token: a line such as 'admin <token>'.")
        return tokens

    def __bool__(self) -> bool:
        return bool(self._users)

    def user(self, token: str) -> User | None:
        """Return the user of a token; all are compared, each in constant time."""
        given, found = digest(token), None
        for known, user in self._users:
            if hmac.compare_digest(known, given):
                found = user
        return found


def token_of(headers: Mapping[bytes, bytes]) -> str:
    """Return the token of a request, empty if it has none; a browser sends it as a password.

    Examples
    --------
    >>> token_of({b"authorization": b"Bearer correct-horse-battery"})
    'correct-horse-battery'
    """
    kind, _, value = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""


def role_for(method: str, path: str, client: tuple[str, int] | None = None) -> str:
    """Return the least role that a request needs; empty if it needs none.

    Examples
    --------
    >>> role_for("POST", "/v1/learn"), role_for("POST", "/v1/tags/merge"), role_for("GET", "/v1/tags/merge")
    ('teach', 'admin', 'predict')
    """
    if path == "/metrics":
        return "" if client is not None and is_loopback(client[0]) else "predict"
    if method in SAFE and path in PUBLIC:
        return ""
    if method in SAFE and path.startswith("/v1/tags/"):
        return "predict"  # A tag may have the name of a change.
    while path not in _PATHS:
        path = path.rpartition("/")[0]
    return _PATHS[path]


def digest(token: str) -> bytes:
    """Return the digest of a token."""
    return hashlib.sha256(token.encode()).digest()
