"""The checks of a request before it reaches a route: token, host and origin, rate and size.

One layer of ASGI does all of it, the cheapest checks first: the host that the request names and the page that sends it
(`origins`), the token and its role (`tokens`), the rate and the size of the body (`bounds`). Bodies are read here,
whole, within a size and a time. Answers get the headers that keep browsers from misusing them, and are counted and
logged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labelrace.serve.answers import ProblemAnswer
from labelrace.serve.bounds import Bodies, Rates, again, drain
from labelrace.serve.logs import RequestLog
from labelrace.serve.metrics import Requests
from labelrace.serve.origins import SAFE, check_host, check_once, check_origin, guarded, is_loopback, is_visit, name_of
from labelrace.serve.problems import Problem
from labelrace.serve.tokens import ROLES, Tokens, User, digest, role_for, token_of

USER, BODY = "labelrace.user", "labelrace.body"

# Paths for monitoring, which are answered for any host name.
_HEALTH = ("/health", "/health/live", "/health/ready")
# Posts that must be JSON; pages may take files.
_JSON = ("/v1/", "/predict", "/setup", "/webhook")
# What is sent without an end, or may be long: there is no asking for its head alone.
_STREAMS = ("/v1/events", "/v1/export")
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))

_logger = logging.getLogger("labelrace.serve")


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Where the service listens, and the limits of requests.

    Parameters
    ----------
    host, port
        The address; port 0 takes a free one.
    tokens : Tokens
        Without any, only an address of this machine can be bound, and anyone who reaches it may do everything.
    allow_hosts : tuple of str, default=()
        Further host names that requests may have, beside ``localhost`` and the bound one.
    max_body : int, default=10_000_000
        Bytes of a body.
    body_seconds, header_seconds : float
        How long a request's body and headers may take to arrive.
    max_connections : int, default=1000
        Further ones are refused with 503.
    max_listeners : int, default=200
        Listeners of events; each holds a connection.
    rate : float, default=None
        Requests a second that one token or address may make in the long run, or None for no limit; ten times as
        many may come at once.
    max_waiting : int, default=2000
        Rows that may wait to be predicted, and to be learned; further ones are refused with 429.
    send_seconds : float
        How long a client may read nothing of its answer.
    stop_seconds : int, default=20
        How long running requests may take when the service stops.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Tokens = field(default_factory=Tokens)
    allow_hosts: tuple[str, ...] = ()
    max_body: int = 10_000_000
    body_seconds: float = 15.0
    header_seconds: float = 10.0
    max_connections: int = 1000
    max_listeners: int = 200
    rate: float | None = None
    max_waiting: int = 2000
    send_seconds: float = 30.0
    stop_seconds: int = 20

    def check(self) -> None:
        """Refuse to be reached by others without tokens."""
        if not self.tokens and not is_loopback(self.host):
            raise ValueError(
                f"host must be one of this machine (127.0.0.1) without tokens, got {self.host!r}: anyone who reaches "
                "the service could change the model. Give --token-file."
            )

    def hosts(self) -> frozenset[str]:
        """Return the names that the Host header may have."""
        return frozenset(
            name.lower().strip("[]") for name in ("localhost", "127.0.0.1", "::1", self.host, *self.allow_hosts)
        )


def user_of(scope: MutableMapping[str, Any]) -> User:
    """Return the user of a request; without tokens the name is that in the request, and the role admin."""
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
        self._bodies = Bodies(options.max_body, options.body_seconds)

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
        routed = scope

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = guarded(message.get("headers", ()))
            await send(message)

        body = b""
        try:
            headers = dict(scope["headers"])
            self._check(scope, headers)
            if scope["method"] not in SAFE or b"content-length" in headers or b"transfer-encoding" in headers:
                scope[BODY] = body = await self._bodies.read(headers, receive)
                receive = again(body, receive)
            if scope["method"] == "HEAD" and scope["path"] not in _STREAMS:
                # Answered as GET is; the server leaves the body out.
                routed = {**scope, "method": "GET"}
            await self._app(routed, receive, answer)
        except Problem as problem:
            await self._refuse(problem, scope, receive, answer)
        except Exception as error:  # A bug of ours: logged, and answered without details.
            _logger.exception("A request of %s failed.", _template(routed), exc_info=error)
            if status:
                raise
            detail = "The service failed; the request may or may not have been served. See the log of the service."
            await ProblemAnswer(Problem(500, "Internal error", detail))(scope, receive, answer)
        finally:
            self._bodies.release(body)
            self._note(scope, _template(routed), status, began)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Raise the problem of a request that is refused by its headers alone."""
        if len(headers) < len(scope["headers"]):
            check_once(scope["headers"])
        if scope["path"] in _HEALTH:
            return
        check_host(headers, self._hosts)
        if not is_visit(scope["method"], scope["path"], headers):
            check_origin(headers)
        user = self._user(headers)
        scope[USER] = user
        needed = role_for(scope["method"], scope["path"], scope.get("client"))
        if self._rates is not None:
            # By the token itself: names may be shared, or come from the request.
            is_known = self._options.tokens and user.role
            address = scope["client"][0] if scope.get("client") else ""
            self._rates.check(digest(token_of(headers)) if is_known else address)
        if needed and ROLES.index(needed) > (ROLES.index(user.role) if user.role else -1):
            if not user.role:
                raise Problem(401, "Token needed", f"This needs a token with the role {needed}.")
            raise Problem(403, "Not allowed", f"This needs the role {needed}, the token has {user.role}.")
        if scope["method"] not in SAFE and headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise Problem(415, "Encoded body", "The body must be sent as it is, without a Content-Encoding.")
        if scope["method"] == "POST" and scope["path"].startswith(_JSON):
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if kind != b"application/json":
                shown = kind.decode("latin-1")[:80] or "none"
                raise Problem(415, "Not JSON", f"The Content-Type must be application/json, got {shown}.")

    def _user(self, headers: dict[bytes, bytes]) -> User:
        """Return the user of a request; the role is empty if a known token is needed and missing."""
        named = name_of(headers)
        if not self._options.tokens:
            return User(named, "admin")
        token = token_of(headers)
        user = self._options.tokens.user(token) if token else None
        if user is None:
            return User("", "")
        # A token without a name is shared: the request may name its user.
        return user if user.name else user._replace(name=named)

    async def _refuse(self, problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a problem; a connection with a body that was not read is closed."""
        headers = {}
        if problem.status == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="labelrace"'
        if BODY not in scope and any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"]):
            headers["Connection"] = "close"
            if problem.status != 408:
                await drain(receive)
        await ProblemAnswer(problem, headers)(scope, receive, send)

    def _note(self, scope: Scope, template: str, status: int, began: float) -> None:
        """Count and log a request; 499 stands for one whose client went away."""
        seconds = time.perf_counter() - began
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._requests.add(method, template, status or 499, seconds)
        if self._log is not None:
            first = self._log.add(time.time(), method, template, status or 499, seconds, scope[USER].name)
            if first:
                asyncio.get_running_loop().call_later(0.2, self._log.flush)


def _template(scope: Scope) -> str:
    """Return the path of the route, without values of the request."""
    route = scope.get("route")
    return str(getattr(route, "path_format", None) or getattr(route, "path", "unmatched")) or "/"
