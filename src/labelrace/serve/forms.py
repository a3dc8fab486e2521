"""The forms of requests and answers, for the OpenAPI; rows themselves are checked once, by `lessons`.

`fields` reads a request into plain values, which the service takes as they are.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from labelrace.serve.answers import invalid
from labelrace.serve.problems import Problem

Cell: TypeAlias = str | bool | int | float | list[str] | None
# Larger numbers are refused by `lessons`, in its words.
_Short = Annotated[str, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 200})]
Id: TypeAlias = _Short | int
Names: TypeAlias = list[_Short]
FormT = TypeVar("FormT", bound=BaseModel)

_FORBIDDEN = ConfigDict(extra="forbid")
_ANY = ConfigDict(extra="allow")


# --- Requests ---------------------------------------------------------------------------------------------------------


class Row(BaseModel):
    """A row: its cells by the names of their columns, and an id if it is to wait for its tags."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"example": {"id": "T-1", "title": "An oven"}})
    __pydantic_extra__: dict[str, Cell]

    id: Id | None = None


class TaggedRow(Row):
    """A row with its tags; an empty list says that no tag applies."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"example": {"id": "T-1", "title": "An oven", "tags": ["oven"]}}
    )

    tags: Names


class SaidOfRow(BaseModel):
    """What is said of a row: its tags, null to withdraw what was said, or tags to add and to remove.

    What is withdrawn counts no more and waits again; the model does not unlearn it.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"id": "T-1", "tags": ["oven"]}})

    id: Id
    tags: Names | None = None
    add: Names = []
    remove: Names = []


class Predict(BaseModel):
    """Rows whose tags are wanted."""

    model_config = _FORBIDDEN

    rows: list[Row] = Field(min_length=1)
    explain: bool = Field(
        default=False, description="Whether to return the words and values that contribute to each tag."
    )


class Learn(BaseModel):
    """Rows with tags that are learned whole or not at all."""

    model_config = _FORBIDDEN

    rows: list[TaggedRow] = Field(min_length=1)


class Feedback(BaseModel):
    """The feedback on rows that were predicted or learned before."""

    model_config = _FORBIDDEN

    rows: list[SaidOfRow] = Field(min_length=1)


class Open(BaseModel):
    """Who opens a row, or closes it."""

    model_config = _FORBIDDEN

    who: str = Field(min_length=1, max_length=100)
    open: bool = True


class _Change(BaseModel):
    model_config = _FORBIDDEN

    preview: bool = Field(default=False, description="Whether to return the effect of the change, and change nothing.")


class Rename(_Change):
    """New names of tags by their old ones."""

    names: dict[_Short, _Short] = Field(min_length=1)


class Merge(_Change):
    """Tags that become one."""

    tags: Names = Field(min_length=1)
    into: _Short


class Retire(_Change):
    """Tags that are no longer predicted."""

    tags: Names = Field(min_length=1)


class Details(BaseModel):
    """Synonyms, description and parent of a tag."""

    model_config = _FORBIDDEN

    synonyms: Names | None = None
    description: str | None = None
    parent: _Short | None = None


class Describe(_Change):
    """Synonyms, descriptions and parents of tags; tags that no row has had are added."""

    tags: dict[_Short, Details] = Field(min_length=1)


# --- Answers ----------------------------------------------------------------------------------------------------------


class Predicted(BaseModel):
    """The tags of a row."""

    id: str | None = None
    tags: Names
    probabilities: dict[str, float]
    review: bool
    explanation: dict[str, list[tuple[str, float]]] | None = None


class Predictions(BaseModel):
    """The tags of rows, and the position in the journal up to which the model has learned."""

    rows: list[Predicted]
    position: int


class Learned(BaseModel):
    """The number of learned rows, and the position of the request in the journal."""

    learned: int
    position: int
    pending: bool | None = Field(
        default=None, description="True if it is on disk, and will be learned when what came before is."
    )


class Touched(BaseModel):
    """The effect of a change: the number of tags, and of rows that have them."""

    model_config = _ANY

    changed: int
    rows: int


class Suggested(BaseModel):
    """The suggestions of the current model for a row."""

    model_config = _ANY

    tags: Names
    probabilities: dict[str, float]
    review: bool
    position: int | None = None
    reason: str | None = Field(default=None, description="Why the model cannot read the row, if it cannot.")


