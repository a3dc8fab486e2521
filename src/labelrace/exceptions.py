"""The errors that labelrace raises on purpose.

Each says which argument is wrong, its value, and what to do about it. They derive from the built-in errors that
scikit-learn's users already catch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class LabelraceError(Exception):
    """Base of all errors below, to catch any of them."""


class DataFormatError(LabelraceError, ValueError):
    """A data file cannot be read: it is not of its format, cut short, or does not fit its label file."""


class DistributedError(LabelraceError, RuntimeError):
    """Workers on other machines or in other processes cannot be used, or were lost; the model has what was merged."""


class DivergenceError(LabelraceError, FloatingPointError):
    """A learner's parameters became infinite or NaN; the model is as it was before the call."""


class DivergenceWarning(UserWarning):
    """A learner's steps were too long for the features and have been shortened."""


class TableError(DataFormatError):
    """A table as a whole is not as those learned before; no single row is wrong."""


class GrowthError(LabelraceError, ValueError):
    """A model cannot learn new labels, or new features, after its first batch."""


class LimitError(DataFormatError):
    """Data from outside exceed a limit, which an environment variable can raise; see `labelrace.base.limits`."""


class MergeError(LabelraceError, ValueError):
    """Two models cannot be merged, or not exactly where that was promised."""


class ModelFileError(LabelraceError, ValueError):
    """A file is not a labelrace model, is damaged, or was written by a newer version."""


class ServiceError(LabelraceError, RuntimeError):
    """A service (`labelrace serve`) refused a request, or cannot be reached.

    Attributes
    ----------
    detail : str
        What is wrong, and what to do.
    status : int or None
        The HTTP status; None if there was no answer.
    errors : tuple of dict
        Each with ``detail``, and where they can be told ``row``, the number of the row from 0, and ``field``.
    """

    def __init__(self, detail: str, status: int | None = None, errors: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.errors = tuple(errors)


class UnknownRowError(LabelraceError, ValueError):
    """Labels were given for rows that are not pending (any more)."""
