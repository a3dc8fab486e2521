"""The routes of a machine-learning backend of Label Studio, to which the service can be attached as it is.

Label Studio sends tasks to predict, and webhooks with annotations. A task is a row, with
the id ``ls-<task id>`` and the cells of its data; the choices of `Choices` and `Taxonomy` controls are its tags, those
of a taxonomy with their path: ``Online / Free``. The labelling configuration, an XML that comes with
each request, names the controls.

References
----------
https://labelstud.io/guide/ml_create, https://labelstud.io/guide/webhook_reference,
https://labelstud.io/guide/predictions
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar
from xml.parsers import expat

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from labelrace.serve import forms
from labelrace.serve.answers import Answer, read_json
from labelrace.serve.gather import Gatherer
from labelrace.serve.guards import BODY, user_of
from labelrace.serve.lessons import ID, TAGS, Lesson, Limits, Prediction
from labelrace.serve.problems import Problem, wrong_row
from labelrace.serve.service import Service

TAUGHT = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED")
WITHDRAWN = ("ANNOTATION_DELETED", "ANNOTATIONS_DELETED")

_BETWEEN = " / "
_MAX_CONFIG, _MAX_NESTED = 1_000_000, 100
# Annotations that are learned at the same time.
_AT_ONCE = 256
_MAX_TAG = Limits().max_tag_length

FormT = TypeVar("FormT", bound=BaseModel)


# --- Forms ------------------------------------------------------------------------------------------------------------


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Task(_Form):
    """A task: its number and its data."""

    id: int | str | None = None
    data: dict[str, Any]


class PredictTasks(_Form):
    """Tasks whose predictions are wanted, and the labelling configuration."""

    tasks: list[Task]
    label_config: str


class Setup(_Form):
    """A project that attaches the service, with its labelling configuration."""

    project: str | int | None = None
    label_schema: str = Field(alias="schema")


class Annotation(_Form):
    """The tags that a person gave a task."""

    id: int | str
    task: int | str | None = None
    result: list[dict[str, Any]] = []
    was_cancelled: bool = False
    updated_at: str | None = None


class Project(_Form):
    """A project, with its labelling configuration."""

    id: int | str | None = None
    label_config: str | None = None


class Webhook(_Form):
    """An event of Label Studio."""

    action: str
    annotation: Annotation | list[Annotation] | None = None
    annotations: list[Annotation] | None = None
    task: Task | list[Task] | None = None
    project: Project | None = None


class Results(BaseModel):
    """Predictions, one for each task."""

    results: list[dict[str, Any]]
    model_version: str


class Version(BaseModel):
    """The version of the model."""

    model_version: str


class Versions(BaseModel):
    """The versions of the model."""

    versions: list[str]


class Done(BaseModel):
    """The result of an event: the numbers of rows learned and withdrawn."""

    status: str
    learned: int = 0
    withdrawn: int = 0


FORMS = (PredictTasks, Setup, Webhook)
"""Forms of requests for the OpenAPI."""


# --- The configuration ------------------------------------------------------------------------------------------------


class Control(NamedTuple):
    """A control that takes tags."""

    name: str
    to_name: str
    kind: str  # "choices" or "taxonomy"
    is_single: bool
    is_nested: bool
    is_open: bool  # whether choices come with the task
    paths: dict[str, list[str]]  # of each tag

    def result(self, tags: Iterable[str]) -> dict[str, Any] | None:
        """Return the result for those of the tags that the control offers; None if there are none."""
        chosen = [tag for tag in tags if self.is_open or tag in self.paths][: 1 if self.is_single else None]
        if not chosen:
            return None
        paths = [self.paths.get(tag) or tag.split(_BETWEEN) for tag in chosen]
        is_path = self.kind == "taxonomy" or self.is_nested
        value = {self.kind: paths if is_path else [path[-1] for path in paths]}
        return {"from_name": self.name, "to_name": self.to_name, "type": self.kind, "value": value}


@lru_cache(maxsize=32)
def controls(config: str) -> tuple[Control, ...]:
    """Return the controls of a labelling configuration that take tags.

    Examples
    --------
    >>> [control] = controls('<View><Choices name="topic" toName="text"><Choice value="oven"/></Choices></View>')
    >>> control.name, control.paths
    ('topic', {'oven': ['oven']})
    """
    if len(config) > _MAX_CONFIG:
        raise _wrong_config(f"must have at most {_MAX_CONFIG:,} characters, got {len(config):,}.")
    found, path, depths = list[Control](), list[str](), list[str]()

    def start(name: str, attributes: dict[str, str]) -> None:
        depths.append(name)
        if len(depths) > _MAX_NESTED:
            raise _wrong_config(f"must be nested at most {_MAX_NESTED} deep.")
        if name in ("Choices", "Taxonomy") and attributes.get("name") and attributes.get("toName"):
            found.append(
                Control(
                    attributes["name"],
                    attributes["toName"].split(",")[0],
                    name.lower(),
                    name == "Choices" and attributes.get("choice", "single").startswith("single"),
                    attributes.get("allowNested", "").lower() == "true",
                    attributes.get("value", "").startswith("$"),
                    {},
                )
            )
            path.clear()
        elif name == "Choice":
            path.append(attributes.get("alias") or attributes.get("value", ""))
            if found and {"Choices", "Taxonomy"} & set(depths[-len(path) - 1 :]):
                is_path = found[-1].kind == "taxonomy" or found[-1].is_nested
                # Texts that are too long are not tags.
                if sum(map(len, path)) <= _MAX_TAG:
                    found[-1].paths[_BETWEEN.join(path) if is_path else path[-1]] = list(path)

    def end(name: str) -> None:
        depths.pop()
        if name == "Choice":
            path.pop()

    def refuse(*_: object) -> None:
        raise _wrong_config("must not have a document type or entities.")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler, parser.EntityDeclHandler = refuse, refuse
    try:
        parser.Parse(config, True)
    except expat.ExpatError as error:
        raise _wrong_config(f"must be XML: {error}.") from None
    if not found:
        raise _wrong_config("must have a Choices or Taxonomy control with name and toName.")
    return tuple(found)


def said_tags(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the tags of an annotation's results.

    Examples
    --------
    >>> said_tags([{"type": "taxonomy", "value": {"taxonomy": [["Online", "Free"]]}}])
    ['Online / Free']
    """
    tags = list[str]()
    for result in results:
        kind, value = result.get("type"), result.get("value")
        chosen = value.get(kind) if kind in ("choices", "taxonomy") and isinstance(value, dict) else None
        for choice in chosen if isinstance(chosen, list) else ():
            path = choice if isinstance(choice, list) else [choice]
            if not all(isinstance(part, str) for part in path):
                detail = f"a choice must be a text or a list of texts, got {choice!r:.80}."
                raise Problem(
                    422, "Request has wrong values", detail, [{"field": "annotation.result", "detail": detail}]
                )
            tags.append(_BETWEEN.join(path))
    return list(dict.fromkeys(tags))


