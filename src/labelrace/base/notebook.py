"""What notebooks show of estimators and results: HTML that needs nothing else, runs nothing and shows names as text.

It has no colours of its own, so that it can be read on light and on dark ground.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any

from sklearn import get_config

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


class Displayed:
    """An estimator that notebooks show with what it has learned, wherever scikit-learn shows its own as diagrams.

    Examples
    --------
    >>> class Model(Displayed):
    ...     def _html(self):
    ...         return page(repr(self), html_table([["labels", 3]]))
    ...
    ...     def __repr__(self):
    ...         return "Model()"
    >>> Model()._repr_mimebundle_()["text/plain"]
    'Model()'
    >>> "<th scope=row>labels</th><td>3</td>" in Model()._repr_html_()
    True
    """

    def _html(self) -> str:
        raise NotImplementedError

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """The function that makes the HTML; not there if scikit-learn is configured to show estimators as text."""
        if get_config()["display"] != "diagram":
            raise AttributeError("_repr_html_: scikit-learn's option 'display' is not 'diagram'")
        return self._html

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """Return text and HTML, which notebooks ask for first."""
        bundle = {"text/plain": repr(self)}
        return bundle | {"text/html": self._html()} if get_config()["display"] == "diagram" else bundle


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
