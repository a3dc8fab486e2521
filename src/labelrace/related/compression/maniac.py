"""MANIAC: codes of the labels by a stacked autoencoder.

An autoencoder of sigmoid units reproduces label sets through fewer and fewer units: stage by stage a layer with 85 % of
the units before it is put in the middle, trained by itself on the codes so far, and then the whole net is trained. The
innermost units are the codes; linear models predict them.

Published, the net is trained by contrastive divergence and conjugate gradients on all rows, without a seed, and decodes
what is predicted. Here each layer starts from the principal directions of its inputs, where units that are linear are
best already, and Adam trains on minibatches in an order that the seed gives. Learners cannot follow codes that move, so
the first batch trains the net and it stays, over the labels that occur there. Predicted codes are decoded by the net. A
decoder by least squares, as in RACE, learns from every batch, for the labels that come later, or for all of them if
wanted; but it cannot unfold what the net has folded. Codes are regressed from running sums as by the other compression
methods.

Cost: training ``epochs · stages · n l²``; then a row ``l²`` and ``nnz(x) k``, reading ``m³``, a prediction
``(m + l) k``. State: ``m² + m k + l²``. New labels are exact: they are decoded, but do not change codes. Not mergeable.

References
----------
Wicker, J., Tyukin, A. and Kramer, S.: A nonlinear label compression and transformation method for multi-label
classification using autoencoders. PAKDD (2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from labelrace.base import growth, parameters
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import Moves
from labelrace.base.linalg import top_eigenpairs
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense
from labelrace.learners import sums
from labelrace.learners.regression import Linear
from labelrace.race import decoder
from labelrace.related.compression.base import Compression, CompressionClassifier, Derived, Settings, View
from labelrace.typing import AnyMatrix, BoolArray, FloatArray

_PENALTY = 1e-6  # of the decoder, relative to the codes
_ADAM = 0.9, 0.999, 1e-8
_RANK = 1e-9  # share of the largest eigenvalue up to which others are zero


class Layer(NamedTuple):
    """Weights and biases of a layer of the net."""

    weights: Annotated[FloatArray, "_i _o"]
    bias: Annotated[FloatArray, "_o"]


class State(NamedTuple):
    """As `labelrace.related.compression.base.State`, with codes instead of labels, the net and the decoder.

    ``layers`` lead from labels to codes, ``back`` from codes to labels; ``occurs`` tells which labels the net knows.
    """

    kinds: FeatureKinds
    by_rows: float
    first_labels: Annotated[float, "<l+1"]
    sums: Annotated[sums.State, "f=M"]
    layers: tuple[Layer, ...]
    back: tuple[Layer, ...]
    occurs: Annotated[BoolArray, "l"]
    decoder: Annotated[decoder.State, "k=y+1"]


class Code(NamedTuple):
    """The codes' models, the net from codes to labels, the labels that it decodes, and the least-squares decoder."""

    linear: Linear
    back: tuple[Layer, ...]
    occurs: Annotated[BoolArray, "l"]
    decoder: FloatArray
    offset: FloatArray