def _wrong_config(detail: str) -> Problem:
    error = {"field": "label_config", "detail": f"label_config {detail}"}
    return Problem(422, "Labelling configuration cannot be used", error["detail"], [error])


# --- Rows -------------------------------------------------------------------------------------------------------------


def row_of(task: Task) -> dict[str, Any]:
    """Return the row of a task; nested data are no cells.

    Examples
    --------
    >>> row_of(Task(id=7, data={"text": "An oven", "meta": {"by": 1}}))
    {'text': 'An oven', 'id': 'ls-7'}
    """
    cells = {name: cell for name, cell in task.data.items() if name not in (ID, TAGS) and _is_cell(cell)}
    return cells | ({} if task.id is None else {ID: _row_id(task.id)})


def _is_cell(value: Any) -> bool:
    return not isinstance(value, dict) and not (
        isinstance(value, list) and any(type(part) is not str for part in value)
    )


def _row_id(task: int | str) -> str:
    return f"ls-{task}"


def _predicted(row: Mapping[str, Any], known: Sequence[Control], version: str) -> dict[str, Any]:
    """Return a predicted row as Label Studio reads it; its score is the lowest probability of its tags."""
    probabilities = row["probabilities"]
    tags = sorted(row["tags"], key=lambda tag: -probabilities.get(tag, 0.0))
    results = [result for control in known if (result := control.result(tags)) is not None]
    sure = [probabilities.get(tag, 0.0) for tag in tags]
    score = min(sure) if sure else 1 - max(probabilities.values(), default=0.0)
    return {"result": results, "score": score, "model_version": version}


# --- Routes -----------------------------------------------------------------------------------------------------------


