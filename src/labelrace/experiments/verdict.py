"""Whether two means agree."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

from labelrace.experiments.published import Reference

__all__ = ["Estimate", "Reason", "Verdict", "judge"]

# Why a value agrees. "rounding": it rounds to the printed one, or is as near. "chance": the rest is within two
# standard errors of the difference of the two means. "spread": it is within one standard deviation, over runs, of the
# printed mean, but further off than two means of ten runs should be.
Reason: TypeAlias = Literal["rounding", "chance", "spread", ""]

_ROUND_OFF = 1e-9
_STANDARD_ERRORS = 2


class Estimate(NamedTuple):
    """A mean over runs, with the standard deviation over runs (None from a single run)."""

    mean: float
    sd: float | None
    runs: int


class Verdict(NamedTuple):
    """Ours less theirs, whether the two agree, and why."""

    difference: float
    agrees: bool
    reason: Reason

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return "agrees" if self.agrees else "differs"


def judge(ours: Estimate, theirs: Reference) -> Verdict:
    """Compare a mean with a printed one.

    Where no standard deviation was printed, that of our runs stands in for it: if the two programs are the same, so
    are their deviations.

    Examples
    --------
    >>> theirs = Reference(0.22, decimals=2, sd=0.02, runs=10)
    >>> judge(Estimate(0.2249, sd=0.01, runs=10), theirs).reason
    'rounding'
    >>> judge(Estimate(0.231, sd=0.01, runs=10), theirs).reason
    'chance'
    >>> judge(Estimate(0.243, sd=0.01, runs=10), theirs).reason
    'spread'
    >>> judge(Estimate(0.25, sd=0.01, runs=10), theirs).word
    'differs'
    """
    difference = ours.mean - theirs.value
    # What is left after as much of the difference as rounding explains.
    rest = abs(difference) - 0.5 * 10.0**-theirs.decimals - _ROUND_OFF
    our_sd = ours.sd or 0.0
    their_sd = our_sd if theirs.sd is None else theirs.sd
    error = math.sqrt(our_sd**2 / ours.runs + their_sd**2 / theirs.runs)
    reason: Reason = ""
    if rest <= 0:
        reason = "rounding"
    elif rest <= _STANDARD_ERRORS * error:
        reason = "chance"
    elif theirs.sd is not None and rest <= theirs.sd:
        reason = "spread"
    return Verdict(difference, bool(reason), reason)
