"""The checks of lessons: rows and changes of tags are checked before anything is written.

A checked row is learned later, by every process that folds the journal. So everything that can be wrong with it alone
is found here, and the answer names the row and the field.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from labelrace.serve.problems import Problem, wrong_row
from labelrace.tables.cells import as_name

ID, TAGS = "id", "tags"
LARGEST = 1e100
"""Numbers beyond this are not learned."""
_MAX_ID, _MAX_NAME = 200, 200


class Limits(NamedTuple):
    """The limits of one request."""

    max_rows: int = 1000
    max_cells: int = 200  # of a row
    max_columns: int = 1000  # of all rows together, and of all that are learned; each takes a place in every row
    max_cell_length: int = 100_000  # characters of a text, or of all texts of a list
    max_tags: int = 200  # of a row
    max_tag_length: int = 200


class Prediction(NamedTuple):
    """A request to suggest tags."""

    rows: list[dict[str, Any]]
    explain: bool = False


class Lesson(NamedTuple):
    """A request that teaches: rows, or a change of tags."""

    kind: str
    body: dict[str, Any]
    key: str | None = None
    who: str = ""

    def digest(self) -> str:
        """Return a digest of the content, which must be the same for requests with one key."""
        text = json.dumps([self.kind, self.body], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def ids_of(requests: Iterable[Lesson]) -> list[str]:
    """Return the plausible ids in requests, which are not checked yet.

    Examples
    --------
    >>> ids_of([Lesson("learn", {"rows": [{"id": 7}, {"id": ["no id"]}, {"title": "Oven"}]})])
    ['7']
    """
    listed = (request.body.get("rows") for request in requests)
    rows = (row for found in listed if isinstance(found, list) for row in found if isinstance(row, dict))
    ids = (row.get(ID) for row in rows)
    return list(dict.fromkeys(str(id) for id in ids if isinstance(id, str | int) and str(id).isprintable()))


class CheckedRow(NamedTuple):
    """A row of a request."""

    id: str | None
    cells: dict[str, Any]
    tags: list[str] | None  # None where they are not told
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


def rows_to_predict(rows: Any, limits: Limits, tags_column: str | None = None) -> list[CheckedRow]:
    """Check rows whose tags are wanted; columns of tags are ignored.

    Examples
    --------
    >>> rows_to_predict([{"id": 7, "title": "Oven"}], Limits())
    [CheckedRow(id='7', cells={'title': 'Oven'}, tags=None, add=(), remove=())]
    """
    return [
        CheckedRow(_id_of(at, row), _cells_of(at, row, limits, tags_column), None)
        for at, row in enumerate(_listed(rows, limits))
    ]


def rows_to_learn(rows: Any, limits: Limits, tags_column: str | None = None) -> list[CheckedRow]:
    """Check rows with their tags."""
    checked = list[CheckedRow]()
    for at, row in enumerate(_listed(rows, limits)):
        name = TAGS if TAGS in row or tags_column not in row else str(tags_column)
        if name not in row:
            raise wrong_row(at, TAGS, "tags must be there, a list of texts; [] if no tag applies.")
        tags = _tags_of(at, name, row[name], limits)
        checked.append(CheckedRow(_id_of(at, row), _cells_of(at, row, limits, tags_column), tags))
    return checked


def rows_of_feedback(rows: Any, limits: Limits) -> list[CheckedRow]:
    """Check feedback on rows, which it names by their ids."""
    checked, seen = list[CheckedRow](), set[str]()
    for at, row in enumerate(_listed(rows, limits)):
        identity = _id_of(at, row)
        if identity is None:
            raise wrong_row(at, ID, "id must be there: that of a row that was predicted or learned before.")
        if identity in seen:
            raise wrong_row(at, ID, f"id must be in a request once, got {identity!r} twice.")
        seen.add(identity)
        if other := sorted(row.keys() - {ID, TAGS, "add", "remove"}):
            raise wrong_row(
                at, other[0], f"{other[0]!r:.80} must not be there: feedback has id and tags, add or remove."
            )
        if (TAGS in row) == bool({"add", "remove"} & row.keys()):
            raise wrong_row(at, TAGS, "tags must be there, or add and remove, and not both.")
        if TAGS in row:
            tags = None if row[TAGS] is None else _tags_of(at, TAGS, row[TAGS], limits)
            checked.append(CheckedRow(identity, {}, tags))
        else:
            add, remove = (tuple(_tags_of(at, name, row.get(name, []), limits)) for name in ("add", "remove"))
            if not add and not remove:
                raise wrong_row(at, "add", "add or remove must name at least one tag.")
            if both := sorted(set(add) & set(remove)):
                raise wrong_row(at, "add", f"a tag must be in add or in remove, got {both[0]!r:.80} in both.")
            checked.append(CheckedRow(identity, {}, None, add, remove))
    return checked


def change_of_tags(kind: str, body: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """Check a change of tags, and return the body of its entry."""
    if kind == "rename":
        names = body.get("names")
        if not isinstance(names, Mapping) or not names:
            raise _wrong("names", "names must be an object from old to new names, with at least one.")
        return {"names": {_name("names", old, limits): _name("names", new, limits) for old, new in names.items()}}
    if kind == "describe":
        tags = body.get("tags")
        if not isinstance(tags, Mapping) or not tags or len(tags) > limits.max_rows:
            raise _wrong("tags", f"tags must be an object of 1 to {limits.max_rows:,} tags with their details.")
        return {"tags": {_name("tags", tag, limits): _details(said, limits) for tag, said in tags.items()}}
    if kind not in ("merge", "retire"):
        raise ValueError(f"kind must be that of a change of tags, got {kind!r}.")
    tags = body.get("tags")
    if not isinstance(tags, list) or not tags or len(tags) > limits.max_rows:
        raise _wrong("tags", f"tags must be a list of 1 to {limits.max_rows:,} tags.")
    checked: dict[str, Any] = {"tags": [_name("tags", tag, limits) for tag in tags]}
    return checked | ({"into": _name("into", body.get("into"), limits)} if kind == "merge" else {})


def _details(said: Any, limits: Limits) -> dict[str, Any]:
    """Check the synonyms, description and parent of a tag."""
    if not isinstance(said, Mapping) or said.keys() - {"synonyms", "description", "parent"}:
        raise _wrong("tags", "the details of a tag must be an object of synonyms, description and parent.")
    synonyms, description = said.get("synonyms", []), said.get("description", "")
    if not isinstance(synonyms, list) or len(synonyms) > limits.max_tags:
        raise _wrong("synonyms", f"synonyms must be a list of at most {limits.max_tags} texts.")
    if not isinstance(description, str) or len(description) > limits.max_cell_length or not is_whole(description):
        raise _wrong("description", f"description must be a text of at most {limits.max_cell_length:,} characters.")
    details: dict[str, Any] = {"synonyms": [_name("synonyms", one, limits) for one in synonyms]}
    details["description"] = description
    parent = said.get("parent")
    return details | ({} if parent in (None, "") else {"parent": _name("parent", parent, limits)})


def _name(field: str, name: Any, limits: Limits) -> str:
    if not isinstance(name, str) or not is_whole(name) or not as_name(name) or len(name) > limits.max_tag_length:
        raise _wrong(field, f"{field} must hold texts of 1 to {limits.max_tag_length} characters, got {name!r:.80}.")
    return as_name(name)


def _wrong(field: str, detail: str) -> Problem:
    return Problem(422, "Tags cannot be changed", detail, [{"field": field, "detail": detail}])


# --- Cells ------------------------------------------------------------------------------------------------------------


def _listed(rows: Any, limits: Limits) -> Sequence[dict[str, Any]]:
    if not isinstance(rows, list) or not rows:
        detail = "rows must be a list of at least one object."
        raise Problem(422, "Rows cannot be learned or predicted", detail, [{"field": "rows", "detail": detail}])
    if len(rows) > limits.max_rows:
        detail = f"rows must be at most {limits.max_rows:,}, got {len(rows):,}: send them in several requests."
        raise Problem(413, "Too many rows", detail, [{"field": "rows", "detail": detail}])
    for at, row in enumerate(rows):
        if not isinstance(row, dict):
            raise wrong_row(at, "rows", f"a row must be an object, got {row!r:.80}.")
    # Few requests have as many cells: only then names are counted.
    if sum(map(len, rows)) > limits.max_columns:
        _check_columns(rows, limits)
    return rows


def _check_columns(rows: Sequence[dict[str, Any]], limits: Limits) -> None:
    names = set[str]()
    for at, row in enumerate(rows):
        for name in row:
            names.add(name)
            if len(names) > limits.max_columns:
                detail = f"rows must have at most {limits.max_columns:,} columns together, {name!r:.80} is one more."
                raise Problem(413, "Too many columns", detail, [{"row": at, "field": name[:80], "detail": detail}])


def check_new_columns(at: int, cells: Iterable[str], known: Collection[str], limits: Limits) -> None:
    """Refuse a row with a column that is new to a tagger that has as many as it may learn.

    Examples
    --------
    >>> check_new_columns(0, ["title", "body"], {"title", "price"}, Limits(max_columns=2))
    Traceback (most recent call last):
    ...
    labelrace.serve.problems.Problem: Row 0: at most 2 columns are learned, and 'body' is one more: leave it out.
    """
    new = [name for name in cells if name not in known]
    if new and len(known) + len(new) > limits.max_columns:
        name = new[max(0, limits.max_columns - len(known))]
        detail = f"at most {limits.max_columns:,} columns are learned, and {name!r:.80} is one more: leave it out."
        raise wrong_row(at, name[:80], detail)


def _id_of(at: int, row: Mapping[str, Any]) -> str | None:
    identity = row.get(ID)
    if identity is None:
        return None
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise wrong_row(at, ID, f"id must be a text or a whole number, got {identity!r:.80}.")
    text = str(identity)
    if not 0 < len(text) <= _MAX_ID or not text.isprintable() or text != text.strip():
        raise wrong_row(at, ID, f"id must have 1 to {_MAX_ID} characters that print, got {text!r:.80}.")
    return text


def _tags_of(at: int, field: str, tags: Any, limits: Limits) -> list[str]:
    if not isinstance(tags, list):
        hint = f": give [{tags!r:.60}]" if isinstance(tags, str) else ""
        raise wrong_row(at, field, f"{field} must be a list of texts, got {tags!r:.80}{hint}.")
    if len(tags) > limits.max_tags:
        raise wrong_row(at, field, f"{field} must be at most {limits.max_tags}, got {len(tags):,}.")
    for tag in tags:
        if not isinstance(tag, str) or not is_whole(tag) or not as_name(tag) or len(tag) > limits.max_tag_length:
            limit = limits.max_tag_length
            raise wrong_row(at, field, f"{field} must hold texts of 1 to {limit} characters, got {tag!r:.80}.")
    return list(dict.fromkeys(map(as_name, tags)))


def _cells_of(at: int, row: Mapping[str, Any], limits: Limits, tags_column: str | None) -> dict[str, Any]:
    cells = {name: cell for name, cell in row.items() if name not in (ID, TAGS, tags_column)}
    if len(cells) > limits.max_cells:
        raise wrong_row(at, "rows", f"a row must have at most {limits.max_cells} cells, got {len(cells):,}.")
    for name, cell in cells.items():
        if not name or len(name) > _MAX_NAME or not name.isprintable():
            raise wrong_row(at, name[:80], f"a column's name must have 1 to {_MAX_NAME} characters that print.")
        _check_cell(at, name, cell, limits)
    return cells


def _check_cell(at: int, name: str, cell: Any, limits: Limits) -> None:
    texts = cell if isinstance(cell, list) else [cell] if isinstance(cell, str) else ()
    if not all(isinstance(text, str) for text in texts) or isinstance(cell, Mapping):
        kinds = "text, a number, true, false, null or a list of texts"
        raise wrong_row(at, name, f"{name!r} must be {kinds}, got {cell!r:.80}.")
    if sum(map(len, texts)) + len(texts) > limits.max_cell_length + 1:
        raise wrong_row(at, name, f"{name!r} must have at most {limits.max_cell_length:,} characters.")
    if not all(map(is_whole, texts)):
        raise wrong_row(at, name, f"{name!r} must be text, got half of a surrogate pair.")
    if isinstance(cell, int | float) and not isinstance(cell, bool) and not abs(cell) <= LARGEST:
        shown = "NaN" if isinstance(cell, float) and math.isnan(cell) else "one that is larger"
        raise wrong_row(at, name, f"{name!r} must be a number of at most {LARGEST:.0e}, got {shown}.")


def is_whole(text: str) -> bool:
    r"""Return whether a text can be written: JSON may hold halves of characters.

    >>> is_whole("é"), is_whole("\ud800")
    (True, False)
    """
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
