"""Who may ask what, from where, how much and how fast: everything a request passes before it reaches a route.

One layer of ASGI does all of it, in the order of what costs least: the host that was asked for, the page that asks,
the token and its role, the rate, the kind and the size of the body. Bodies are read here, whole, within a size and a
time. Answers get the headers that keep browsers from misusing them, and are counted and logged.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import ipaddress
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labelrace.serve.answers import ProblemAnswer
from labelrace.serve.logs import RequestLog
from labelrace.serve.metrics import Requests
from labelrace.serve.problems import Problem, busy

ROLES = ("predict", "teach", "admin")
USER, BODY = "labelrace.user", "labelrace.body"

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
# What nobody needs a token for: pages are templates without data, whose scripts ask with the token of their reader.
_PUBLIC = ("/", "/quality", "/tags", "/try", "/docs", "/openapi.json", "/favicon.ico")
# What whoever watches the service asks, by whatever name.
_HEALTH = ("/health", "/health/live", "/health/ready")
# Posts that must be JSON; pages may take files.
_JSON = ("/v1/", "/predict", "/setup", "/versions", "/webhook")
_SAFE = ("GET", "HEAD")

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
# Headers that must not be there twice, as two readers of a request could take different ones.
_ONCE = (b"host", b"content-type", b"content-length", b"authorization", b"idempotency-key", b"origin")
# What is read of a refused body, so that its sender sees the answer.
_DRAINED, _DRAIN_SECONDS = 1 << 20, 1.0

_logger = logging.getLogger("labelrace.serve")


class User(NamedTuple):
    """Who asks, and what they may."""

    name: str
    role: str


class Tokens:
    """Tokens with their roles; of a token only its digest is kept.

    Parameters
    ----------
    lines : iterable of str
        Lines such as ``teach 0f3c… Ann``: a role, a token, and optionally whose it is. Empty lines and those that begin
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
            self._users.append((_digest(parts[1]), User(name, parts[0])))
        digests = {digest for digest, _ in self._users}
        if len(digests) < len(self._users):
            raise ValueError("A token must be in the token file once.")

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """Return the tokens of a file."""
        tokens = cls(path.read_text(encoding="utf-8").splitlines())
        if not tokens:
            raise ValueError(f"{path} must have at least one token: a line such as 'admin <token>'.")
        return tokens

    def __bool__(self) -> bool:
        return bool(self._users)

    def user(self, token: str) -> User | None:
        """Return whose a token is; all are compared, each in constant time."""
        digest, found = _digest(token), None
        for known, user in self._users:
            if hmac.compare_digest(known, digest):
                found = user
        return found


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Where the service listens, and what a request may cost.

    Parameters
    ----------
    host, port
        The address; port 0 takes a free one.
    tokens : Tokens
        Without any, only an address of this machine can be bound, and who reaches it may do everything.
    allow_hosts : tuple of str, default=()
        Names by which the service may be asked for, beside ``localhost`` and the bound one.
    max_body : int, default=16_000_000
        Bytes of a body.
    body_seconds, header_seconds : float
        How long a request's body and headers may take to arrive.
    max_connections : int, default=1000
        Further ones are refused with 503.
    max_listeners : int, default=200
        Listeners of events; each holds a connection.
    rate : float, default=None
        Requests a second that one token or address may make in the long run, or None for as many as it likes; ten times
        as many may come at once.
    max_waiting : int, default=2000
        Rows that may wait to be predicted, and to be learned; further ones are refused with 429.
    stop_seconds : int, default=20
        How long running requests may take when the service stops.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Tokens = field(default_factory=Tokens)
    allow_hosts: tuple[str, ...] = ()
    max_body: int = 16_000_000
    body_seconds: float = 15.0
    header_seconds: float = 10.0
    max_connections: int = 1000
    max_listeners: int = 200
    rate: float | None = None
    max_waiting: int = 2000
    stop_seconds: int = 20

    def check(self) -> None:
        """Refuse to be reached by others without tokens."""
        if not self.tokens and not is_loopback(self.host):
            raise ValueError(
                f"host must be one of this machine (127.0.0.1) without tokens, got {self.host!r}: whoever reaches "
                "the service could change what it has learned. Give --token-file."
            )

    def hosts(self) -> frozenset[str]:
        """Return the names that the Host header may have."""
        return frozenset(
            name.lower().strip("[]") for name in ("localhost", "127.0.0.1", "::1", self.host, *self.allow_hosts)
        )


