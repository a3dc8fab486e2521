"""The errors of the service, for people and programs: problem details of RFC 9457."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Problem(Exception):  # noqa: N818
    """A request that is refused, or cannot be served now; nothing of it was learned.

    Parameters
    ----------
    status : int
        The HTTP status.
    title : str
        What kind of problem it is, the same for all of the kind.
    detail : str
        What is wrong with this request, and what to do.
    errors : sequence of dict, default=()
        Each with ``detail``, and if known ``row``, the number of the row from 0, and ``field``.
    retry_after : float, default=None
        Seconds after which the same request may succeed.

    Examples
    --------
    >>> Problem(404, "Unknown row", "There is no row 'T-9'.").as_json()["status"]
    404
    """

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        errors: Sequence[dict[str, Any]] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.errors = tuple(errors)
        self.retry_after = retry_after

    def as_json(self) -> dict[str, Any]:
        """Return the problem in the form of RFC 9457."""
        content = {"type": "about:blank", "title": self.title, "status": self.status, "detail": self.detail}
        return content | ({"errors": list(self.errors)} if self.errors else {})


def wrong_row(row: int, field: str, detail: str) -> Problem:
    """Return the problem of a wrong row; it names the row, from 0, and the field.

    Examples
    --------
    >>> wrong_row(0, "tags", "tags must be a list of texts, got 5.").detail
    'Row 0: tags must be a list of texts, got 5.'
    """
    error = {"row": row, "field": field, "detail": detail}
    return Problem(422, "Rows cannot be learned or predicted", f"Row {row}: {detail}", [error])


def busy(detail: str, retry_after: float = 1.0) -> Problem:
    """Return the problem of a service that cannot serve the request now."""
    return Problem(503, "Not available now", detail, retry_after=retry_after)