class KnownRow(BaseModel):
    """A row that was sent with an id."""

    model_config = _ANY

    id: str
    cells: dict[str, Cell]
    state: Literal["waiting", "tagged"]
    tags: Names | None
    suggested: Suggested | None
    time: str
    who: str | None
    open_by: str | None


class KnownRows(BaseModel):
    """A page of rows; `next` is what `after` must be for the next page, null on the last one."""

    rows: list[KnownRow]
    waiting: int
    next: str | None


class Said(BaseModel):
    """An entry about a row."""

    position: int
    time: str
    who: str | None
    tags: Names | None


class RowWithHistory(KnownRow):
    """A row, the reasons for its suggested tags, and the history of its tags."""

    explanation: dict[str, list[tuple[str, float]]] | None = None
    history: list[Said]


class Opened(BaseModel):
    """The user who has a row open: the first who opened it."""

    id: str
    open_by: str | None


class Tag(BaseModel):
    """A tag, its number of rows and its quality."""

    model_config = _ANY

    tag: str
    rows: int
    precision: float | None
    recall: float | None
    f1: float | None
    recent_f1: float | None
    trend: str
    synonyms: Names
    description: str
    parent: str | None
    first_seen: str | None


class Tags(BaseModel):
    """All tags, or those that a search found."""

    tags: list[Tag]
    position: int


class TagWithOthers(Tag):
    """A tag and its most frequent companions."""

    together: list[dict[str, Any]]


class Status(BaseModel):
    """The state of the service."""

    model_config = _ANY

    rows: int
    position: int
    tags: int
    waiting: int
    known: int
    corrections: int
    alarms: int
    drifts: int
    journal_position: int
    snapshot_position: int
    version: str
    example_f1: float | None


class Quality(BaseModel):
    """The prequential quality of suggestions, compared with the tags that people gave later."""

    model_config = _ANY

    tested: int
    example_f1: float | None
    precision: float | None
    recall: float | None
    agreement: float | None
    position: int


class Health(BaseModel):
    """The health of the service."""

    status: str


class ErrorDetail(BaseModel):
    """An error, with its row and field."""

    row: int | None = None
    field: str | None = None
    detail: str


class ProblemDetails(BaseModel):
    """A problem in the form of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[ErrorDetail] = []


# --- Reading ----------------------------------------------------------------------------------------------------------


def fields(body: Any, form: type[BaseModel]) -> dict[str, Any]:
    """Return the fields of a body; it must be an object with the fields of the form and no others.

    Examples
    --------
    >>> fields({"rows": [{"title": "An oven"}]}, Predict)
    {'rows': [{'title': 'An oven'}]}
    """
    if type(body) is not dict:
        raise _wrong("body", f"the body must be an object with {_listed(form)}, got {body!r:.80}.")
    for name in body:
        if name not in form.model_fields:
            raise _wrong(name[:80], f"{name!r:.80} is not a field here: the body has {_listed(form)}.")
    for name, field in form.model_fields.items():
        if field.is_required() and name not in body:
            raise _wrong(name, f"{name} must be there.")
        if field.annotation is bool and type(body.get(name, False)) is not bool:
            raise _wrong(name, f"{name} must be true or false, got {body[name]!r:.80}.")
    return body


def validated(body: Any, form: type[BaseModel]) -> dict[str, Any]:
    """Return the fields of a body, validated by its form; for rare requests.

    Examples
    --------
    >>> validated({"who": "Ann"}, Open)
    {'who': 'Ann'}
    """
    return parsed(body, form).model_dump(exclude_unset=True)


def parsed(body: Any, form: type[FormT]) -> FormT:
    """Return a body as its form."""
    try:
        return form.model_validate(body, strict=True)
    except ValidationError as error:
        raise invalid(error.errors(include_url=False, include_context=False, include_input=False)) from None


def _listed(form: type[BaseModel]) -> str:
    return ", ".join(form.model_fields)


def _wrong(field: str, detail: str) -> Problem:
    return Problem(
        422, "Request has wrong values", f"{detail[0].upper()}{detail[1:]}", [{"field": field, "detail": detail}]
    )
