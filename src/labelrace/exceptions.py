"""The errors that labelrace raises on purpose.

Each says which argument was wrong, what was found there and what to do about it. They derive from the
built-in errors that scikit-learn's users already catch.
"""

from __future__ import annotations


class LabelraceError(Exception):
    """Base of all the errors below, to catch any of them."""


class DataFormatError(LabelraceError, ValueError):
    """A data file cannot be read: it is not of its format, cut short, or does not fit its label file."""


class DistributedError(LabelraceError, RuntimeError):
    """Workers on other machines or in other processes cannot be used, or were lost; the model holds what was merged."""


class DivergenceError(LabelraceError, FloatingPointError):
    """A learner's parameters grew beyond all bounds; the model is as it was before the call."""


class DivergenceWarning(UserWarning):
    """A learner's steps were too long for the features and have been shortened."""


class GrowthError(LabelraceError, ValueError):
    """A model cannot take in new labels, or new features, and still be what it would have been."""


class LimitError(DataFormatError):
    """Something from outside is larger than what is given memory without being told so; see `labelrace.base.limits`."""


class MergeError(LabelraceError, ValueError):
    """Two models cannot be merged, or not exactly where that was promised."""


class ModelFileError(LabelraceError, ValueError):
    """A file is not a labelrace model, is damaged, or was written by a newer version."""


class UnknownRowError(LabelraceError, ValueError):
    """Labels came for rows that are not, or no longer, kept."""
