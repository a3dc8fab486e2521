"""RACE on one page: encoder → learners → decoder.

The paper's Algorithm 1 as pure functions over one state. Labels are encoded into a few pseudo labels, a bank of online
learners learns to predict those from the features, and a least-squares decoder turns predicted pseudo labels back into
scores of all labels. A batch of n rows costs ``nnz(Y) k`` to encode and to add to the decoder, what the bank costs for
k targets, and ``l k²`` to solve for the decoder when somebody decodes.

References
----------
Ahmadi, Z. and Kramer, S.: Online multi-label classification: a label compression method. arXiv:1804.01491.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from labelrace.base import growth, parameters
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.fitted import Fitted
from labelrace.base.growth import Moves
from labelrace.base.linalg import TIE, is_even_or_more
from labelrace.base.schema import Schema
from labelrace.base.threads import one_writer
from labelrace.decisions.calibration import soft_clip
from labelrace.learners.adapter import as_bank
from labelrace.learners.bank import Bank, BankAlgorithm
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.sgd import SGD
from labelrace.race import decoder, encoder
from labelrace.typing import AnyMatrix, BoolArray, FloatArray


class State(NamedTuple):
    """Everything RACE remembers.

    Attributes
    ----------
    encoder : encoder.State
        The hyperplanes.
    learners : NamedTuple
        The bank's state.
    decoder : decoder.State
        The sums of the least-squares problem.
    """

    encoder: encoder.State
    learners: Annotated[Any, "t=k"]
    decoder: decoder.State


class Derived(NamedTuple):
    """What predicting needs: the learners' parameters and the decoder's ``β``."""

    learners: Any
    beta: FloatArray


@dataclass(frozen=True)
class Race(BankAlgorithm[State]):
    """The algorithm's settings, and the algorithm.

    Parameters
    ----------
    bank : Bank
        The learners. Classifiers make it RACE by classification, with pseudo labels cut to 0/1; regressors make it
        RACE by regression.
    encoding : {"fixed", "adaptive"}
        Whether each batch but the first is encoded by the transpose of the decoder that met it.
    start : {"full", "first_batch"}
        Whether the decoder uses all of the pseudo labels' space or, as the paper's recursion does, what the first
        batch spans.
    ridge : float
        Added to the diagonal of the decoder's equations.
    forgetting : float
        What the decoder's sums are multiplied by before each batch.
    zero_score : {"absent", "present"}
        How a score of exactly zero is decided.
    n_components : {"log2", "log2_squared"} or int
        Number of pseudo labels.
    projection : (A, b) or None
        The encoder, or None to draw it.
    iterations : int
        How often each batch is learned.
    """

    bank: Bank[Any]
    encoding: Literal["fixed", "adaptive"] = "fixed"
    start: Literal["full", "first_batch"] = "full"
    ridge: float = 0.0
    forgetting: float = 1.0
    zero_score: Literal["absent", "present"] = "absent"
    n_components: str | int = "log2"
    projection: Any = field(default=None, compare=False)
    iterations: int = 1

    state_type = State
    unweighted = None

    def parts(self) -> Mapping[str, Any]:
        """Return what knows the learners' and the decoder's states."""
        return {"learners": self.bank, "decoder": decoder}

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make the state of a model that has seen nothing, with the given hyperplanes or with random ones."""
        if self.projection is None:
            n_components = parameters.component_count(self.n_components, schema.n_labels)
            return self.start_from(encoder.draw(schema.n_labels, n_components, rng), schema.kinds)
        return self.start_from(encoder.given(*_check_projection(self.projection, schema.n_labels)), schema.kinds)

    def start_from(self, hyperplanes: encoder.State, kinds: FeatureKinds) -> State:
        """Make the state of a model that has seen nothing, with these hyperplanes."""
        n_labels, n_components = hyperplanes.A.shape
        learners = self.bank.init(kinds, n_components)
        return State(hyperplanes, learners, decoder.init(n_labels, n_components))

    def update(
        self,
        state: State,
        X: AnyMatrix,
        Y: AnyMatrix,
        derived: Derived | None = None,
        row_weights: FloatArray | None = None,
    ) -> State:
        """Learn a batch; ``derived``, if it is available, saves adaptive encoding from solving for ``β`` again."""
        for _ in range(self.iterations):
            state, derived = self._learn(state, X, Y, derived, row_weights), None
        return state

    def _learn(
        self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None, row_weights: FloatArray | None
    ) -> State:
        hyperplanes, learners, sums = state
        if self.encoding == "adaptive" and sums.rows > 0:
            beta = decoder.solve(sums, self.ridge) if derived is None else derived.beta
            hyperplanes = encoder.adapt(hyperplanes, beta)
        H = encoder.encode(hyperplanes, Y)
        if self.bank.task == "classification":
            H = (H >= 0).astype(float)
        learners = self.bank.update(learners, X, H, row_weights)
        if self.start == "first_batch" and sums.basis is None:
            sums = sums._replace(basis=decoder.first_range(H))
        return State(hyperplanes, learners, decoder.update(sums, H, Y, self.forgetting, row_weights))

    def derive(self, state: State) -> Derived:
        """Compute what predicting needs."""
        return Derived(self.bank.derive(state.learners), decoder.solve(state.decoder, self.ridge))

    def hard_scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Decode hard pseudo labels; a tie of a pseudo label's two classes counts as 1."""
        predicted = self.bank.predict(derived.learners, X)
        if self.bank.task == "classification":
            predicted = is_even_or_more(predicted).astype(float)
        return predicted @ derived.beta

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Decide labels by the sign of their hard scores."""
        scores = self.hard_scores(derived, X)
        return is_even_or_more(scores) if self.zero_score == "present" else scores > TIE

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Decode the pseudo labels' probabilities, or values."""
        predicted = self.bank.predict(derived.learners, X)
        if self.bank.task == "classification":
            predicted = expit(predicted)
        return predicted @ derived.beta

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Map the scores, least-squares estimates of -1 for absent and 1 for present, to [0, 1]."""
        return soft_clip((self.scores(derived, X) + 1.0) / 2.0)

    def why_unmergeable(self, one: State, other: State) -> str | None:
        """Return why two models cannot be merged exactly; None if they can."""
        if self.encoding == "adaptive":
            return "with adaptive encoding, pseudo labels depend on what was learned before"
        if self.start == "first_batch" and not _same_basis(one.decoder.basis, other.decoder.basis):
            return "their decoders live in what each one's first batch spans; let both start from one model"
        if self.forgetting < 1:
            return "forgetting depends on the order of the batches"
        if growth.differing(one.encoder, other.encoder):
            return "their encoders differ; let both start from one model, random_state or projection"
        return super().why_unmergeable(one, other)

    def grow(self, state: State, old: Schema, new: Schema, rng: np.random.Generator) -> State:
        """Make the state with the features and labels of a wider schema; what is drawn for a label is its name's."""
        state = self.take(state, growth.to_grow(state, old.kinds, new.kinds))
        if new.n_labels == old.n_labels:
            return state
        return self.grow_rows(state, encoder.draw_rows(state.encoder, new.label_keys()[old.n_labels :], rng))

    def grow_rows(self, state: State, rows: FloatArray) -> State:
        """Add labels, with the given rows of the encoder, that were absent so far; pseudo labels and learners stay.

        With adaptive encoding, too, rows without the new labels are encoded as if these did not exist.
        """
        n_labels = len(state.encoder.A)
        grown = self.take(state, Moves({"l": growth.longer(n_labels, n_labels + len(rows))}))
        return grown._replace(encoder=encoder.grow(state.encoder, rows))