def is_loopback(host: str) -> bool:
    """Return whether an address or name reaches this machine only.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def user_of(scope: MutableMapping[str, Any]) -> User:
    """Return who asks; without tokens the name is what the request says, and the role admin."""
    user: User = scope[USER]
    return user


class Guard:
    """The layer of ASGI around all routes.

    Parameters
    ----------
    app : ASGI application
    options : ServerOptions
    requests : Requests
        Where requests are counted.
    log : RequestLog, default=None
        Where they are logged, if at all.
    """

    def __init__(self, app: ASGIApp, options: ServerOptions, requests: Requests, log: RequestLog | None = None) -> None:
        self._app = app
        self._options = options
        self._hosts = options.hosts()
        self._rates = Rates(options.rate) if options.rate else None
        self._requests = requests
        self._log = log
        # Bytes of bodies of requests that are not answered yet: many large ones must not fill the memory.
        self._held = 0
        self._max_held = 16 * options.max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, have it answered, count it."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        scope[USER] = User("", "")

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_headers(message.get("headers", ()))
            await send(message)

        held = 0
        try:
            headers = dict(scope["headers"])
            self._check(scope, headers)
            if scope["method"] not in _SAFE or b"content-length" in headers or b"transfer-encoding" in headers:
                body = await self._body(headers, receive)
                held = len(body)
                self._held += held
                scope[BODY] = body
                receive = _again(body, receive)
            await self._app(scope, receive, answer)
        except Problem as problem:
            await self._refuse(problem, scope, receive, answer)
        except Exception as error:  # A bug of ours: logged, and told without details.
            _logger.exception("A request of %s failed.", _template(scope), exc_info=error)
            if status:
                raise
            detail = "The service failed; the request may or may not have been served. Its log says more."
            await ProblemAnswer(Problem(500, "Internal error", detail))(scope, receive, answer)
        finally:
            self._held -= held
            self._note(scope, status, began)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Raise the problem of a request that is refused by its headers alone."""
        if len(headers) < len(scope["headers"]):
            names = [name for name, _ in scope["headers"]]
            for name in _ONCE:
                if names.count(name) > 1:
                    raise Problem(400, "Ambiguous request", f"The header {name.decode()} must be there once.")
        if scope["path"] in _HEALTH:
            return
        self._check_host(headers)
        if scope["method"] not in _SAFE:
            _check_origin(headers)
        user = self._user(scope, headers)
        scope[USER] = user
        needed = role_for(scope["method"], scope["path"], scope.get("client"))
        address = scope["client"][0] if scope.get("client") else ""
        if self._rates is not None:
            self._rates.check(f"token {user.name or user.role}" if self._options.tokens and user.role else address)
        if needed and ROLES.index(needed) > (ROLES.index(user.role) if user.role else -1):
            if not user.role:
                raise Problem(401, "Token needed", f"This needs a token with the role {needed}.")
            raise Problem(403, "Not allowed", f"This needs the role {needed}, the token has {user.role}.")
        if scope["method"] not in _SAFE and scope["path"].startswith(_JSON):
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if kind != b"application/json":
                shown = kind.decode("latin-1")[:80] or "none"
                raise Problem(415, "Not JSON", f"The Content-Type must be application/json, got {shown}.")

    def _check_host(self, headers: dict[bytes, bytes]) -> None:
        """Refuse a request to another name: a page elsewhere may give its own name this machine's address."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if name not in self._hosts:
            raise Problem(
                403, "Unknown host", f"The service is not known as {name[:80]!r}: start it with --allow-host."
            )

    def _user(self, scope: Scope, headers: dict[bytes, bytes]) -> User:
        """Return who asks; the role is empty where a token is needed and there is none that is known."""
        named = _name(headers)
        if not self._options.tokens:
            return User(named, "admin")
        kind, _, value = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        token = value.strip()
        if kind.lower() == "basic":
            try:
                token = base64.b64decode(token, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                token = ""
        elif kind.lower() != "bearer":
            token = ""
        user = self._options.tokens.user(token) if token else None
        if user is None:
            return User("", "")
        # A token that names nobody is shared: who uses it may say who they are.
        return user if user.name else user._replace(name=named)

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        """Return the whole body, or raise the problem of one that is too large or too slow."""
        limit = self._options.max_body
        too_large = Problem(413, "Too large", f"The body must have at most {limit:,} bytes: send several requests.")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > limit:
            raise too_large
        if self._held + int(length) > self._max_held:
            raise busy("The requests under way are too large together: try again.")
        parts, size = list[bytes](), 0
        try:
            async with asyncio.timeout(self._options.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Problem(400, "Incomplete request", "The connection was closed before the body ended.")
                    part = message.get("body", b"")
                    size += len(part)
                    if size > limit:
                        raise too_large
                    if not message.get("more_body", False):
                        return b"".join((*parts, part)) if parts else part
                    parts.append(part)
        except TimeoutError:
            seconds = self._options.body_seconds
            raise Problem(408, "Too slow", f"The body must arrive within {seconds:g} seconds.") from None

    async def _refuse(self, problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a problem; a connection with a body that was not read is closed."""
        headers = {}
        if problem.status == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="labelrace"'
        if BODY not in scope and any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"]):
            headers["Connection"] = "close"
            if problem.status != 408:
                await _drain(receive)
        await ProblemAnswer(problem, headers)(scope, receive, send)

    def _note(self, scope: Scope, status: int, began: float) -> None:
        """Count and log a request; 499 stands for one whose client went away."""
        template, seconds = _template(scope), time.perf_counter() - began
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._requests.add(method, template, status or 499, seconds)
        if self._log is not None:
            first = self._log.add(time.time(), method, template, status or 499, seconds, scope[USER].name)
            if first:
                asyncio.get_running_loop().call_later(0.2, self._log.flush)


