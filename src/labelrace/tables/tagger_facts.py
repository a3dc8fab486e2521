"""Facts about a fitted tagger: for the command ``labelrace inspect`` as values, for a notebook as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labelrace.base import notebook
from labelrace.base.fitted_attributes import model_facts

if TYPE_CHECKING:
    from labelrace.tables.state import TagCounts
    from labelrace.tables.tagger_attributes import TaggerAttributes


def tagger_facts(tagger: TaggerAttributes) -> dict[str, Any]:
    """Return facts about the table and the tags of a tagger, the most frequent tags first."""
    most_frequent_first = sorted(tagger.tags_.items(), key=lambda pair: (-pair[1].rows, pair[0]))
    return {
        "rows": tagger.n_rows_,
        "quality": tagger.quality_,
        "separator": tagger.separator_,
        "columns": {column.name: str(column) for column in tagger.columns_},
        "known": tagger.n_known_,
        "corrections": tagger.n_corrections_,
        "tags": {tag: _of_tag(counts) for tag, counts in most_frequent_first},
    }


def _of_tag(counts: TagCounts) -> dict[str, float]:
    """Return the counts and the quality of a tag."""
    found = {"f1": counts.f1(), "precision": counts.precision(), "recall": counts.recall()}
    return {"rows": counts.rows, "tested": counts.tested, **found}


def quality_text(quality: dict[str, float]) -> str:
    """Return the quality of a tagger in words, nothing if no row was tested.

    >>> quality_text({"rows": 90, "example_f1": 0.8125, "micro_f1": 0.75})
    'example F1 0.812, micro F1 0.750'
    """
    if not quality["rows"]:
        return ""
    return f"example F1 {quality['example_f1']:.3f}, micro F1 {quality['micro_f1']:.3f}"


def _cells(counts: dict[str, float]) -> list[str]:
    """Return the number of rows of a tag, its F1, precision and recall; a dash if it was never tested."""
    measured = (f"{counts[name]:.2f}" if counts["tested"] else "-" for name in ("f1", "precision", "recall"))
    return [str(counts["rows"]), *measured]


def tagger_html(tagger: Any) -> str:
    """Return the HTML of a tagger for notebooks: counts, columns with their kinds, and tags."""
    parameters = notebook.parameters_part(tagger.get_params(deep=False))
    if not tagger.is_fitted:
        return notebook.page(repr(tagger), "<p>Not fitted yet.</p>", parameters)
    facts = tagger_facts(tagger)
    known = {"rows": facts["rows"], "prequential quality": quality_text(facts["quality"]) or None}
    titles = ("Tag", "Rows", "F1", "Precision", "Recall")
    tags = notebook.html_table([[tag, *_cells(one)] for tag, one in notebook.first_of(facts["tags"])], titles)
    columns = notebook.html_table(notebook.first_of(facts["columns"]), ("Column", "Kind"))
    return notebook.page(
        repr(tagger),
        notebook.facts_table(model_facts(tagger.model_) | known, tagger),
        notebook.folded(notebook.count_of("Columns", facts["columns"]), columns),
        notebook.folded(notebook.count_of("Tags", facts["tags"]), tags, is_open=True),
        parameters,
    )
