"""What the compression methods share: one state of running sums, read as codes, their regression and a decoder.

A method is a function of the sums (`labelrace.learners.sums`) that returns a `Code`: linear models of ``k`` codes of
the labels and a decoder, so that the score of a row is ``x W D`` plus a constant, of rank ``k``. Encoders are found
when the model is read, not when a row is learned. So all methods are online, exactly: whatever the batches, and whether
parts were merged or labels came later, a model equals the one that was given all rows at once.

*Features* are scaled as the default model, ``race``, scales them, as far as sums allow. Sparse data is damped and each
row scaled to length one, as there: that needs nothing but the row. Dense columns are standardised, but on the sums,
when they are read; so they are neither clipped nor joined by random features, both of which would need the moments
before the row is summed. The first batch decides between the two, as for ``race``.

*The penalty* is chosen by generalised cross-validation on the sums (`labelrace.learners.regression`): it matters more
than the choice among these methods.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse.linalg

from labelrace.base import parameters
from labelrace.base.algorithm import Algorithm
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.fitted import Fitted
from labelrace.base.growth import SAME, Moves, longer
from labelrace.base.linalg import top_eigenpairs
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense
from labelrace.decisions.calibration import soft_clip
from labelrace.exceptions import MergeError
from labelrace.learners import sums
from labelrace.learners.regression import Linear, Reading, Regression
from labelrace.learners.sums import LabelGram, Sums, matrix_of
from labelrace.linear import scaling
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

SCALINGS = ("auto", "rows", "columns", "none")
CODINGS = ("centred", "signs", "binary")


class State(NamedTuple):
    """What was learned."""

    kinds: FeatureKinds
    # 1 where rows are damped and scaled to length one, 0 where they are not, -1 before a first batch.
    by_rows: Annotated[float, SAME]
    # Number of labels that there were at first, from which the number of codes follows if it is not given.
    first_labels: Annotated[float, "<l+1", SAME]
    sums: Annotated[sums.State, "f=M", "y=l"]


class Code(NamedTuple):
    """How labels are read: ``ŷ = (x W + b) D + offset``, or without ``D`` where nothing is compressed."""

    linear: Linear  # models of the codes
    decoder: FloatArray | None  # (k, l) or None
    offset: FloatArray | float  # (l,), or 0
    selected: IntArray | None = None  # (k,) or None: the labels that are the codes, where these are labels


class Derived(NamedTuple):
    """What predicting needs; ``code`` is a `Code`, or what a method with a decoder of its own has instead."""

    kinds: FeatureKinds
    by_rows: bool
    code: Any


@dataclass(frozen=True)
class Settings:
    """What all methods can be set to."""

    penalty: float | None = None  # ridge penalty; None chooses it
    scaling: str = "auto"  # "auto", "rows", "columns", "none": how features are scaled
    penalises_intercept: bool = False  # the regression of the published programs
    forgetting: float = 1.0  # weight that what was learned keeps with each batch


class Coding(NamedTuple):
    """Labels as numbers: ``t = scale (y - centre)``."""

    scale: float
    centre: FloatArray


@dataclass(frozen=True)
class View:
    """The sums as methods read them."""

    keeper: Sums  # how the sums are kept
    sums: sums.State
    regression: Regression  # how features are read
    k: int  # number of codes
    n_extra: int = 0  # columns that are summed before the labels
    state: Any = None  # the whole state, for methods that keep more than the sums

    @cached_property
    def reading(self) -> Reading:
        """The regression on the features."""
        return self.regression.read(self.sums, self.n_extra)

    @cached_property
    def label_gram(self) -> LabelGram:
        """``YᵀY``."""
        return self.keeper.label_gram(self.sums)

    @property
    def n_labels(self) -> int:
        """Number of labels, and of what is summed with them."""
        return len(self.sums.sum_y)

    @property
    def mean(self) -> FloatArray:
        """Each label's share of rows, ``ȳ``."""
        return self.sums.sum_y / max(self.sums.rows, 1e-300)

    @property
    def products(self) -> AnyMatrix:
        """``XᵀY`` about the features' shift."""
        return matrix_of(self.sums.xy, (len(self.sums.shift), self.n_labels))

    def coding(self, name: str) -> Coding:
        """Return a coding: "centred" about the mean, "signs" -1 and 1, or "binary" 0 and 1."""
        if name == "centred":
            return Coding(1.0, self.mean)
        return Coding(2.0, np.full(self.n_labels, 0.5)) if name == "signs" else Coding(1.0, np.zeros(self.n_labels))

    def total(self, coding: Coding) -> FloatArray:
        """Compute the sums of the coded labels."""
        return coding.scale * (self.sums.sum_y - self.sums.rows * coding.centre)

    def cross(self, coding: Coding, encoder: AnyMatrix | None = None) -> tuple[FloatArray, FloatArray]:
        """Compute the features' products with codes ``T E``, and the codes' sums; without an encoder, with ``T``."""
        total, products, centre = self.total(coding), self.products, coding.centre
        if encoder is not None:
            total, products, centre = total @ encoder, products @ encoder, centre @ encoder
        products = dense(products) - np.outer(self.sums.sum_x, centre)
        return self.reading.cross(coding.scale * products, total), total

    def fit(self, coding: Coding, encoder: AnyMatrix | None = None) -> Linear:
        """Regress codes ``T E`` on the features."""
        return self.reading.fit(*self.cross(coding, encoder))

    def gram(self, coding: Coding) -> FloatArray:
        """Compute ``TᵀT``."""
        scale, centre = coding
        gram = self.label_gram.dense() - np.outer(self.sums.sum_y, centre)
        total = self.total(coding)
        # The sums of centred labels are zero, but for round-off.
        if np.abs(total).max(initial=0.0) > 1e-9 * self.sums.rows:
            gram -= np.outer(centre, total / scale)
        if scale != 1.0:
            gram *= scale**2
        return gram

    def gram_columns(self, coding: Coding, labels: IntArray) -> FloatArray:
        """Compute some columns of ``TᵀT``, (l, k)."""
        scale, centre = coding
        columns_of_gram = self.label_gram.columns(labels) - np.outer(self.sums.sum_y, centre[labels])
        columns_of_gram -= np.outer(centre, self.sums.sum_y[labels] - self.sums.rows * centre[labels])
        return scale**2 * columns_of_gram

    def principal(self, coding: Coding, k: int) -> tuple[FloatArray, FloatArray]:
        """Compute the ``k`` largest eigenvalues of ``TᵀT`` and their eigenvectors; where it is large, without it."""
        if isinstance(self.label_gram.matrix, np.ndarray):
            return top_eigenpairs(self.gram(coding), k)
        scale, centre, total = coding.scale, coding.centre, self.sums.sum_y

        def times(V: FloatArray) -> FloatArray:
            V = V.reshape(len(centre), -1)
            along = centre @ V
            product = self.label_gram.times(V) - np.outer(total, along)
            return scale**2 * (product - np.outer(centre, total @ V - self.sums.rows * along))

        size = self.n_labels
        return top_eigenpairs(scipy.sparse.linalg.LinearOperator((size, size), times, matmat=times, dtype=float), k)


