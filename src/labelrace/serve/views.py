"""The answers of the service, as plain JSON values; every function reads a value and changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelrace.decisions.usefulness import usefulness
from labelrace.serve.fold import REFUSALS, Folded, change, changes_of, table_of, why_of
from labelrace.serve.inbox import StoredRow
from labelrace.serve.lessons import CheckedRow
from labelrace.serve.problems import Problem, wrong_row
from labelrace.serve.quality import TREND, time_of
from labelrace.tables.state import TagCounts
from labelrace.tables.tag_details import TagDetails

N_LIKELY = 10
"""The most likely tags of a row that are returned with their probabilities."""
N_EXPLAINED, N_WORDS = 6, 12
# Of probabilities: what is beyond depends on the rows with which one is predicted together.
_DECIMALS = 6
_MAX_TOGETHER = 20


def tags_column(folded: Folded) -> str | None:
    """Return the name of the tagger's column of tags."""
    tags = folded.tagger.tags
    return tags if isinstance(tags, str) else None


# --- Rows -------------------------------------------------------------------------------------------------------------


def suggested(folded: Folded, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Suggest tags for rows, which have ``id`` and ``cells``, with the probabilities of the most likely ones.

    A row that the model cannot read has no suggestion, but ``reason``, which says why.
    """
    if not folded.tagger.is_fitted:
        return [{"tags": [], "probabilities": {}, "review": True, "position": folded.position} for _ in rows]
    # Columns that it does not know say nothing, but would take a place in every row.
    known = {column.name for column in folded.tagger.columns_}
    rows = [row | {"cells": {name: row["cells"][name] for name in row["cells"] if name in known}} for row in rows]
    try:
        ranked = folded.tagger.rank(table_of(folded.tagger, rows), N_LIKELY)
    except REFUSALS as error:
        if len(rows) > 1:
            # The others are not to suffer for one row.
            half = len(rows) // 2
            return [*suggested(folded, rows[:half]), *suggested(folded, rows[half:])]
        nothing = {"tags": [], "probabilities": {}, "review": True, "position": folded.position}
        return [{**nothing, "reason": why_of(error)}]
    return [
        {
            "tags": list(one.tags),
            "probabilities": {tag: round(p, _DECIMALS) for tag, p in sorted(one.likely, key=lambda pair: -pair[1])},
            "review": one.review,
            "position": folded.position,
        }
        for one in ranked
    ]


def unreadable(rows: Sequence[CheckedRow], suggestions: Sequence[dict[str, Any]]) -> Problem | None:
    """Return the problem of those rows of a request that the model cannot read; None if it can read all."""
    problems = [
        wrong_row(at, next((name for name in row.cells if repr(name) in one["reason"]), "rows"), one["reason"])
        for at, (row, one) in enumerate(zip(rows, suggestions, strict=True))
        if "reason" in one
    ]
    if not problems:
        return None
    first = problems[0]
    return Problem(first.status, first.title, first.detail, [error for one in problems for error in one.errors])


def useful(one: dict[str, Any]) -> float:
    """Return how much the tags of a row would teach, by its suggestions."""
    return usefulness(one["probabilities"], one["tags"])


def answered(folded: Folded, row: CheckedRow, one: dict[str, Any], explain: bool) -> dict[str, Any]:
    """Return the answer of ``POST /v1/predict`` for a row."""
    answer = {name: one[name] for name in ("tags", "probabilities", "review")}
    if row.id is not None:
        answer = {"id": row.id, **answer}
    return answer | ({"explanation": explained(folded, row._asdict(), one)} if explain else {})


def explained(folded: Folded, row: dict[str, Any], one: dict[str, Any]) -> dict[str, list[list[Any]]]:
    """Return the words and values that contribute to the most likely tags of a row."""
    tagger, likely = folded.tagger, list(one["probabilities"])[:N_EXPLAINED]
    if not likely or not hasattr(tagger.model_, "explain"):
        return {}
    parts = tagger.explain(table_of(tagger, [row]), likely, N_WORDS)
    return {tag: [[word, amount] for word, amount in pairs] for tag, pairs in parts.items()}


def stored(folded: Folded, row: StoredRow, one: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the inbox."""
    tags = None if row.tags is None else current(folded, row.tags)
    return {
        "id": row.id,
        "cells": row.cells,
        "state": row.state,
        "tags": tags,
        "suggested": one,
        "time": time_of(row.time),
        "who": row.who or None,
        "open_by": row.open_by,
    }


def current(folded: Folded, tags: Sequence[str]) -> list[str]:
    """Return the current names of tags, in their order."""
    if not folded.tagger.is_fitted:
        return list(tags)
    names = folded.tagger.state.names
    return list(dict.fromkeys(name for tag in tags for name in names.current([tag])))


# --- The model --------------------------------------------------------------------------------------------------------


def status(folded: Folded) -> dict[str, Any]:
    """Return counts of the learned rows and tags."""
    tagger = folded.tagger
    state = tagger.state if tagger.is_fitted else None
    alarms, drifts = changes_of(tagger)
    return {
        "rows": state.n_rows if state else 0,
        "position": folded.position,
        "tags": len(state.counts) if state else 0,
        "known": state.n_known if state else 0,
        "corrections": state.n_corrections if state else 0,
        "alarms": alarms,
        "drifts": drifts,
        "example_f1": folded.quality.of_recent().as_json()["example_f1"],
    }


def short_status(folded: Folded, waiting: int) -> dict[str, Any]:
    """Return the event for listeners after something was learned."""
    tagger = folded.tagger
    rows, tags = (tagger.n_rows_, len(tagger.tags_)) if tagger.is_fitted else (0, 0)
    return {"position": folded.position, "rows": rows, "tags": tags, "waiting": waiting}


def quality(folded: Folded) -> dict[str, Any]:
    """Return the quality of suggestions, and the precision curve."""
    curve: dict[str, Any] = {"confidence": [], "precision": [], "handled": []}
    if folded.tagger.is_fitted:
        found = folded.tagger.precision_curve_
        is_counted = found.n_suggestions > 0
        curve = {name: getattr(found, name)[is_counted].tolist() for name in curve}
    return {
        **folded.quality.as_json(),
        "precision_curve": {**curve, "target": folded.tagger.precision},
        "position": folded.position,
    }


# --- Tags -------------------------------------------------------------------------------------------------------------


def tags(folded: Folded, search: str, limit: int) -> dict[str, Any]:
    """Return the tags whose name or synonyms contain a text, the most frequent first."""
    if not folded.tagger.is_fitted:
        return {"tags": [], "position": folded.position}
    details, counts, wanted = folded.tagger.state.details, folded.tagger.tags_, search.casefold().strip()
    found = [
        tag
        for tag in counts
        if not wanted or any(wanted in name.casefold() for name in (tag, *details.get(tag, TagDetails()).synonyms))
    ]
    found.sort(key=lambda tag: (-counts[tag].rows, tag))
    trends = folded.quality.trends()
    seen = {one.tag: one.time for one in folded.quality.new_tags}
    listed = [_described(tag, counts[tag], details.get(tag, TagDetails()), trends, seen) for tag in found[:limit]]
    return {"tags": listed, "position": folded.position}


def _described(
    tag: str, counts: TagCounts, details: TagDetails, trends: dict[str, tuple[float, float]], seen: dict[str, float]
) -> dict[str, Any]:
    older, newer = trends.get(tag, (None, None))
    moved = 0.0 if older is None or newer is None else newer - older
    return {
        "tag": tag,
        "rows": counts.rows,
        "precision": counts.precision() if counts.predicted else None,
        "recall": counts.recall() if counts.tested else None,
        "f1": counts.f1() if counts.tested + counts.predicted else None,
        "recent_f1": newer,
        "trend": "rising" if moved >= TREND else "falling" if moved <= -TREND else "",
        "synonyms": list(details.synonyms),
        "description": details.description,
        "parent": details.parent,
        "first_seen": time_of(seen[tag]) if tag in seen else None,
    }


def tag(folded: Folded, name: str) -> dict[str, Any]:
    """Return a tag and its most frequent companions."""
    if not folded.tagger.is_fitted or name not in folded.tagger.tags_:
        raise Problem(404, "Unknown tag", f"There is no tag {name!r:.80}.")
    state = folded.tagger.state
    together = dict[str, int]()
    for names, rows in state.together.items():
        for other in names if name in names else ():
            if other != name:
                together[other] = together.get(other, 0) + rows
    listed = sorted(together.items(), key=lambda pair: (-pair[1], pair[0]))[:_MAX_TOGETHER]
    seen = {one.tag: one.time for one in folded.quality.new_tags}
    details = state.details.get(name, TagDetails())
    described = _described(name, state.counts[name], details, folded.quality.trends(), seen)
    return described | {"together": [{"tag": other, "rows": rows} for other, rows in listed]}


def changed(folded: Folded, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the effect of a change of tags: the tags, and the rows that were learned with them."""
    touched = list(body["names"] if kind == "rename" else body["tags"])
    counts = folded.tagger.tags_ if folded.tagger.is_fitted else {}
    if kind == "describe":
        return {"changed": len(touched), "rows": 0, "new": [tag for tag in touched if tag not in counts]}
    rows = sum(counts[tag].rows for tag in touched if tag in counts)
    after = change(folded.tagger, kind, body).tags_
    return {
        "changed": len(touched),
        "rows": rows,
        "tags": [{"tag": tag, "rows": counts[tag].rows} for tag in touched if tag in counts],
        "becomes": [
            {"tag": tag, "rows": after[tag].rows} for tag in after if tag not in counts or after[tag] != counts[tag]
        ],
    }
