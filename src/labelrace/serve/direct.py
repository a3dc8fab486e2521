"""A short path for frequent requests: from the guard straight to the function that answers them.

FastAPI finds a route and fills in a function's arguments again for every request. The few routes that clients use all
the time have one path each and take the request as it is: they are looked up by method and path. In the OpenAPI they
are routes like any other.
"""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send


class Direct:
    """The layer of ASGI that answers some routes itself; their exceptions go to the layer outside.

    Parameters
    ----------
    app : ASGI application
        It answers all other requests.
    routes : dict of (method, path) to APIRoute
        Their functions take a request and return a response.
    """

    def __init__(self, app: ASGIApp, routes: dict[tuple[str, str], APIRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        route = self._routes.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if route is None:
            await self._app(scope, receive, send)
            return
        # Where requests are counted, this tells which route it was.
        scope["route"] = route
        response = await route.endpoint(Request(scope, receive))
        await response(scope, receive, send)


def routes_of(app: FastAPI, paths: Iterable[str]) -> dict[tuple[str, str], APIRoute]:
    """Return the routes that post to some paths."""
    routes = [route for route in app.routes if isinstance(route, APIRoute)]
    found = {(method, route.path): route for route in routes for method in route.methods or ()}
    return {("POST", path): found["POST", path] for path in paths}
