"""RACE as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from labelrace import parameters
from labelrace.core import encoder
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.sgd import SGD
from labelrace.models import growth, validation
from labelrace.models.banks import bank_of
from labelrace.models.base import OnlineClassifier
from labelrace.models.race_core import Race, State
from labelrace.typing import Array, FloatArray, IntArray

__all__ = ["RACEClassifier"]


class RACEClassifier(OnlineClassifier):
    """Online multi-label classification by random label compression.

    Labels are projected onto a few random hyperplanes. One online learner for each of these pseudo labels learns to
    predict it from the features, and a least-squares decoder, updated with every batch, turns predicted pseudo labels
    back into label sets. With ``l`` labels there are ``⌈log₂ l⌉`` learners instead of ``l``.

    The defaults are the paper's algorithm in its fast form: naive Bayes by densities, a decoder that uses the whole
    space of pseudo labels, and no labels for a row whose pseudo labels say nothing. `RACEClassifier.paper` is the
    authors' program to the digit.

    Parameters
    ----------
    method : {"classification", "regression"}
        Whether pseudo labels are cut to 0/1 and learned by classifiers, or learned as real numbers by regressors.
    encoding : {"fixed", "adaptive"}
        Whether the random hyperplanes stay, or each batch is encoded by the transpose of the decoder learned so far.
    n_components : {"log2", "log2_squared"} or int
        Number of pseudo labels: ``⌈log₂ l⌉``, its square, or as given.
    projection : (A, b) or None
        The encoder, ``A`` of shape (l, k) and the bias ``b`` of shape (k,); None draws it from `random_state`.
    categorical_features : mask, indices, names or None
        Features that hold codes 0, 1, 2, … of nominal values. Linear learners know the values of the first batch and
        take later ones for the first value.
    random_state : int, Generator, RandomState or None
        Seed of the encoder.
    learner : "auto", "naive_bayes", "sgd", "ridge", "rls", a bank of labelrace.learners, or one with partial_fit
        The base learners. "auto" is naive Bayes for classification and SGD, with normalised steps, for regression.
    ridge : float
        Regularises the decoder: added to the diagonal of its equations.
    forgetting : float
        What the decoder's past is multiplied by before each batch; 1 forgets nothing.
    start : {"full", "first_batch"}
        Whether the decoder uses all of the pseudo labels' space or what the first batch spans, as the paper's
        recursion does.
    zero_score : {"absent", "present"}
        What a label with a score of exactly zero is, in `predict`. Such scores come from rows whose pseudo labels are
        all 0.
    iterations : int
        How often each batch is learned, in a row; the paper's "iterative" RACE has 3.
    label_names : sequence of str or None
        Names of the labels, if ``Y`` is not a data frame, whose columns have names.

    Attributes
    ----------
    encoder_ : (l, k) array
        The hyperplanes ``A``.
    encoder_bias_ : (k,) array
        The bias ``b``.
    decoder_ : (k, l) array
        The decoder ``β``.
    n_components_ : int
        Number of pseudo labels.
    label_names_ : array of str or None
        Names of the labels.
    classes_ : (l,) array
        Indices of the labels.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    References
    ----------
    Ahmadi, Z. and Kramer, S.: Online multi-label classification: a label compression method. arXiv:1804.01491.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import RACEClassifier
    >>> from labelrace.measures import evaluate
    >>> rng = np.random.default_rng(0)
    >>> topics = rng.random((600, 4)) < 0.5                      # what each text is about, unseen
    >>> X = topics + 0.5 * rng.normal(size=(600, 4))             # its features
    >>> Y = topics @ rng.random((4, 30)) > 1.2                   # its labels: 30, correlated
    >>> model = RACEClassifier(n_components=15, random_state=0)
    >>> for start in range(0, 500, 100):
    ...     batch = slice(start, start + 100)
    ...     model = model.partial_fit(X[batch], Y[batch])
    >>> result = evaluate(Y[500:], model.predict(X[500:]), measures="example_f1")
    >>> print(f"{result['example_f1']:.2f}")
    0.64
    """

    def __init__(
        self,
        method: Literal["classification", "regression"] = "classification",
        encoding: Literal["fixed", "adaptive"] = "fixed",
        n_components: str | int = "log2",
        projection: Any = None,
        categorical_features: Any = None,
        random_state: Any = None,
        *,
        learner: Any = "auto",
        ridge: float = 0.0,
        forgetting: float = 1.0,
        start: Literal["full", "first_batch"] = "full",
        zero_score: Literal["absent", "present"] = "absent",
        iterations: int = 1,
        label_names: Any = None,
    ) -> None:
        self.method = method
        self.encoding = encoding
        self.n_components = n_components
        self.projection = projection
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.learner = learner
        self.ridge = ridge
        self.forgetting = forgetting
        self.start = start
        self.zero_score = zero_score
        self.iterations = iterations
        self.label_names = label_names

    @classmethod
    def paper(
        cls,
        method: Literal["classification", "regression"] = "classification",
        encoding: Literal["fixed", "adaptive"] = "fixed",
        **others: Any,
    ) -> Self:
        """Make RACE as the authors' program has it: its base learners, start and ties, to the digit.

        Parameters
        ----------
        method, encoding
            Which of the paper's four variants.
        **others
            Any other parameter, such as `projection`, `categorical_features` or `random_state`.
        """
        original = {
            "learner": SGD.weka() if method == "regression" else NaiveBayes(numeric="binned"),
            "start": "first_batch",
            "zero_score": "present",
        }
        return cls(method=method, encoding=encoding, **{**original, **others})

    def _algorithm(self) -> Race:
        parameters.check_choice("method", self.method, ("classification", "regression"))
        parameters.check_choice("encoding", self.encoding, ("fixed", "adaptive"))
        parameters.check_choice("start", self.start, ("full", "first_batch"))
        parameters.check_choice("zero_score", self.zero_score, ("absent", "present"))
        parameters.check_number("ridge", self.ridge, 0)
        parameters.check_number("forgetting", self.forgetting, 0, 1, open_low=True)
        bank = bank_of(self.learner, self.method, self.random_state)
        ridge, forgetting = float(self.ridge), float(self.forgetting)
        return Race(bank, self.encoding, self.start, ridge, forgetting, self.zero_score)

    def _init(self, algorithm: Race, n_values: IntArray, n_labels: int) -> State:
        return algorithm.init(self._draw_encoder(n_labels), n_values)

    def _init_like(self, algorithm: Race, n_labels: int, tensors: dict[str, Array]) -> State:
        n_components = tensors["state.encoder.A"].shape[1]
        empty = encoder.given(np.zeros((n_labels, n_components)), np.zeros(n_components))
        return algorithm.init(empty, self._n_values)

    def _draw_encoder(self, n_labels: int) -> encoder.State:
        if self.projection is not None:
            return encoder.given(*validation.check_projection(self.projection, n_labels))
        n_components = validation.component_count(self.n_components, n_labels)
        return encoder.draw(n_labels, n_components, validation.generator(self.random_state))

    def _times_shown(self) -> int:
        parameters.check_whole("iterations", self.iterations, 1)
        return int(self.iterations)

    @property
    def encoder_(self) -> FloatArray:
        """The hyperplanes ``A``, (l, k)."""
        return self._fitted().state.encoder.A

    @property
    def encoder_bias_(self) -> FloatArray:
        """The bias ``b``, (k,)."""
        return self._fitted().state.encoder.bias

    @property
    def decoder_(self) -> FloatArray:
        """The decoder ``β``, (k, l)."""
        return self._fitted().derived.beta

    @property
    def n_components_(self) -> int:
        """The number of pseudo labels."""
        return self.encoder_.shape[1]

    def _draw_seed(self) -> int:
        # Models with one projection and no random_state draw alike, so that they can still be merged afterwards.
        is_given = self.projection is not None and self.random_state is None
        return 0 if is_given else super()._draw_seed()

    def add_labels(self, new: int | Any, rows: Any = None) -> Self:
        """Add labels that have not occurred so far; `partial_fit` does so by itself where new ones occur.

        The model is then the one that knew these labels, always absent, from the start. Pseudo labels stay as many as
        they are.

        Parameters
        ----------
        new : int or sequence of str
            How many labels, or their names.
        rows : (new, k) array or None
            The encoder's rows for them. None draws them, and draws the same for models with the same `random_state`.

        Returns
        -------
        self
        """
        if rows is None:
            return super().add_labels(new)
        check_is_fitted(self)
        n_labels, names = growth.new_labels(self, new)
        count, rows = n_labels - len(self.classes_), np.asarray(rows, dtype=float)
        if rows.shape != (count, self.n_components_) or not np.isfinite(rows).all():
            raise ValueError(f"rows must be {count} finite rows of {self.n_components_} numbers, got {rows.shape}.")
        race: Race = self._learned.algorithm
        self._learned = self._learned.with_state(race.grow(self._learned.state, rows))
        self.classes_, self.label_names_ = np.arange(n_labels), names
        return self