class Compression(Algorithm[State]):
    """An algorithm that reads everything from the sums.

    A subclass is a frozen dataclass with fields ``settings`` and, where labels are compressed, ``n_components``; it
    gives `code`.
    """

    settings: Settings
    state_type: ClassVar[Any] = State
    unweighted: ClassVar[str | None] = None
    keeps_yy: ClassVar[bool] = True
    """Whether the method needs ``YᵀY``."""

    needs_exact_yy: ClassVar[bool] = False
    """Whether the method cannot do with a sketch of ``YᵀY``."""

    reads_any_k: ClassVar[bool] = True
    """Whether the number of codes can be chosen when the sums are read."""

    @property
    def n_extra(self) -> int:
        """Number of columns that are summed before the labels."""
        return 0

    @abstractmethod
    def code(self, view: View) -> Any:
        """Find codes, their regression and the decoder."""

    @property
    def keeper(self) -> Sums:
        """The sums that are kept."""
        return Sums(keeps_yy=self.keeps_yy)

    def parts(self) -> Mapping[str, Any]:
        """Return what keeps the sums."""
        return {"sums": self.keeper}

    def yy_columns(self, n_targets: int) -> int:
        """Compute the number of columns of ``YᵀY`` that are kept."""
        return self.keeper.yy_columns(n_targets)

    @property
    def wanted(self) -> Any:
        """The number of codes as it was given; 1 for methods that do not compress."""
        return getattr(self, "n_components", 1)

    def count(self, n_labels: int) -> int:
        """Compute the number of codes for a number of labels."""
        return parameters.component_count(self.wanted, n_labels)

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make empty sums."""
        self.count(schema.n_labels)
        by_rows, n_labels = self.first_scaling(), schema.n_labels
        empty = self.keeper.init(schema.kinds.width, self.n_extra + n_labels)
        return State(schema.kinds, by_rows, float(n_labels), empty)

    def first_scaling(self) -> float:
        """Return 1 if rows are scaled, 0 if not, -1 where the first batch decides."""
        return {"auto": -1.0, "rows": 1.0}.get(self.settings.scaling, 0.0)

    def update(
        self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Any = None, row_weights: FloatArray | None = None
    ) -> State:
        """Add a batch to the sums."""
        if state.by_rows < 0:
            state = state._replace(by_rows=float(scaling.is_sparse(X)))
        forgetting = self.settings.forgetting
        before = self.keeper.decay(state.sums, forgetting) if forgetting < 1 else state.sums
        scaled = _scale(X, state.kinds, state.by_rows > 0)
        return state._replace(sums=self.keeper.update(before, scaled, self.targets(state, Y), row_weights))

    def targets(self, state: State, Y: AnyMatrix) -> AnyMatrix:
        """Return what is summed: the labels, with extra columns before them where a method has any."""
        return Y

    def view(self, state: State) -> View:
        """Return the sums as they are read."""
        s = self.settings
        standardises = not state.by_rows and s.scaling != "none"
        regression = Regression(s.penalty, standardises, s.penalises_intercept)
        is_given = not isinstance(self.wanted, str)
        k = self.count(len(state.sums.sum_y) - self.n_extra if is_given else int(state.first_labels))
        return View(self.keeper, state.sums, regression, k, self.n_extra, state)

    def derive(self, state: State) -> Derived:
        """Read codes, regression and decoder from the sums."""
        return Derived(state.kinds, state.by_rows > 0, self.code(self.view(state)))

    def codes(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Predict the codes of rows."""
        linear: Linear = derived.code.linear
        return linear.predict(_scale(X, derived.kinds, derived.by_rows))

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Decode; -1 is an absent, 1 a present label, so that the sign is the rounding."""
        code: Code = derived.code
        decoded = self.codes(derived, X)
        if code.decoder is not None:
            decoded = decoded @ code.decoder
        return 2.0 * (decoded + code.offset) - 1.0

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Round the decoded labels."""
        return self.scores(derived, X) >= 0

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Cut the decoded labels, least-squares estimates of 0 and 1, to (0, 1)."""
        return soft_clip((self.scores(derived, X) + 1.0) / 2.0)

    def why_unmergeable(self, one: State, other: State) -> str | None:
        """Return why two states cannot be merged exactly; None if adding their sums does it."""
        if self.settings.forgetting < 1:
            return "what they have forgotten depends on the order of the batches"
        if not np.array_equal(one.kinds.n_values, other.kinds.n_values):
            return "the values of their nominal features come from each one's first batch"
        if one.by_rows != other.by_rows:
            return "by their first batches one took its features for sparse, the other for dense; give scaling="
        if one.first_labels != other.first_labels and isinstance(self.wanted, str):
            return "they began with different numbers of labels, and so of codes; give n_components as a number"
        return None

    def why_too_many_labels(self, n_labels: int) -> str | None:
        """Return why there is no room for the labels: where all of ``YᵀY`` is needed."""
        most = self.keeper.exact_labels
        if not self.needs_exact_yy or self.n_extra + n_labels <= most:
            return None
        return f"it needs all products of labels, which are kept for up to {most} labels; use 'cplst' or 'plst'"


def given_encoder(given: Any) -> tuple[tuple[float, ...], ...]:
    """Check an encoder that is given, a row for each label, and make it a setting that can be compared."""
    matrix = parameters.numbers("encoder", given, 2)
    if not matrix.size:
        raise ValueError(f"encoder must be a matrix of finite numbers, got {given!r}.")
    return tuple(map(tuple, matrix.tolist()))


def check_given(name: str, rows: Sequence[Any] | None, n_labels: int) -> None:
    """Refuse a parameter that must have a row for each label and has not."""
    if rows is not None and len(rows) != n_labels:
        raise ValueError(f"{name} must have a row for each of the {n_labels} labels, got {len(rows)} rows.")


def refuse_other_order(moves: Moves, what: str) -> None:
    """Refuse to put labels in another order, where random numbers belong to their positions."""
    labels = moves.sources.get("l", np.arange(0))
    if not np.array_equal(labels, longer(int((labels >= 0).sum()), len(labels))):
        raise MergeError(f"The models must have their labels in the same order, which settles their random {what}.")


def _scale(X: AnyMatrix, kinds: FeatureKinds, by_rows: bool) -> AnyMatrix:
    """Make the columns that are summed: damped rows of length one, or the design unchanged."""
    return scaling.transform(scaling.init(kinds), X) if by_rows else kinds.design(X)


class CompressionClassifier(OnlineClassifier):
    """Base of the classifiers that read everything from running sums.

    Parameters
    ----------
    penalty : "auto" or float, default="auto"
        Ridge penalty, as scikit-learn's ``alpha``; "auto" chooses it by generalised cross-validation on the sums.
    scaling : {"auto", "rows", "columns", "none"}, default="auto"
        Features: "rows" damps values and scales rows to length one, for sparse data such as words; "columns"
        standardises; "none" takes them unchanged. "auto" decides between the first two by the first batch.
    penalise_intercept : bool, default=False
        Penalise the intercept too, and do not centre, as the published programs do.
    forgetting : float, default=1.0
        Weight that what was learned keeps with each batch.

    Attributes
    ----------
    penalty_ : float
        The penalty in force.
    """

    published: ClassVar[Mapping[str, Any]] = {}
    """What `paper` settles besides the regression."""

    penalty: Any = "auto"
    scaling: str = "auto"
    penalise_intercept: bool = False
    forgetting: float = 1.0

    @classmethod
    def paper(cls, **others: Any) -> Self:
        """Make the form of the published program or of the reference: features unscaled, λ = 0.1 on the intercept too.

        Where the method has an encoder that looks at features, it does so without an intercept; what else is settled is
        in `published`.

        Parameters
        ----------
        **others
            Any other parameter of the class.

        Returns
        -------
        classifier
            Unfitted.
        """
        return cls(**{"penalty": 0.1, "scaling": "none", "penalise_intercept": True, **cls.published, **others})

    def _settings(self) -> Settings:
        """Check the parameters that all methods have."""
        if self.penalty != "auto":
            parameters.check_number("penalty", self.penalty, 0)
        parameters.check_choice("scaling", self.scaling, SCALINGS)
        parameters.check_flag("penalise_intercept", self.penalise_intercept)
        if self.penalise_intercept and (self.penalty == "auto" or self.scaling not in ("none", "rows")):
            raise ValueError(
                "penalise_intercept=True must go with a number for penalty and scaling='none' or 'rows', got "
                f"penalty={self.penalty!r} and scaling={self.scaling!r}."
            )
        parameters.check_number("forgetting", self.forgetting, 0, 1, open_low=True)
        penalty = None if self.penalty == "auto" else float(self.penalty)
        return Settings(penalty, self.scaling, bool(self.penalise_intercept), float(self.forgetting))

    def read(self, n_components: Literal["log2", "log2_squared"] | int) -> Self:
        """Return the model with another number of codes, read from the same sums: nothing is learned again.

        Parameters
        ----------
        n_components : {"log2", "log2_squared"} or int
            Number of codes; "log2" and "log2_squared" are those of the labels that there are by now.

        Returns
        -------
        model
            A copy; both learn on by themselves.
        """
        fitted = self.fitted
        other = copy.copy(self)
        other.set_params(n_components=n_components)
        if not fitted.algorithm.reads_any_k:
            raise ValueError(f"The number of codes of {type(self).__name__} must be chosen before learning begins.")
        algorithm: Any = other._algorithm(fitted.seed)
        algorithm.count(fitted.schema.n_labels)
        state = fitted.state._replace(first_labels=float(fitted.schema.n_labels))
        return other.with_fitted(Fitted(algorithm, fitted.schema, state, fitted.seed, other.get_params(deep=False)))

    @property
    def penalty_(self) -> float:
        """The ridge penalty in force, given or chosen."""
        fitted = self.fitted
        return float(fitted.algorithm.view(fitted.state).reading.penalty)
