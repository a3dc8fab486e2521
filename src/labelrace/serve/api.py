"""The HTTP API: forms in, problems out. The service does the work; requests are gathered before it.

Frequent routes take the request as it is and return bytes; their forms are described for the OpenAPI beside them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from types import UnionType
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from labelrace import __version__
from labelrace.serve import forms, metrics
from labelrace.serve.answers import Answer, ProblemAnswer, invalid, read_json
from labelrace.serve.api_page import add_api_page
from labelrace.serve.direct import Direct, routes_of
from labelrace.serve.events import Events
from labelrace.serve.gather import Gatherer
from labelrace.serve.guards import BODY, Guard, ServerOptions, user_of
from labelrace.serve.label_studio import FORMS as STUDIO_FORMS
from labelrace.serve.label_studio import add_label_studio
from labelrace.serve.lessons import Lesson, Prediction
from labelrace.serve.logs import RequestLog
from labelrace.serve.pages import add_pages
from labelrace.serve.problems import Problem, busy
from labelrace.serve.service import Service

# How long a request waits for others, and how many rows go together.
_PREDICT_SECONDS, _PREDICT_ROWS = 0.0015, 256
_TEACH_SECONDS, _TEACH_ROWS = 0.003, 64
# Bytes that are sent together, and journals at the same time: each holds a connection to the database.
_EXPORTED_AT_ONCE, _MAX_EXPORTS = 1 << 16, 4
# Routes that are so frequent that finding them counts.
_OFTEN = ("/v1/predict", "/v1/learn", "/v1/feedback")

_KEY = re.compile(rb"[\x20-\x7e]{1,200}")
_KEY_PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "1 to 200 printable ASCII characters: a request that is sent again with it counts once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
}
_USER_PARAMETER = {
    "name": "X-Labelrace-User",
    "in": "header",
    "required": False,
    "description": "The user, if the token names none: at most 100 characters, percent-encoded where not ASCII.",
    "schema": {"type": "string"},
}
_PROBLEMS = {
    400: "The request is not well-formed.",
    401: "A token is needed.",
    403: "The token, the host or the origin may not do this.",
    404: "Unknown row or tag.",
    405: "The path has no such method.",
    408: "The request came too slowly.",
    413: "The request is too large.",
    415: "The request is not JSON.",
    422: "The request has wrong values; `errors` name the rows and fields.",
    429: "Too many requests; `Retry-After` says when to come again.",
    503: "Not available now; `Retry-After` says when to come again.",
}


def make_app(service: Service, options: ServerOptions | None = None, log: RequestLog | None = None) -> FastAPI:
    """Return the application of a service: API, pages, Label Studio's routes, metrics and guards.

    Parameters
    ----------
    service : Service
    options : ServerOptions, default=None
    log : RequestLog, default=None
        Where requests are logged, if at all.

    Returns
    -------
    FastAPI
        ``app.state.events`` are the listeners, which have to be closed before the application ends.
    """
    options = options or ServerOptions()
    options.check()
    capacity = options.max_waiting
    predictions = Gatherer(
        service.predict, seconds=_PREDICT_SECONDS, rows=_PREDICT_ROWS, capacity=capacity, name="labelrace-predict"
    )
    # A row is explained in the time in which hundreds are predicted: requests without explanations do not wait for it.
    explanations = Gatherer(
        service.predict, seconds=_PREDICT_SECONDS, rows=1, capacity=capacity, name="labelrace-explain"
    )
    lessons = Gatherer(
        service.teach, seconds=_TEACH_SECONDS, rows=_TEACH_ROWS, capacity=capacity, name="labelrace-teach"
    )
    queues: dict[str, Gatherer[Any, Any]] = {"predict": predictions, "explain": explanations, "teach": lessons}
    events, requests = Events(service, options.max_listeners), metrics.Requests()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        events.close()
        for gatherer in queues.values():
            await run_in_threadpool(gatherer.close)
        if log is not None:
            log.flush()

    app = FastAPI(
        title="labelrace",
        version=__version__,
        description="A tagger that learns at once from every correction.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        default_response_class=Answer,
        responses={status: {"description": text} for status, text in _PROBLEMS.items()},
    )
    app.state.events = events
    often: dict[tuple[str, str], APIRoute] = {}
    app.add_middleware(Direct, routes=often)
    app.add_middleware(Guard, options=options, requests=requests, log=log)
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    _add_rows(app, service, predictions, explanations, lessons)
    often.update(routes_of(app, _OFTEN))
    _add_tags(app, service, lessons)
    _add_state(app, service, events)
    _add_watching(app, service, requests, queues, events)
    add_label_studio(app, service, predictions, lessons)
    add_api_page(app)
    add_pages(app, service)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


# --- Routes -----------------------------------------------------------------------------------------------------------


def _add_rows(
    app: FastAPI,
    service: Service,
    predictions: Gatherer[Prediction, dict[str, Any]],
    explanations: Gatherer[Prediction, dict[str, Any]],
    lessons: Gatherer[Lesson, dict[str, Any]],
) -> None:
    """Add the routes for rows."""

    @app.post("/v1/predict", tags=["rows"], **_described(forms.Predictions, forms.Predict))
    async def predict(request: Request) -> Response:
        """Suggest tags for rows. Rows with an id wait for their tags; rows without are only answered."""
        body = forms.fields(read_json(request.scope[BODY]), forms.Predict)
        prediction = Prediction(body["rows"], body.get("explain", False))
        return Answer(await (explanations if prediction.explain else predictions)(prediction, n_rows(body)))

    @app.post("/v1/learn", tags=["rows"], **_described(forms.Learned, forms.Learn, teaches=True))
    async def learn(request: Request) -> Response:
        """Learn rows with their tags. They are on disk and learned when this is answered."""
        body = forms.fields(read_json(request.scope[BODY]), forms.Learn)
        return Answer(await lessons(lesson_of(request, "learn", body), n_rows(body)))

    @app.post("/v1/feedback", tags=["rows"], **_described(forms.Learned, forms.Feedback, teaches=True))
    async def feedback(request: Request) -> Response:
        """Learn the tags of rows that were predicted before; tags of a row that has some are a correction."""
        body = forms.fields(read_json(request.scope[BODY]), forms.Feedback)
        return Answer(await lessons(lesson_of(request, "feedback", body), n_rows(body)))

    @app.get("/v1/rows", tags=["rows"], **_described(forms.KnownRows))
    def list_rows(
        state: Annotated[Literal["waiting", "tagged", "all"], Query(description="Which rows.")] = "waiting",
        order: Annotated[
            Literal["newest", "oldest", "review", "useful"],
            Query(description="`useful`: those first whose tags teach most."),
        ] = "newest",
        search: Annotated[str, Query(max_length=200, description="Words that the row has.")] = "",
        tag: Annotated[str, Query(max_length=200, description="A tag that the row has.")] = "",
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
        after: Annotated[str, Query(max_length=500, description="`next` of the page before.")] = "",
    ) -> Response:
        """List rows that were sent with an id, with what the current model suggests."""
        return Answer(service.rows(state=state, order=order, search=search, tag=tag, limit=limit, after=after))

    @app.get("/v1/rows/{id:path}", tags=["rows"], **_described(forms.RowWithHistory))
    def show_row(id: str) -> Response:
        """Show a row, why its tags are suggested, and the history of its tags."""
        return Answer(service.row(_checked_id(id)))

    @app.post("/v1/rows/{id:path}/open", tags=["rows"], **_described(forms.Opened, forms.Open))
    async def open_row(request: Request, id: str) -> Response:
        """Note that a user opens a row, for a minute, or closes it; the answer names who opened it first."""
        said = forms.validated(read_json(request.scope[BODY]), forms.Open)
        who = said["who"]
        if not who.isprintable():
            detail = "who must have printable characters."
            raise Problem(422, "Request has wrong values", detail, [{"field": "who", "detail": detail}])
        return Answer(await run_in_threadpool(service.open_row, _checked_id(id), who, said.get("open", True)))


def _add_tags(app: FastAPI, service: Service, lessons: Gatherer[Lesson, dict[str, Any]]) -> None:
    """Add the routes for tags."""

    @app.get("/v1/tags", tags=["tags"], **_described(forms.Tags))
    def list_tags(
        search: Annotated[str, Query(max_length=200, description="A part of the tag or of a synonym.")] = "",
        limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
    ) -> Response:
        """List tags with their number of rows and their F1."""
        return Answer(service.tags(search=search, limit=limit))

    @app.get("/v1/tags/{tag:path}", tags=["tags"], **_described(forms.TagWithOthers))
    def show_tag(tag: str) -> Response:
        """Show a tag and its most frequent companions."""
        return Answer(service.tag(_checked_id(tag)))

    def add_change(kind: str, form: type[BaseModel], text: str) -> None:
        async def change(request: Request) -> Response:
            body = forms.validated(read_json(request.scope[BODY]), form)
            is_preview = body.pop("preview", False)
            lesson = lesson_of(request, kind, body)
            if is_preview:
                return Answer(await run_in_threadpool(service.preview, lesson))
            return Answer(await lessons(lesson, 1))

        change.__name__, change.__doc__ = f"{kind}_tags", text
        app.post(f"/v1/tags/{kind}", tags=["tags"], **_described(forms.Learned | forms.Touched, form, teaches=True))(
            change
        )

    add_change("rename", forms.Rename, "Rename tags.")
    add_change("merge", forms.Merge, "Merge several tags into one.")
    add_change("retire", forms.Retire, "Stop predicting tags.")
    add_change("describe", forms.Describe, "Set synonyms, description and parent of tags; new tags are added.")


def _add_state(app: FastAPI, service: Service, events: Events) -> None:
    """Add the routes for the state of the service."""
    exports = set[object]()

    @app.get("/v1/status", tags=["service"], **_described(forms.Status))
    def show_status() -> Response:
        """Show the state of the service."""
        return Answer(service.status())

    @app.get("/v1/quality", tags=["service"], **_described(forms.Quality))
    def show_quality() -> Response:
        """Show the prequential quality of suggestions, compared with the tags that people gave later."""
        return Answer(service.quality())

    @app.get("/v1/events", tags=["service"], **_streamed("text/event-stream", "Events: position, row, open, mark."))
    async def listen() -> Response:
        """Stream events, as server-sent events, until the listener disconnects."""
        return await events.stream()

    @app.get("/v1/export", tags=["service"], **_streamed("application/x-ndjson", "The journal, a JSON object a line."))
    async def export() -> Response:
        """Send the whole journal."""
        if len(exports) >= _MAX_EXPORTS:
            raise busy(f"{_MAX_EXPORTS} journals are being sent already.", retry_after=5.0)
        pieces = _in_pieces(service.export(), exports)
        # The first piece is read before the answer begins, so that an error can still be answered.
        first = await run_in_threadpool(next, pieces, b"")
        return StreamingResponse(chain((first,), pieces), media_type="application/x-ndjson")


def _add_watching(
    app: FastAPI,
    service: Service,
    requests: metrics.Requests,
    queues: dict[str, Gatherer[Any, Any]],
    events: Events,
) -> None:
    """Add the routes for monitoring."""

    @app.get("/health/live", tags=["service"], **_described(forms.Health))
    async def is_alive() -> Response:
        """Answer if the process does."""
        return Answer({"status": "live"})

    @app.get("/health/ready", tags=["service"], **_described(forms.Health))
    async def is_ready() -> Response:
        """Return whether the service can be used; if not, 503 says why."""
        why = service.is_ready()
        if why is not None:
            raise busy(why)
        return Answer({"status": "ready"})

    @app.get("/metrics", tags=["service"], **_streamed("text/plain", "Metrics in Prometheus' form."))
    def show_metrics() -> Response:
        """Show counts and times of requests, and the state of the service."""
        gauges: dict[str, tuple[str, float]] = {
            f"queue_{name}_rows": (f"Rows that wait for the next call to {name}.", queue.waiting_rows)
            for name, queue in queues.items()
        }
        gauges["listeners"] = ("Listeners of events.", len(events))
        gauges["ready"] = ("Whether the service can be used.", int(service.is_ready() is None))
        text = metrics.as_text(requests, service.status(), gauges)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


# --- Requests ---------------------------------------------------------------------------------------------------------


def lesson_of(request: Request, kind: str, body: dict[str, Any]) -> Lesson:
    """Return the lesson of a request, with its key and user."""
    key = None
    for name, value in request.scope["headers"]:
        if name == b"idempotency-key":
            if not _KEY.fullmatch(value):
                detail = "Idempotency-Key must have 1 to 200 printable ASCII characters."
                raise Problem(422, "Request has wrong values", detail, [{"field": "Idempotency-Key", "detail": detail}])
            key = value.decode("ascii")
    return Lesson(kind, body, key, user_of(request.scope).name)


def n_rows(body: dict[str, Any]) -> int:
    """Return the number of rows in a body; the service checks them."""
    rows = body["rows"]
    return len(rows) if isinstance(rows, list) else 1


def _checked_id(id: str) -> str:
    if not 0 < len(id) <= 200 or not id.isprintable():
        raise Problem(404, "Unknown name", "No row or tag can have this name.")
    return id


def _in_pieces(lines: Iterator[bytes], under_way: set[object]) -> Iterator[bytes]:
    """Yield lines in larger pieces, as each is a hop between threads; until the end they are among those under way."""
    under_way.add(lines)
    try:
        parts, size = list[bytes](), 0
        for line in lines:
            parts.append(line)
            size += len(line)
            if size >= _EXPORTED_AT_ONCE:
                yield b"".join(parts)
                parts, size = [], 0
        if parts:
            yield b"".join(parts)
    finally:
        under_way.discard(lines)


# --- Problems ---------------------------------------------------------------------------------------------------------


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return ProblemAnswer(error)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return ProblemAnswer(invalid(error.errors()))


async def _http(request: Request, error: Exception) -> Response:
    """Answer errors of the framework: unknown paths and methods."""
    assert isinstance(error, HTTPException)
    method, path = request.scope["method"], request.scope["path"]
    title, detail = {
        404: ("Not found", f"There is nothing at {path[:200]}."),
        405: ("Method not allowed", f"{method[:20]} is not possible here."),
    }.get(error.status_code, ("Request refused", str(error.detail)))
    return ProblemAnswer(Problem(error.status_code, title, detail), error.headers)


# --- OpenAPI ----------------------------------------------------------------------------------------------------------


def _described(
    answer: type[BaseModel] | UnionType, form: type[BaseModel] | None = None, *, teaches: bool = False
) -> dict[str, Any]:
    """Return the OpenAPI description of a route."""
    extra: dict[str, Any] = {}
    if form is not None:
        schema = {"$ref": f"#/components/schemas/{form.__name__}"}
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if teaches:
        extra["parameters"] = [_KEY_PARAMETER, _USER_PARAMETER]
    return {"responses": {200: {"model": answer}}, "openapi_extra": extra}


def _streamed(kind: str, text: str) -> dict[str, Any]:
    content = {kind: {"schema": {"type": "string"}}}
    return {"responses": {200: {"description": text, "content": content}}, "response_class": Response}


_FORMS = (
    forms.Predict,
    forms.Learn,
    forms.Feedback,
    forms.Open,
    forms.Rename,
    forms.Merge,
    forms.Retire,
    forms.Describe,
)


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI, with the forms of requests and of problems."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        models: Sequence[tuple[type[BaseModel], Literal["validation"]]] = [
            (form, "validation") for form in (*_FORMS, *STUDIO_FORMS, forms.ProblemDetails)
        ]
        _, definitions = models_json_schema(models, ref_template="#/components/schemas/{model}")
        schema.setdefault("components", {}).setdefault("schemas", {}).update(definitions["$defs"])
        content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
        for path in schema["paths"].values():
            for operation in path.values():
                for status, response in operation["responses"].items():
                    if status >= "400":
                        response["content"] = content
        schemes = {"token": {"type": "http", "scheme": "bearer"}}
        schema["components"]["securitySchemes"] = schemes
        schema["security"] = [{}, {"token": []}]
        app.openapi_schema = schema
    return app.openapi_schema
