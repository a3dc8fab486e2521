"""What classifiers whose learners are recursive least squares have in common: the default, and compressed labels."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from labelrace.base import parameters
from labelrace.base.estimator import OnlineClassifier
from labelrace.decisions import rules
from labelrace.linear.rls import RLS


class Settings(NamedTuple):
    """What the algorithms of these classifiers have in common, in the order of their fields."""

    bank: RLS
    aim: str
    detects_drift: bool
    max_memory: float
    n_components: int | None


class RLSClassifier(OnlineClassifier):
    """Base of classifiers by recursive least squares that forget by themselves.

    Parameters
    ----------
    half_life : float or None, default=8000.0
        Rows after which half of what was learned is forgotten; None for never.
    detect_drift : bool, default=True
        Whether a model that forgets most of what was learned is tried, beside one that does not, when errors grow by
        more than chance. Until one of them has been the better one for 2,000 rows, time and memory are double.
    alpha : float or "auto", default="auto"
        Penalty of the learners, where a row has length one, of at least 1e-5. "auto" is the best of a grid on the
        first rows.
    n_random_features : int, default=128
        Random features of dense data: absolute values along random directions. There are none where the first rows are
        clearly better predicted without them. 0 for linear models.

    Attributes
    ----------
    n_alarms_ : int
        Alarms so far: errors grew by more than chance, for whatever reason.
    n_drifts_ : int
        Drifts so far that were confirmed: a model that had forgotten the past did better for long enough.
    """

    max_memory: float | str
    n_components: int | Literal["auto"] = "auto"
    half_life: float | None = 8000.0
    detect_drift: bool = True
    optimise: str = "cardinality"
    alpha: float | Literal["auto"] = "auto"
    n_random_features: int = 128
    random_state: Any = None

    def _settings(self, half_life: float | None, seed: int, *, binary: bool) -> Settings:
        """Check the parameters; ``binary`` tells whether the targets of the learners are labels."""
        parameters.check_choice("optimise", self.optimise, rules.AIMS)
        parameters.check_flag("detect_drift", self.detect_drift)
        if isinstance(self.alpha, str):
            parameters.check_choice("alpha", self.alpha, ("auto",))
        alpha = None if isinstance(self.alpha, str) else self.alpha
        bank = RLS(alpha, half_life, self.n_random_features, seed, single=True, binary=binary)
        memory = parameters.memory_size("max_memory", self.max_memory)
        n_components = parameters.count_or_auto("n_components", self.n_components)
        return Settings(bank, self.optimise, bool(self.detect_drift), memory, n_components)

    @property
    def n_alarms_(self) -> int:
        """Alarms so far."""
        return int(self.fitted.state.n_alarms)

    @property
    def n_drifts_(self) -> int:
        """Confirmed drifts so far."""
        return int(self.fitted.state.n_drifts)
