"""What is counted over all tests: how often labels occur and are found, how far probabilities can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labelrace.measures.calibration import Reliability, add, empty
from labelrace.measures.example import Counts, confusion, f1
from labelrace.measures.inputs import as_labels
from labelrace.typing import AnyMatrix

__all__ = ["CalibrationTally", "LabelTally", "as_reliability"]


class LabelTally:
    """Counts over all tests, label by label. It is an observer, as the evaluations take them.

    Examples
    --------
    >>> tally = LabelTally()
    >>> tally([[1, 0, 0], [1, 1, 0]], [[1, 0, 0], [0, 0, 0]])
    >>> tally.to_record()["f1"]
    [0.666..., 0.0, None]
    """

    def __init__(self) -> None:
        self._counts: Counts | None = None

    def __call__(self, Y_true: AnyMatrix, Y_pred: AnyMatrix) -> None:
        """Count a batch."""
        truth = as_labels(Y_true, "Y_true")
        new = confusion(truth, as_labels(Y_pred, "Y_pred", truth.shape)).per_label
        old = self._counts
        self._counts = new if old is None else Counts(*(a + b for a, b in zip(old, new, strict=True)))

    def to_record(self) -> dict[str, Any]:
        """Return share of the tested rows and F of each label; None for one neither present nor predicted ever."""
        if self._counts is None:
            return {"kind": "labels", "frequency": [], "f1": []}
        tp, fp, fn, tn = self._counts
        frequency = (tp + fn) / (tp + fp + fn + tn)
        values = [float(value) if seen else None for value, seen in zip(f1(self._counts), tp + fp + fn, strict=True)]
        return {"kind": "labels", "frequency": np.asarray(frequency).tolist(), "f1": values}


class CalibrationTally:
    """Counts over all tests, bin by bin of probability. It is an observer of probabilities, as `prequential` takes one.

    Examples
    --------
    >>> tally = CalibrationTally(n_bins=2)
    >>> tally([[1, 0, 0], [1, 1, 0]], [[0.9, 0.2, 0.1], [0.7, 0.3, 0.2]])
    >>> tally.to_record()["present"]
    [1, 2]
    """

    def __init__(self, n_bins: int = 15) -> None:
        self.known = empty(n_bins)

    def __call__(self, Y_true: AnyMatrix, P: AnyMatrix) -> None:
        """Count a batch."""
        self.known = add(self.known, Y_true, P)

    def to_record(self) -> dict[str, Any]:
        """Return the sums; `as_reliability` reads them."""
        return {"kind": "calibration", **{name: part.tolist() for name, part in self.known._asdict().items()}}


def as_reliability(record: Mapping[str, Any]) -> Reliability:
    """Return what a record of kind "calibration" holds."""
    return Reliability(
        np.array(record["entries"], dtype=np.intp),
        np.array(record["probability"], dtype=np.float64),
        np.array(record["present"], dtype=np.intp),
    )
