"""The default model as a scikit-learn classifier."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labelrace import parameters, validation
from labelrace.compression import encoder
from labelrace.compression.ensemble import Ensemble, State
from labelrace.estimators.base import OnlineClassifier
from labelrace.learners import columns
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.typing import Array, FloatArray, IntArray

__all__ = ["RACEEnsembleClassifier"]

# Pseudo labels for naive Bayes, at least, and for ridge, at the most.
_FEWEST_CLASSIFIERS, _MOST_REGRESSORS = 24, 100
# Columns of features up to which ridge learns, too: its sums and its solution grow with their square and cube.
_MOST_RIDGE_COLUMNS = 1500


class RACEEnsembleClassifier(OnlineClassifier):
    """Online multi-label classification by label compression: the default that needs no tuning.

    RACE with several random encoders, naive Bayes and ridge regression on their pseudo labels, and one decoder that is
    fitted to what the learners *predict* for a batch before they learn it. The decoder's regularisation and the
    threshold follow the stream: the first by its error, the second by the number of labels that rows have.

    Parameters
    ----------
    categorical_features : mask, indices, names or None
        Features that hold codes 0, 1, 2, … of nominal values.
    random_state : int, Generator, RandomState or None
        Seed of the encoders.
    n_encoders : int
        Encoders of ``⌈log₂ l⌉`` pseudo labels each for naive Bayes; there are more where that makes fewer than 24.
    use_ridge : bool or "auto"
        Whether ridge regression learns ``⌈log₂ l⌉²`` (at most 100) pseudo labels of its own. "auto" is yes up to 1500
        columns of features. Missing values (NaN) are skipped only where it is not used.
    label_names : sequence of str or None
        Names of the labels, if ``Y`` is not a data frame, whose columns have names.

    Attributes
    ----------
    encoder_ : (l, K) array
        All encoders side by side.
    encoder_bias_ : (K,) array
        Their biases.
    decoder_ : (K + 1, l) array
        The decoder; its first row belongs to a constant.
    threshold_ : float
        The score above which a label is predicted; `decision_function` has it subtracted.

    Examples
    --------
    >>> import labelrace
    >>> from labelrace.evaluation import averages, prequential
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=3000, n_features=20, n_labels=30, seed=0)
    >>> for name in ("race", "race-cls-adaptive"):
    ...     model = labelrace.make_model(name, random_state=0)
    ...     print(name, f"{averages(prequential(model, stream))['example_f1']:.2f}")
    race 0.68
    race-cls-adaptive 0.46
    """

    def __init__(
        self,
        categorical_features: Any = None,
        random_state: Any = None,
        *,
        n_encoders: int = 3,
        use_ridge: bool | str = "auto",
        label_names: Any = None,
    ) -> None:
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_encoders = n_encoders
        self.use_ridge = use_ridge
        self.label_names = label_names

    def _algorithm(self) -> Ensemble:
        parameters.check_whole("n_encoders", self.n_encoders, 1)
        if not isinstance(self.use_ridge, bool):
            parameters.check_choice("use_ridge", self.use_ridge, ("auto",))
        use_ridge = self.use_ridge if isinstance(self.use_ridge, bool) else self._ridge_fits()
        return Ensemble(NaiveBayes(), Ridge(alpha=30.0) if use_ridge else None)

    def _ridge_fits(self) -> bool:
        """Tell whether features are few enough, once they are known."""
        return not hasattr(self, "_n_values") or columns.width(self._n_values) <= _MOST_RIDGE_COLUMNS

    def _init(self, algorithm: Ensemble, n_values: IntArray, n_labels: int) -> State:
        k = validation.component_count("log2", n_labels)
        n_encoders = max(self.n_encoders, math.ceil(_FEWEST_CLASSIFIERS / k))
        n_regressors = 0 if algorithm.ridge is None else min(k * k, _MOST_REGRESSORS, n_labels)
        rng = validation.generator(self.random_state)
        # Where there would be as many pseudo labels as labels, nothing is compressed: the labels are their own.
        if k * n_encoders >= n_labels:
            drawn = [_plain(n_labels)]
        else:
            drawn = [encoder.draw(n_labels, k, rng) for _ in range(n_encoders)]
        n_classifiers = sum(e.A.shape[1] for e in drawn)
        if n_regressors:
            compresses = n_regressors < n_labels
            drawn.append(encoder.draw(n_labels, n_regressors, rng) if compresses else _plain(n_labels))
        side_by_side = encoder.given(np.hstack([e.A for e in drawn]), np.concatenate([e.bias for e in drawn]))
        return algorithm.init(side_by_side, n_classifiers, n_values)

    def _init_like(self, algorithm: Ensemble, n_labels: int, tensors: dict[str, Array]) -> State:
        A, n_classifiers = tensors["state.encoder.A"], len(tensors["state.learners.rows"]) - 1
        return algorithm.init(encoder.given(np.zeros(A.shape), np.zeros(A.shape[1])), n_classifiers, self._n_values)

    @property
    def encoder_(self) -> FloatArray:
        """All encoders side by side, (l, K)."""
        return self._fitted().state.encoder.A

    @property
    def encoder_bias_(self) -> FloatArray:
        """The encoders' biases, (K,)."""
        return self._fitted().state.encoder.bias

    @property
    def decoder_(self) -> FloatArray:
        """The decoder, (K + 1, l), constant first."""
        return self._fitted().derived.beta

    @property
    def threshold_(self) -> float:
        """The score above which a label is predicted."""
        return self._fitted().state.threshold


def _plain(n_labels: int) -> encoder.State:
    """Make the encoder that leaves labels as they are."""
    return encoder.given(np.eye(n_labels), np.zeros(n_labels))