def add_label_studio(
    app: FastAPI,
    service: Service,
    predictions: Gatherer[Prediction, dict[str, Any]],
    lessons: Gatherer[Lesson, dict[str, Any]],
) -> None:
    """Add Label Studio's routes to an application."""

    def version(position: int) -> str:
        return f"labelrace at {position}"

    @app.get("/health", tags=["Label Studio"], responses={200: {"model": forms.Health}})
    async def health() -> Response:
        """Answer that the backend is there."""
        return Answer({"status": "UP", "model_class": "labelrace"})

    @app.post("/setup", tags=["Label Studio"], responses={200: {"model": Version}}, openapi_extra=_body(Setup))
    async def setup(request: Request) -> Response:
        """Check a project's labelling configuration."""
        body = _form(request, Setup)
        controls(body.label_schema)
        return Answer({"model_version": version((await run_in_threadpool(service.status))["position"])})

    @app.post("/predict", tags=["Label Studio"], responses={200: {"model": Results}}, openapi_extra=_body(PredictTasks))
    async def predict_tasks(request: Request) -> Response:
        """Predict tasks; those with a number wait for their tags."""
        body = _form(request, PredictTasks)
        known = controls(body.label_config)
        if not body.tasks:
            position = (await run_in_threadpool(service.status))["position"]
            return Answer({"results": [], "model_version": version(position)})
        answer = await predictions(Prediction(list(map(row_of, body.tasks))), len(body.tasks))
        current = version(answer["position"])
        results = [_predicted(row, known, current) for row in answer["rows"]]
        return Answer({"results": results, "model_version": current})

    @app.get("/versions", tags=["Label Studio"], responses={200: {"model": Versions}})
    @app.post("/versions", tags=["Label Studio"], responses={200: {"model": Versions}})
    async def versions() -> Response:
        """Return the version of the model, which is the only one."""
        return Answer({"versions": [version((await run_in_threadpool(service.status))["position"])]})

    @app.post("/webhook", tags=["Label Studio"], responses={200: {"model": Done}}, openapi_extra=_body(Webhook))
    async def webhook(request: Request) -> Response:
        """Learn what a person annotated; deleted annotations are withdrawn, and other events are ignored."""
        body = _form(request, Webhook)
        who = user_of(request.scope).name or "Label Studio"
        if body.action in TAUGHT:
            told = _lessons(body, who)
            for start in range(0, len(told), _AT_ONCE):
                part = told[start : start + _AT_ONCE]
                for answer in await asyncio.gather(*(lessons(lesson, 1) for lesson in part), return_exceptions=True):
                    if isinstance(answer, BaseException):
                        raise answer
            return Answer({"status": "ok" if told else "ignored", "learned": len(told), "withdrawn": 0})
        if body.action in WITHDRAWN:
            deleted = body.annotations or _several(body.annotation)
            begins = _key(body.project)
            rows = _rows_of(deleted, begins, await run_in_threadpool(service.keys, begins))
            if not rows:
                numbers = ", ".join(str(annotation.id) for annotation in deleted[:10])
                detail = (
                    f"No row is known of annotations {numbers:.80}: say feedback with tags null for the row itself."
                )
                raise Problem(404, "Unknown annotations", detail)
            said = {"rows": [{ID: row, TAGS: None} for row in rows]}
            await lessons(Lesson("feedback", said, None, who), len(rows))
            return Answer({"status": "ok", "learned": 0, "withdrawn": len(rows)})
        return Answer({"status": "ignored", "learned": 0, "withdrawn": 0})


def _lessons(body: Webhook, who: str) -> list[Lesson]:
    """Return what annotations teach; skipped tasks teach nothing."""
    told = _several(body.annotation) or body.annotations or []
    if not told:
        detail = "annotation must be there, with id, task and result."
        raise Problem(422, "Request has wrong values", detail, [{"field": "annotation", "detail": detail}])
    if body.project is not None and body.project.label_config:
        controls(body.project.label_config)
    tasks = {str(task.id): task for task in _several(body.task)}
    lessons = list[Lesson]()
    for number, annotation in enumerate(told):
        if annotation.was_cancelled:
            continue
        alone = next(iter(tasks.values())).id if len(tasks) == len(told) == 1 else None
        task = annotation.task if annotation.task is not None else alone
        if task is None:
            raise wrong_row(number, "annotation.task", "annotation.task must be the task's number.")
        tags, row = said_tags(annotation.result), _row_id(task)
        # It names the row, too: an event of deleting has nothing but the annotation's number.
        once = f"{_key(body.project)}{annotation.id}:{row}@{annotation.updated_at}" if annotation.updated_at else None
        if once is not None and (len(once) > 200 or not once.isascii() or not once.isprintable()):
            once = None
        if (known := tasks.get(str(task))) is not None:
            lessons.append(Lesson("learn", {"rows": [row_of(known) | {ID: row, TAGS: tags}]}, once, who))
        else:
            lessons.append(Lesson("feedback", {"rows": [{ID: row, TAGS: tags}]}, once, who))
    return lessons


def _key(project: Project | None) -> str:
    """Return how the keys of a project's annotations begin."""
    return f"label-studio:{project.id if project and project.id is not None else ''}:"


def _rows_of(annotations: Iterable[Annotation], begins: str, keys: Iterable[str]) -> list[str]:
    """Return the rows of annotations, by the keys with which they were learned; without those that are unknown."""
    wanted, found = {str(annotation.id) for annotation in annotations}, dict[str, str]()
    for key in keys:
        annotation, _, rest = key.removeprefix(begins).partition(":")
        if annotation in wanted:
            found[annotation] = rest.rpartition("@")[0]
    return list(dict.fromkeys(row for row in found.values() if row))


def _several(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _form(request: Request, form: type[FormT]) -> FormT:
    return forms.parsed(read_json(request.scope[BODY]), form)


def _body(form: type[BaseModel]) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{form.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