_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class Rates:
    """Requests of each token or address: so many a second in the long run, ten times as many at once.

    Parameters
    ----------
    rate : float
        Requests a second.
    """

    _MAX_KEYS = 10_000

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = max(1.0, 10 * rate)
        # What each may still ask at once, and when that was.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, key: str) -> None:
        """Raise the problem of a key that asks too often."""
        now = time.monotonic()
        left, before = self._left.pop(key, (self._most, now))
        left = min(self._most, left + (now - before) * self._rate)
        self._left[key] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > self._MAX_KEYS:
            self._left.popitem(last=False)
        if left < 1:
            raise Problem(
                429,
                "Too many requests",
                f"{self._rate:g} requests a second are allowed.",
                retry_after=(1 - left) / self._rate,
            )


def role_for(method: str, path: str, client: tuple[str, int] | None = None) -> str:
    """Return the least role that a request needs; empty if it needs none.

    Examples
    --------
    >>> role_for("POST", "/v1/learn"), role_for("POST", "/v1/tags/merge"), role_for("GET", "/v1/tags/merge")
    ('teach', 'admin', 'predict')
    """
    if path == "/metrics":
        return "" if client is not None and is_loopback(client[0]) else "predict"
    if method in _SAFE and path in _PUBLIC:
        return ""
    if method in _SAFE and path.startswith("/v1/tags/"):
        return "predict"  # A tag may have the name of a change.
    while path not in _PATHS:
        path = path.rpartition("/")[0]
    return _PATHS[path]


def _check_origin(headers: dict[bytes, bytes]) -> None:
    """Refuse what a page of another origin has a browser send; other programs send neither header."""
    site = headers.get(b"sec-fetch-site", b"same-origin")
    origin = headers.get(b"origin")
    if site not in (b"same-origin", b"none"):
        raise Problem(403, "Another origin", "A page of another origin may not do this.")
    if origin is not None:
        try:
            address = urlsplit(origin.decode("latin-1")).netloc.lower()
        except ValueError:
            address = ""
        if not address or address != headers.get(b"host", b"").decode("latin-1").lower():
            raise Problem(403, "Another origin", "A page of another origin may not do this.")


def _name(headers: dict[bytes, bytes]) -> str:
    """Return who the request says it is from; names that a header cannot hold are percent-encoded."""
    value = headers.get(b"x-labelrace-user")
    if value is None:
        return ""
    name = unquote(value.decode("utf-8", "replace")).strip()
    if len(name) > 100 or not name.isprintable():
        raise Problem(400, "Wrong name", "X-Labelrace-User must have at most 100 characters that print.")
    return name


def _template(scope: Scope) -> str:
    """Return the path of the route, which has nothing of the request."""
    route = scope.get("route")
    return str(getattr(route, "path_format", None) or getattr(route, "path", "unmatched")) or "/"


def _with_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer with those that guard it, where it has none of its own."""
    listed = list(headers)
    own = {name for name, _ in listed}
    return listed + [item for item in _HEADERS.items() if item[0] not in own]


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was read once more, then what follows."""
    given = False

    async def once_more() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once_more


async def _drain(receive: Receive) -> None:
    """Read a little of a body that is refused, as a sender that still writes does not see the answer."""
    size = 0
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while size < _DRAINED:
                message = await receive()
                size += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        return


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
