"""Column subset selection (CSSP): a few labels are learned, the others follow from them.

The codes are labels. Of ``k`` drawn with probabilities by their leverage, ``p_j = ‖V_k(j)‖² / k`` with ``V_k`` the
first right singular vectors of the label matrix, a ridge regression learns each; all labels are decoded from them by
least squares, ``G[S,S]⁺ G[S,:]`` with ``G = TᵀT``. Since codes are labels, what is learned stays readable.

Drawing ``k`` without replacement is done once and for all: every label has a uniform ``u_j``, and the labels with the
``k`` largest ``log p_j - log(-log u_j)`` are those that successive draws would give. So the choice is reproducible,
does not depend on the order of rows, and changes only when leverages do; as all products with labels are kept, a change
costs nothing.

Cost: a batch ``n m²`` (sparse rows ``nnz(x)²`` each), ``nnz(x) |y|`` and ``|y|²`` a row; reading ``m³ + l³``, or
``l² k`` by Lanczos iterations where labels are many; a prediction ``(m + l) k``. State: ``m² + m l + l²``, of which
``l²`` becomes ``256 l`` above 10,000 labels. Online, mergeable, growable, all exact.

References
----------
Bi, W. and Kwok, J.: Efficient multi-label classification with many labels. ICML (2013).

Efraimidis, P. and Spirakis, P.: Weighted random sampling with a reservoir. Information Processing Letters 97 (2006).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from labelrace.base import parameters, random_draws
from labelrace.base.linalg import generalised_inverse
from labelrace.base.schema import Schema
from labelrace.related.compression.base import (
    CODINGS,
    Code,
    Compression,
    CompressionClassifier,
    Settings,
    State,
    View,
)
from labelrace.typing import FloatArray, IntArray


@dataclass(frozen=True)
class CSSP(Compression):
    """The algorithm."""

    n_components: str | int  # "log2", "log2_squared" or int: number of labels that are learned
    coding: str  # "centred", "signs", "binary": labels as numbers
    settings: Settings  # penalty, scaling and forgetting
    seed: int = 0  # what the labels' uniform numbers are drawn from
    uniforms: tuple[float, ...] | None = None  # the uniform numbers, where they are given
    selected: tuple[int, ...] | None = None  # the labels, where they are given

    def init(self, schema: Schema, rng: np.random.Generator) -> State:
        """Make empty sums; what is given must fit the labels."""
        if self.uniforms is not None and len(self.uniforms) != schema.n_labels:
            raise ValueError(
                f"uniforms must have a number for each of the {schema.n_labels} labels, got {len(self.uniforms)}."
            )
        if self.selected is not None and max(self.selected) >= schema.n_labels:
            raise ValueError(
                f"selected must be columns of the {schema.n_labels} labels, got {max(self.selected)} among them."
            )
        return super().init(schema, rng)

    def code(self, view: View) -> Code:
        """Choose labels, regress them and find the decoder."""
        coding = view.coding(self.coding)
        chosen = self._choose(view) if self.selected is None else np.array(self.selected, dtype=np.intp)
        encoder = np.equal.outer(np.arange(view.n_labels), chosen).astype(float)
        products = view.gram_columns(coding, chosen)
        decoder = generalised_inverse(products[chosen]) @ products.T
        return Code(view.fit(coding, encoder), decoder / coding.scale, coding.centre, chosen)

    def leverage(self, view: View) -> FloatArray:
        """Compute each label's share in the first singular vectors; they add up to 1."""
        values, vectors = view.principal(view.coding(self.coding), view.k)
        # Vectors of singular values that are zero are arbitrary, and tell nothing of a label.
        vectors = vectors[:, values > 1e-12 * max(values[0], 1e-300)]
        shares = np.einsum("ij,ij->i", vectors, vectors)
        return shares / max(float(shares.sum()), 1e-300)

    def _choose(self, view: View) -> IntArray:
        """Take the labels with the largest keys; of equal ones the first."""
        uniforms = np.array(self.uniforms) if self.uniforms else random_draws.uniform(self.seed, view.n_labels, 1)[:, 0]
        shares = self.leverage(view)
        # A label without leverage comes after all others.
        weights = np.log(np.where(shares > 1e-14, shares, 1e-300))
        keys = weights - np.log(-np.log(uniforms))
        return np.argsort(-keys, kind="stable")[: view.k]

    def why_no_new_labels(self) -> str | None:
        """Return why labels cannot be added: where their uniform numbers are given."""
        return None if self.uniforms is None else "uniforms= gives a number to the first labels only"


class CSSPClassifier(CompressionClassifier):
    """Column subset selection: a few labels are learned, the others follow from them.

    Parameters
    ----------
    n_components : {"log2", "log2_squared"} or int, default="log2"
        Number of labels that are learned; `read` gives another one later. Labels as codes take more than directions
        do: "log2_squared" is more accurate.
    coding : {"centred", "signs", "binary"}, default="centred"
        Labels as numbers: less their means, -1 and 1, or 0 and 1. The authors' program has -1 and 1.
    uniforms : sequence of float or None, default=None
        A number in (0, 1) for each label, from which labels are chosen; None draws them from `random_state`.
    selected : sequence of int or None, default=None
        Columns of the labels to learn; None chooses them.
    random_state : int, Generator, RandomState or None, default=None
        What `uniforms` are drawn from.

    Attributes
    ----------
    selected_ : (k,) array
        Columns of the labels that are learned at present.

    See Also
    --------
    MOPLMSClassifier : Labels chosen by an optimisation.

    Examples
    --------
    >>> from labelrace import CSSPClassifier, measures
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> (X, Y), (X_test, Y_test) = SyntheticStream(n_rows=600, n_features=20, n_labels=12, seed=0).batches(300)
    >>> predicted = CSSPClassifier(n_components=4, random_state=0).partial_fit(X, Y).predict(X_test)
    >>> round(measures.evaluate(Y_test, predicted, measures="micro_f1")["micro_f1"], 2)
    0.72
    """

    published: ClassVar[Mapping[str, Any]] = {"coding": "signs"}

    n_components: str | int = "log2"
    coding: str = "centred"
    uniforms: Any = None
    selected: Any = None
    random_state: Any = None

    @property
    def selected_(self) -> IntArray:
        """Columns of the labels that are learned at present."""
        selected: IntArray = self.fitted.derived.code.selected
        return selected

    def _algorithm(self, seed: int) -> CSSP:
        parameters.check_choice("coding", self.coding, CODINGS)
        uniforms = None if self.uniforms is None else tuple(parameters.numbers("uniforms", self.uniforms, 1).tolist())
        if uniforms is not None and not all(0 < u < 1 for u in uniforms):
            raise ValueError(f"uniforms must be numbers between 0 and 1, both left out, got {self.uniforms!r}.")
        selected = None if self.selected is None else tuple(map(int, parameters.numbers("selected", self.selected, 1)))
        if selected is not None and (not selected or min(selected) < 0 or len(set(selected)) < len(selected)):
            raise ValueError(f"selected must be distinct columns of labels, got {self.selected!r}.")
        own_seed = 0 if uniforms is not None or selected is not None else seed
        return CSSP(self.n_components, self.coding, self._settings(), own_seed, uniforms, selected)
