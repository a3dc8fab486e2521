"""The errors that labelrace raises on purpose.

Each says which argument is wrong, its value, and what to do about it. They derive from the built-in errors that
scikit-learn's users already catch.
"""

from __future__ import annotations


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


class GrowthError(LabelraceError, ValueError):
    """A model cannot learn new labels, or new features, after its first batch."""


class LimitError(DataFormatError):
    """Data from outside exceed a limit, which an environment variable can raise; see `labelrace.base.limits`."""


class MergeError(LabelraceError, ValueError):
    """Two models cannot be merged, or not exactly where that was promised."""


class ModelFileError(LabelraceError, ValueError):
    """A file is not a labelrace model, is damaged, or was written by a newer version."""


class UnknownRowError(LabelraceError, ValueError):
    """Labels were given for rows that are not pending (any more)."""