def _same_basis(one: FloatArray | None, other: FloatArray | None) -> bool:
    """Return whether two decoders live in the same space."""
    return one is not None and other is not None and np.array_equal(one, other)


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
    method : {"classification", "regression"}, default="classification"
        Whether pseudo labels are cut to 0/1 and learned by classifiers, or learned as real numbers by regressors.
    encoding : {"fixed", "adaptive"}, default="fixed"
        Whether the random hyperplanes stay, or each batch is encoded by the transpose of the decoder learned so far.
    n_components : {"log2", "log2_squared"} or int, default="log2"
        Number of pseudo labels: ``⌈log₂ l⌉``, its square, or as given.
    projection : (A, b) or None, default=None
        The encoder, ``A`` of shape (l, k) and the bias ``b`` of shape (k,); None draws it from `random_state`.
    learner : str, bank or estimator, default="auto"
        The base learners: "auto", "naive_bayes", "sgd", "ridge", "rls", a bank of `labelrace.learners`, or an estimator
        with ``partial_fit``. "auto" is naive Bayes for classification and SGD, with normalised steps, for regression.
    ridge : float, default=0.0
        Regularises the decoder: added to the diagonal of its equations.
    forgetting : float, default=1.0
        What the decoder's past is multiplied by before each batch; 1 forgets nothing.
    start : {"full", "first_batch"}, default="full"
        Whether the decoder uses all of the pseudo labels' space or what the first batch spans, as the paper's
        recursion does.
    zero_score : {"absent", "present"}, default="absent"
        What a label with a score of exactly zero is, in `predict`. Such scores come from rows whose pseudo labels are
        all 0.
    iterations : int, default=1
        How often each batch is learned, in a row; the paper's "iterative" RACE has 3.
    categorical_features : mask, indices, names or None, default=None
        Features that hold codes 0, 1, 2, … of nominal values. Linear learners know the values of the first batch and
        take later ones for the first value.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the encoder.

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

    See Also
    --------
    LabelRaceClassifier : The default, which needs no tuning.
    BinaryRelevanceClassifier : The same learners without compression.

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

    method: Literal["classification", "regression"] = "classification"
    encoding: Literal["fixed", "adaptive"] = "fixed"
    n_components: str | int = "log2"
    projection: tuple[npt.ArrayLike, npt.ArrayLike] | None = None
    learner: Any = "auto"
    ridge: float = 0.0
    forgetting: float = 1.0
    start: Literal["full", "first_batch"] = "full"
    zero_score: Literal["absent", "present"] = "absent"
    iterations: int = 1
    random_state: Any = None

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

        Returns
        -------
        RACEClassifier
            Unfitted.
        """
        original = {
            "learner": SGD.weka() if method == "regression" else NaiveBayes(numeric="binned"),
            "start": "first_batch",
            "zero_score": "present",
        }
        return cls(method=method, encoding=encoding, **{**original, **others})

    def _algorithm(self, seed: int) -> Race:
        parameters.check_choice("method", self.method, ("classification", "regression"))
        parameters.check_choice("encoding", self.encoding, ("fixed", "adaptive"))
        parameters.check_choice("start", self.start, ("full", "first_batch"))
        parameters.check_choice("zero_score", self.zero_score, ("absent", "present"))
        parameters.check_number("ridge", self.ridge, 0)
        parameters.check_number("forgetting", self.forgetting, 0, 1, open_low=True)
        parameters.check_whole("iterations", self.iterations, 1)
        return Race(
            as_bank(self.learner, self.method, self.random_state),
            self.encoding,
            self.start,
            float(self.ridge),
            float(self.forgetting),
            self.zero_score,
            self.n_components,
            self.projection,
            int(self.iterations),
        )

    def _seed(self) -> int:
        # Models with one projection and no random_state draw alike, so that they can still be merged afterwards.
        is_given = self.projection is not None and self.random_state is None
        return 0 if is_given else super()._seed()

    @property
    def encoder_(self) -> FloatArray:
        """The hyperplanes ``A``, (l, k)."""
        return _read_only(self.fitted.state.encoder.A)

    @property
    def encoder_bias_(self) -> FloatArray:
        """The bias ``b``, (k,)."""
        return _read_only(self.fitted.state.encoder.bias)

    @property
    def decoder_(self) -> FloatArray:
        """The decoder ``β``, (k, l)."""
        return _read_only(self.fitted.derived.beta)

    @property
    def n_components_(self) -> int:
        """The number of pseudo labels."""
        return self.encoder_.shape[1]

    @one_writer
    def add_labels(self, new: int | Sequence[str], rows: Any = None) -> Self:
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
        self._fitted = self._with_rows(new, parameters.numbers("rows", rows, 2))
        return self

    def _with_rows(self, new: int | Any, rows: FloatArray) -> Fitted:
        """Add labels whose rows of the encoder are given."""
        fitted, schema = self.fitted, self._schema_with(new)
        count, n_components = schema.n_labels - fitted.schema.n_labels, fitted.state.encoder.A.shape[1]
        if rows.shape != (count, n_components):
            raise ValueError(f"rows must be {count} finite rows of {n_components} numbers, got {rows.shape}.")
        return fitted.replace(schema, fitted.algorithm.grow_rows(fitted.state, rows))


class OfflineRACEClassifier(RACEClassifier):
    """RACE with all data in one batch, as in the paper's Table 4. Offline.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace import OfflineRACEClassifier
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 10)
    >>> OfflineRACEClassifier(random_state=0).fit(X, np.hstack([X, X])).predict([[1.0, 0.0]])
    array([[1., 0., 1., 0.]])
    """

    is_online = False

    @property
    def partial_fit(self) -> Any:
        """Not available: all data are learned at once, by `fit`."""
        raise AttributeError(f"{type(self).__name__} has no partial_fit: it learns all data at once, by fit.")


def _check_projection(projection: Any, n_labels: int) -> tuple[FloatArray, FloatArray]:
    """Check a given encoder: ``A`` of shape (labels, pseudo labels) and a bias."""
    try:
        A, bias = (np.array(part, dtype=np.float64) for part in projection)
    except (TypeError, ValueError):
        raise ValueError("projection must be a pair (A, b) of arrays of shapes (labels, k) and (k,).") from None
    if A.ndim != 2 or bias.ndim != 1 or A.shape != (n_labels, len(bias)) or len(bias) == 0:
        raise ValueError(
            f"projection must be a pair (A, b) of shapes ({n_labels}, k) and (k,) for {n_labels} labels, got {A.shape} "
            f"and {bias.shape}."
        )
    if not (np.isfinite(A).all() and np.isfinite(bias).all()):
        raise ValueError("projection must hold finite numbers, got NaN or infinity.")
    if len(bias) > n_labels:
        raise ValueError(f"projection must have at most as many pseudo labels as labels, {n_labels}, got {len(bias)}.")
    return A, bias


def _read_only(array: FloatArray) -> FloatArray:
    """Return a view that cannot be written to: what a model shows of its state must not change it."""
    view = array.view()
    view.setflags(write=False)
    return view