@dataclass(frozen=True)
class MANIAC(Compression):
    """The algorithm."""

    stages: int  # number of layers of codes
    shrink: float  # units of a layer, as a share of those before it
    linear: bool  # whether units are linear
    by_net: bool  # whether the net decodes the labels that it knows
    # Times that rows are gone through for each training, and rows of a step.
    epochs: int
    minibatch: int
    rate: float  # step of Adam
    settings: Settings  # penalty, scaling and forgetting
    seed: int  # what the order of rows is drawn from

    state_type = State
    keeps_yy = False
    unweighted = "its net is trained on the rows of the first batch, one after the other"
    reads_any_k = False

    def init(self, schema: Schema, rng: np.random.Generator) -> Any:
        """Make the state that has seen nothing: its net maps all to nothing."""
        n_labels, by_rows = schema.n_labels, float(self.settings.scaling == "rows")
        net = (Layer(np.zeros((n_labels, 1)), np.zeros(1)),), (Layer(np.zeros((1, n_labels)), np.zeros(n_labels)),)
        empty = self.keeper.init(schema.kinds.width, 1), *net, np.zeros(n_labels, dtype=bool), decoder.init(n_labels, 2)
        return State(schema.kinds, by_rows, float(n_labels), *empty)

    def update(self, state: Any, X: AnyMatrix, Y: AnyMatrix, derived: Any = None) -> Any:  # type: ignore[override]
        """Train the net by the first batch; add every batch to the sums."""
        if state.sums.rows == 0:
            state = self._train(state, Y)
        updated: Any = super().update(state, X, Y)
        codes = self.targets(state, Y)
        with_ones = np.column_stack([np.ones(len(codes)), codes])
        return updated._replace(decoder=decoder.update(state.decoder, with_ones, Y, self.settings.forgetting))

    def _train(self, state: Any, Y: AnyMatrix) -> Any:
        """Train the net on the labels that occur; the others have weights of 0."""
        known = dense(Y).astype(float)
        occurs: BoolArray = np.asarray(known.any(axis=0))
        if not occurs.any():
            return state
        sizes = layer_sizes(int(occurs.sum()), self.stages, self.shrink)
        how = self.linear, self.epochs, self.minibatch, self.rate
        layers = train(known[:, occurs], sizes, *how, np.random.default_rng(self.seed))
        first, last = layers[0], layers[-1]
        n_labels = len(occurs)
        inward, outward, bias = np.zeros((n_labels, sizes[0])), np.zeros((sizes[0], n_labels)), np.zeros(n_labels)
        inward[occurs], outward[:, occurs], bias[occurs] = first.weights, last.weights, last.bias
        layers[0], layers[-1] = first._replace(weights=inward), Layer(outward, bias)
        return state._replace(
            sums=self.keeper.init(len(state.sums.shift), sizes[-1]),
            layers=tuple(layers[: len(sizes)]),
            back=tuple(layers[len(sizes) :]),
            occurs=occurs,
            decoder=decoder.init(n_labels, sizes[-1] + 1),
        )

    def targets(self, state: Any, Y: AnyMatrix) -> FloatArray:
        """Compute codes."""
        return outputs(state.layers, Y, self.linear)[-1]

    def code(self, view: View) -> Code:
        """Regress the codes, and find the least-squares decoder."""
        state: State = view.state
        solved = decoder.solve_labels(state.decoder, _PENALTY)
        return Code(view.fit(view.coding("binary")), state.back, state.occurs, solved[1:], solved[0])

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Decode; -1 is an absent, 1 a present label."""
        code: Code = derived.code
        codes = self.codes(derived, X)
        decoded = codes @ code.decoder + code.offset
        if self.by_net and code.occurs.any():
            # Units of the net put out nothing else.
            inputs = codes if self.linear else np.clip(codes, 0.0, 1.0)
            decoded[:, code.occurs] = outputs(code.back, inputs, self.linear)[-1][:, code.occurs]
        return 2.0 * decoded - 1.0

    def why_unmergeable(self, one: Any, other: Any) -> str | None:
        """Return why two models cannot be merged: each has its own codes."""
        return "each has a net of its own, from its first batch"

    def take(self, state: Any, moves: Moves) -> Any:
        """Move labels and features; new labels change no code, and the decoder has seen zeros."""
        taken: Any = super().take(state, moves)
        labels = moves.source("l", len(state.occurs))
        if labels is None:
            return taken
        first, last = state.layers[0], state.back[-1]
        first = first._replace(weights=growth.moved(first.weights, labels))
        last = Layer(growth.moved(last.weights, labels, axis=1), growth.moved(last.bias, labels))
        return taken._replace(layers=(first, *state.layers[1:]), back=(*state.back[:-1], last))


def layer_sizes(n_labels: int, stages: int, shrink: float) -> list[int]:
    """Compute the units of each layer of codes.

    Examples
    --------
    >>> layer_sizes(6, 4, 0.85)
    [5, 4, 3, 2]
    """
    sizes = [n_labels]
    for _ in range(stages):
        sizes.append(max(1, int(min(shrink * sizes[-1], sizes[-1] - 1))))
    return sizes[1:]


def outputs(layers: Sequence[Layer], X: AnyMatrix, linear: bool) -> list[FloatArray]:
    """Compute what each layer puts out, the first one from ``X``."""
    units: list[FloatArray] = []
    for weights, bias in layers:
        X = np.asarray(X @ weights) + bias
        X = X if linear else expit(X)
        units.append(X)
    return units


def train(
    Y: FloatArray, sizes: Sequence[int], linear: bool, epochs: int, minibatch: int, rate: float, rng: Any
) -> list[Layer]:
    """Train a net that reproduces label sets; return its layers, those of the codes and those back to labels.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.repeat(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]), 20, axis=0)
    >>> net = train(Y, [2, 1], False, 50, 8, 0.01, np.random.default_rng(0))
    >>> bool(np.abs(outputs(net, Y, False)[-1] - Y).max() < 0.1)
    True
    """
    net: list[Layer] = []
    codes = Y
    for stage, size in enumerate(sizes):
        pair = _adam(_start(codes, size, linear), codes, linear, epochs, minibatch, rate, rng)
        net[stage:stage] = pair
        if stage:
            net = _adam(net, Y, linear, epochs, minibatch, rate, rng)
        codes = outputs(net[: stage + 1], Y, linear)[-1]
    return net


def _start(X: FloatArray, size: int, linear: bool) -> list[Layer]:
    """Make a layer of the principal directions of its inputs, and the layer back."""
    mean = X.mean(axis=0)
    values, directions = top_eigenpairs((X - mean).T @ (X - mean), size)
    # With fewer rows than units there are directions in which rows do not vary: any, as rounding has it.
    directions = directions * (values > _RANK * values[0])
    if linear:
        return [Layer(directions, -mean @ directions), Layer(directions.T.copy(), mean)]
    # Units in the middle of their range, and steep enough there to use it.
    spread = np.sqrt(np.maximum(values / len(X), 1e-12))
    inward = directions / spread
    outward = 4.0 * spread[:, None] * directions.T / np.maximum(4.0 * mean * (1.0 - mean), 0.1)
    even = logit(np.clip(mean, 0.01, 0.99))
    return [Layer(inward, -mean @ inward), Layer(4.0 * outward, even - 2.0 * outward.sum(axis=0))]


def _adam(
    net: list[Layer], X: FloatArray, linear: bool, epochs: int, minibatch: int, rate: float, rng: Any
) -> list[Layer]:
    """Train all layers to reproduce ``X``, by squared error."""
    first, second, small = _ADAM
    values = [part for layer in net for part in layer]
    means, squares = [np.zeros_like(value) for value in values], [np.zeros_like(value) for value in values]
    step = 0
    for _ in range(epochs):
        order = rng.permutation(len(X))
        for start in range(0, len(X), minibatch):
            rows = X[order[start : start + minibatch]]
            step += 1
            size = rate * np.sqrt(1.0 - second**step) / (1.0 - first**step)
            layers = [Layer(*pair) for pair in zip(values[::2], values[1::2], strict=True)]
            for index, gradient in enumerate(_gradients(layers, rows, linear)):
                means[index] = first * means[index] + (1.0 - first) * gradient
                squares[index] = second * squares[index] + (1.0 - second) * gradient**2
                values[index] = values[index] - size * means[index] / (np.sqrt(squares[index]) + small)
    return [Layer(*pair) for pair in zip(values[::2], values[1::2], strict=True)]


def _gradients(net: Sequence[Layer], X: FloatArray, linear: bool) -> list[FloatArray]:
    """Compute the gradients of half the mean squared error of rows, of weights and biases in order."""
    units = outputs(net, X, linear)
    error = (units[-1] - X) / len(X)
    gradients: list[FloatArray] = []
    for layer in reversed(range(len(net))):
        if not linear:
            error = error * units[layer] * (1.0 - units[layer])
        inputs = units[layer - 1] if layer else X
        gradients[:0] = [inputs.T @ error, error.sum(axis=0)]
        error = error @ net[layer].weights.T
    return gradients


class MANIACClassifier(CompressionClassifier):
    """MANIAC: codes of the labels by a stacked autoencoder, which linear models predict.

    Parameters
    ----------
    stages : int, default=4
        Number of layers of codes, one on the other.
    shrink : float, default=0.85
        Units of a layer, as a share of those before it.
    units : {"sigmoid", "linear"}, default="sigmoid"
        Units of the net; with linear ones the codes span what those of `PLSTClassifier` do.
    decoder : {"net", "least_squares"}, default="net"
        What decodes the labels that occur in the first batch; others are decoded by least squares in any case.
    epochs : int, default=30
        Times that the first batch is gone through for each layer, and again for the whole net.
    minibatch : int, default=20
        Rows of a step.
    rate : float, default=0.01
        Step of Adam.
    random_state : int, Generator, RandomState or None, default=None
        What the order of rows in training is drawn from.

    See Also
    --------
    PLSTClassifier : The best linear codes.
    RBMClassifier : Hidden units of the features, not of the labels.

    Examples
    --------
    >>> from labelrace import MANIACClassifier, measures
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> (X, Y), (X_test, Y_test) = SyntheticStream(n_rows=600, n_features=20, n_labels=12, seed=0).batches(300)
    >>> predicted = MANIACClassifier(stages=3, random_state=0).partial_fit(X, Y).predict(X_test)
    >>> round(measures.evaluate(Y_test, predicted, measures="micro_f1")["micro_f1"], 2)
    0.68
    """

    stages: int = 4
    shrink: float = 0.85
    units: str = "sigmoid"
    decoder: str = "net"
    epochs: int = 30
    minibatch: int = 20
    rate: float = 0.01
    random_state: Any = None

    def _algorithm(self, seed: int) -> MANIAC:
        for name in ("stages", "epochs", "minibatch"):
            parameters.check_whole(name, getattr(self, name), 1)
        parameters.check_number("shrink", self.shrink, 0, 1, open_low=True)
        parameters.check_choice("units", self.units, ("sigmoid", "linear"))
        parameters.check_choice("decoder", self.decoder, ("net", "least_squares"))
        parameters.check_number("rate", self.rate, 0, open_low=True)
        net = int(self.stages), float(self.shrink), self.units == "linear", self.decoder == "net"
        training = int(self.epochs), int(self.minibatch), float(self.rate)
        return MANIAC(*net, *training, self._settings(), seed)
