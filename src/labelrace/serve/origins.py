"""The origin of a request: the host that it names, the page that sends it, and the headers for browsers."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Mapping, Sequence
from urllib.parse import unquote, urlsplit

from labelrace.serve.problems import Problem

SAFE = ("GET", "HEAD")
"""Methods that change nothing."""

PUBLIC = ("/", "/quality", "/tags", "/try", "/docs", "/openapi.json", "/favicon.ico")
"""What nobody needs a token for: pages are templates without data, whose scripts ask with the token of their reader."""

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


def check_once(listed: Sequence[tuple[bytes, bytes]]) -> None:
    """Refuse headers that are there twice, where two readers could take different ones."""
    names = [name for name, _ in listed]
    for name in _ONCE:
        if names.count(name) > 1:
            raise Problem(400, "Ambiguous request", f"The header {name.decode()} must be there once.")


def check_host(headers: Mapping[bytes, bytes], known: Collection[str]) -> None:
    """Refuse a request to another name: a page elsewhere may give its own name this machine's address."""
    host = headers.get(b"host", b"").decode("latin-1").lower()
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name not in known:
        raise Problem(403, "Unknown host", f"The service is not known as {name[:80]!r}: start it with --allow-host.")


def is_visit(method: str, path: str, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether somebody opens a page, or what has no data either, which a link elsewhere may lead to.

    >>> is_visit("GET", "/tags", {b"sec-fetch-mode": b"navigate"}), is_visit("GET", "/v1/export", {})
    (True, False)
    """
    return method in SAFE and path in PUBLIC and headers.get(b"sec-fetch-mode") == b"navigate"


def check_origin(headers: Mapping[bytes, bytes]) -> None:
    """Refuse requests that a browser sends for a page of another origin; other programs send neither header."""
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


def name_of(headers: Mapping[bytes, bytes]) -> str:
    """Return the user that a request names; names that a header cannot hold are percent-encoded."""
    value = headers.get(b"x-labelrace-user")
    if value is None:
        return ""
    name = unquote(value.decode("utf-8", "replace")).strip()
    if len(name) > 100 or not name.isprintable():
        raise Problem(400, "Wrong name", "X-Labelrace-User must have at most 100 printable characters.")
    return name


def guarded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer, with the security headers that it does not set itself."""
    listed = list(headers)
    own = {name for name, _ in listed}
    return listed + [item for item in _HEADERS.items() if item[0] not in own]
