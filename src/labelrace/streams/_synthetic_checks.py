"""The parameters of a synthetic stream, and what they may be."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, get_args

import numpy as np

from labelrace.streams._synthetic_model import Drift

if TYPE_CHECKING:
    from labelrace.streams.synthetic import SyntheticStream

__all__ = ["check_parameters"]

_INTEGERS = {"n_rows": 1, "n_features": 1, "n_labels": 1, "n_factors": 2, "seed": 0}


def check_parameters(stream: SyntheticStream) -> None:
    """Raise ValueError for a parameter out of its range."""
    for name, least in _INTEGERS.items():
        value = getattr(stream, name)
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        _require(stream, name, f"an integer of at least {least}", whole and value >= least)
    _require(stream, "cardinality", "above 0", stream.cardinality > 0)
    _require(stream, "density", "None, or above 0 and at most 0.5", stream.density is None or 0 < stream.density <= 0.5)
    _require(stream, "noise", "at least 0 and below 1", 0 <= stream.noise < 1)
    _require(stream, "zipf", "from 0 to 10", 0 <= stream.zipf <= 10)
    _require(stream, "most_frequent", "above 0 and below 1", 0 < stream.most_frequent < 1)
    _require(stream, "drift", f"one of {', '.join(get_args(Drift))}", stream.drift in get_args(Drift))
    _require(stream, "drift_width", "above 0 and at most 1", 0 < stream.drift_width <= 1)
    _require(stream, "new_labels", "from 0 to 1", 0 <= stream.new_labels <= 1)
    _require(stream, "new_labels_at", "at least 0 and below 1", 0 <= stream.new_labels_at < 1)
    _check_drifts(stream)
    _check_cardinality(stream)


def _require(stream: SyntheticStream, name: str, what: str, holds: bool) -> None:
    if not holds:
        raise ValueError(f"{name} must be {what}, got {getattr(stream, name)!r}")


def _check_drifts(stream: SyntheticStream) -> None:
    times = stream.drifts
    inside = all(0 < time < 1 for time in times)
    _require(stream, "drift_at", "one or more shares of the stream, above 0 and below 1, in order", inside)
    _require(stream, "drift_at", "in order, without repeats", all(a < b for a, b in pairwise(times)))
    # Each drift has to be over before the next begins. (Rounding must not forbid those that just fit.)
    apart = all(b - a >= stream.drift_takes - 1e-9 for a, b in pairwise(times))
    _require(stream, "drift_at", f"at least drift_width={stream.drift_width:g} apart", apart)


def _check_cardinality(stream: SyntheticStream) -> None:
    late = round(stream.new_labels * stream.n_labels)
    most = stream.most_frequent * (stream.n_labels - late * stream.new_labels_at)
    if stream.cardinality >= most:
        lateness = f", and {late} of them only after {stream.new_labels_at:g} of the stream" if late else ""
        raise ValueError(
            f"cardinality must be below {most:g}, got {stream.cardinality!r}: there are {stream.n_labels} labels, "
            f"each in at most most_frequent={stream.most_frequent:g} of the rows{lateness}"
        )
