"""The default model as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from labelrace import parameters
from labelrace.core import encoder, rules
from labelrace.learners.rls import RLS
from labelrace.models import validation
from labelrace.models.base import OnlineClassifier
from labelrace.models.default_core import Ensemble, State
from labelrace.models.explanation import Explanation, explain
from labelrace.typing import Array, FloatArray, IntArray

__all__ = ["RACEEnsembleClassifier"]


class RACEEnsembleClassifier(OnlineClassifier):
    """Online multi-label classification by label compression: the default that needs no tuning.

    RACE's random encoder and least-squares decoder around linear learners that scale their features, choose their
    penalty and forget by themselves; a threshold that keeps the number of predicted labels near that of true ones;
    probabilities that are what they say; and a detector that makes the model forget faster after a drift. New labels
    and features may appear, and labels may be unknown (NaN) or late. See docs/default.md.

    Parameters
    ----------
    categorical_features : mask, indices, names or None
        Features that hold codes 0, 1, 2, … of nominal values.
    random_state : int, Generator, RandomState or None
        Seed of the encoder and of the random features.
    n_components : int
        Pseudo labels. Up to twice as many labels are learned as they are.
    half_life : float, None or sequence of these
        Rows after which half of what was learned is forgotten; None for never. Several make an ensemble of members
        that forget at these speeds, weighted by their errors of late; the decoder forgets as the slowest does.
    forgetting : float, None or sequence of floats
        The same as a rate, if that is given: what is kept of the past after each row. 1 forgets nothing.
    detect_drift : bool
        Whether to forget nearly all when errors grow by more than chance; of several members, the worst is then
        replaced.
    optimise : str
        What label sets are to be good at: "cardinality" (as many labels as there are; good at all measures),
        "example_f1", "example_accuracy", "micro_f1", "macro_f1", "hamming_loss" or "subset_accuracy".
    alpha : float or "auto"
        Penalty of the learners, where a row has length one, of at least 1e-5. "auto" is the best of a grid on the
        first rows.
    n_random_features : int
        Random features of dense data: absolute values along random directions. 0 for linear models.
    label_names : sequence of str or None
        Names of the labels, if ``Y`` does not bring them.

    Attributes
    ----------
    encoder_ : (l, K) array
        The projection of labels to pseudo labels.
    decoder_ : (K, l) array
        The decoder.
    threshold_ : float
        The score above which as many labels are as there were of late; `decision_function` has it subtracted. Rules
        that choose by row or by label (`optimise`) do not use it.
    alpha_ : float
        The penalty.
    n_drifts_ : int
        Drifts found so far.

    Examples
    --------
    >>> import labelrace
    >>> from labelrace.evaluation import averages, prequential
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=3000, n_features=20, n_labels=30, seed=0)
    >>> for name in ("race", "race-cls-adaptive"):
    ...     model = labelrace.make_model(name, random_state=0)
    ...     print(name, f"{averages(prequential(model, stream))['example_f1']:.2f}")
    race 0.72
    race-cls-adaptive 0.46
    """

    def __init__(
        self,
        categorical_features: Any = None,
        random_state: Any = None,
        *,
        n_components: int = 64,
        half_life: Any = 2000.0,
        forgetting: Any = None,
        detect_drift: bool = True,
        optimise: str = "cardinality",
        alpha: Any = "auto",
        n_random_features: int = 128,
        label_names: Any = None,
    ) -> None:
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_components = n_components
        self.half_life = half_life
        self.forgetting = forgetting
        self.detect_drift = detect_drift
        self.optimise = optimise
        self.alpha = alpha
        self.n_random_features = n_random_features
        self.label_names = label_names

    def _algorithm(self) -> Ensemble:
        parameters.check_whole("n_components", self.n_components, 1)
        parameters.check_choice("optimise", self.optimise, rules.AIMS)
        if not isinstance(self.detect_drift, (bool, np.bool_)):
            raise ValueError(f"detect_drift={self.detect_drift!r} does not do: give True or False.")
        if isinstance(self.alpha, str):
            parameters.check_choice("alpha", self.alpha, ("auto",))
        alpha = None if isinstance(self.alpha, str) else self.alpha
        bank = RLS(alpha, self._half_lives(), self.n_random_features, self._seed, single=True)
        return Ensemble(bank, self.optimise, bool(self.detect_drift), 2 * int(self.n_components))

    def _half_lives(self) -> tuple[float | None, ...]:
        if self.forgetting is None:
            return _several("half_life", self.half_life, "a number of rows, None")
        rates = _several("forgetting", self.forgetting, "a number above 0 and up to 1")
        for rate in rates:
            parameters.check_number("forgetting", rate, 0, 1, open_low=True)
        return tuple(None if rate == 1 else float(np.log(0.5) / np.log(rate)) for rate in rates)

    def _init(self, algorithm: Ensemble, n_values: IntArray, n_labels: int) -> State:
        # Few labels are their own pseudo labels.
        if n_labels <= algorithm.most_plain:
            return algorithm.init(encoder.identity(n_labels), n_values)
        rng = validation.generator(self.random_state)
        return algorithm.init(encoder.draw(n_labels, self.n_components, rng), n_values)

    def _init_like(self, algorithm: Ensemble, n_labels: int, tensors: dict[str, Array]) -> State:
        n_components = tensors["state.encoder.A"].shape[1]
        projection = encoder.given(np.zeros((n_labels, n_components)), np.zeros(n_components))
        state = algorithm.init(projection, self._n_values)
        n_watched = len(tensors["state.drift.means"])
        return state._replace(drift=type(state.drift)(*(np.zeros(n_watched) for _ in state.drift)))

    def predict_proba(self, X: Any) -> FloatArray:
        """Compute how likely each label is.

        Calibrated by the stream itself: of the labels that lately got a like score, so many were present.

        Returns
        -------
        (n, l) array
        """
        check_is_fitted(self)
        checked = self._check_features(X, reset=False)
        return self._learned.algorithm.probabilities(self._learned.derived, checked)

    def explain(self, x: Any, labels: Any = None, n_features: int = 10) -> list[Explanation]:
        """Tell what carried the scores of a row's labels.

        Parameters
        ----------
        x : array-like, sparse matrix, data frame or dict of one row
        labels : sequence of label indices or names, or None
            The labels to explain; None for those predicted.
        n_features : int
            Features to name for each label, those that carried most.

        Returns
        -------
        list of Explanation
            In the order of the labels. The parts of each add up to its score.
        """
        check_is_fitted(self)
        parameters.check_whole("n_features", n_features, 1)
        return explain(self, x, labels, n_features)

    @property
    def encoder_(self) -> FloatArray:
        """The projection of labels to pseudo labels, (l, K)."""
        return self._fitted().state.encoder.A

    @property
    def decoder_(self) -> FloatArray:
        """The decoder, (K, l)."""
        beta: FloatArray | None = self._fitted().derived.beta
        return np.eye(len(self.classes_)) if beta is None else beta

    @property
    def threshold_(self) -> float:
        """The score above which a label is predicted."""
        return self._fitted().derived.chooser.threshold

    @property
    def alpha_(self) -> float:
        """The penalty of the learners."""
        return self._fitted().state.learners.alpha

    @property
    def n_drifts_(self) -> int:
        """Drifts found so far."""
        return int(self._fitted().state.n_drifts)


def _several(name: str, value: Any, what: str) -> tuple[Any, ...]:
    """List the values of a parameter that may be one or several."""
    is_one = isinstance(value, str) or np.ndim(value) == 0
    values = (value,) if is_one else tuple(value)
    if not values:
        raise ValueError(f"{name}=() does not do: give {what}, or several of these.")
    return values
