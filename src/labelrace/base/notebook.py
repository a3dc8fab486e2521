"""What notebooks show of estimators and results: HTML that needs nothing else, runs nothing and shows names as text.

It has no colours of its own, so that it can be read on light and on dark ground.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

from labelrace.base import model_file
from labelrace.base.fitted_attributes import model_facts
from labelrace.base.printing import printable

# Characters of a value, and names of a list, that are shown.
_SHOWN, _LISTED = 100, 30
_STYLE = (
    ".labelrace-shown{color:inherit;background:transparent;overflow-x:auto}"
    ".labelrace-shown table{border-collapse:collapse;margin:.4em 0;color:inherit}"
    ".labelrace-shown th,.labelrace-shown td"
    "{text-align:left;vertical-align:top;padding:.15em .8em .15em 0;border-bottom:1px solid rgba(128,128,128,.35)}"
    ".labelrace-shown summary{cursor:pointer}"
    ".labelrace-shown img{max-width:100%}"
)


def escaped(value: object) -> str:
    """Return a value as text that HTML shows as it is.

    Examples
    --------
    >>> escaped("<img onerror=x>")
    '&lt;img onerror=x&gt;'
    """
    return html.escape(printable(str(value)))


def page(title: str, *parts: str) -> str:
    """Return what a notebook shows: a title, and parts that are HTML."""
    return f"<div class=labelrace-shown><style>{_STYLE}</style><code>{escaped(title)}</code>{''.join(parts)}</div>"


def html_table(rows: Iterable[Sequence[object]], titles: Sequence[str] = ()) -> str:
    """Return a table of texts; the first of each row names it."""
    head = "".join(f"<th scope=col>{escaped(title)}</th>" for title in titles)
    lines = [
        f"<tr><th scope=row>{escaped(name)}</th>{''.join(f'<td>{escaped(cell)}</td>' for cell in cells)}</tr>"
        for name, *cells in rows
    ]
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{''.join(lines)}</tbody></table>"


def folded(title: str, content: str, *, is_open: bool = False) -> str:
    """Return HTML below a title that folds it away."""
    return f"<details{' open' if is_open else ''}><summary>{escaped(title)}</summary>{content}</details>"


def first_of(listed: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the first names of many, as many as are shown, with what is listed of them."""
    return list(itertools.islice(listed.items(), _LISTED))


def count_of(what: str, listed: Sized) -> str:
    """Return a title that says how many of a list there are and, if not all, how many are shown.

    >>> count_of("Tags", range(3)), count_of("Tags", range(3000))
    ('Tags (3)', 'Tags (30 of 3,000)')
    """
    shown = f"{_LISTED} of " if len(listed) > _LISTED else ""
    return f"{what} ({shown}{len(listed):,})"


def names_part(what: str, names: Any) -> str:
    """Return the first of many names, folded away; nothing if there are none."""
    if names is None:
        return ""
    listed = ", ".join(escaped(_shortened(str(name))) for name in names[:_LISTED])
    return folded(count_of(what, names), f"<p>{listed}</p>")


def parameters_part(parameters: Mapping[str, object]) -> str:
    """Return the parameters of an estimator, folded away."""
    return folded("Parameters", html_table([name, _shortened(repr(value))] for name, value in parameters.items()))


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def model_html(model: Any) -> str:
    """Return what notebooks show of a classifier: what it has learned, the names of its columns, its parameters."""
    parameters = parameters_part(model.get_params(deep=False))
    if not model.is_fitted:
        return page(repr(model), "<p>Not fitted yet.</p>", parameters)
    schema = model.fitted.schema
    names = names_part("Labels", schema.label_names), names_part("Features", schema.feature_names)
    return page(repr(model), facts_table(model_facts(model), model), *names, parameters)


def facts_table(facts: dict[str, Any], saved: Any) -> str:
    """Return facts as HTML, without those that are None, and the size of the file that ``saved`` would have."""
    try:
        size = model_file.size(*saved.pack())
    except ValueError:  # what cannot be saved can be shown
        size = None
    shown = {**facts, "bytes": size}
    return html_table(
        [name, f"{value:,}" if isinstance(value, int) else value] for name, value in shown.items() if value is not None
    )
