"""Checks of the data that streams bring sooner or later: extreme batches, sparse arrays, new labels and names."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from unittest import SkipTest

import numpy as np
import scipy.sparse

from labelrace.checks.model_under_test import (
    ModelUnderTest,
    Results,
    parameters,
    require,
    require_close,
    require_equal,
    require_well_formed,
    results,
    sample,
    set_parameters,
)
from labelrace.typing import Array


def check_unseen_labels(under_test: ModelUnderTest) -> None:
    """Check for well-formed results where a label never occurred.

    Most of many labels are absent from a first batch: their counts are 0, and must not be divided by.
    """
    _check_with_column(under_test, 0.0)


def check_constant_labels(under_test: ModelUnderTest) -> None:
    """Check for well-formed results where a label was always there.

    It is the opposite of unseen labels: there is no row of class 0 to learn from.
    """
    _check_with_column(under_test, 1.0)


def _check_with_column(under_test: ModelUnderTest, value: float) -> None:
    """Give one label the same value in all batches but the last."""
    first, second, rows = sample()
    model = under_test.fresh()
    for (X, Y), is_constant in ((first, True), (second, True), (second, False)):
        labels = Y.copy()
        if is_constant:
            labels[:, 2] = value
        under_test.learn(model, X, labels)
        require_well_formed(results(model, rows), len(rows), Y.shape[1])


def check_one_label(under_test: ModelUnderTest) -> None:
    """Check for well-formed results where there is only one label: a column, not a vector.

    A selection of labels may leave one of them.
    """
    first, second, rows = sample()
    model = under_test.fresh()
    for X, Y in (first, second):
        under_test.learn(model, X, Y[:, :1])
        require_well_formed(results(model, rows), len(rows), 1)


def check_one_row(under_test: ModelUnderTest) -> None:
    """Check for well-formed results after a single row was learned.

    It has no variance, spans one dimension, and every label in it is constant. A stream may begin like this.
    """
    (X, Y), second, rows = sample()
    model = under_test.fitted((X[:1], Y[:1]))
    require_well_formed(results(model, rows), len(rows), Y.shape[1])
    under_test.learn(model, *second)
    require_well_formed(results(model, rows), len(rows), Y.shape[1])


def check_batches_of_one(under_test: ModelUnderTest) -> None:
    """Check for well-formed results after learning row by row, and the same predictions for rows alone as together.

    This is how rows arrive at a service. What is learned may depend on the size of the batches; predictions may not.
    """
    if not under_test.is_online:
        raise SkipTest("it is offline: it learns all data at once")
    (X, Y), _, rows = sample()
    model = under_test.fresh()
    for row in range(len(X)):
        under_test.learn(model, X[row : row + 1], Y[row : row + 1])
    together = results(model, rows)
    require_well_formed(together, len(rows), Y.shape[1])
    alone = [results(model, rows[row : row + 1]) for row in range(len(rows))]
    stacked = Results(*(np.vstack(parts) for parts in zip(*alone, strict=True)))
    require_close(stacked, together, "when rows are predicted one by one")


def check_zero_features(under_test: ModelUnderTest) -> None:
    """Check for well-formed results where all features of all rows are 0, be it when learning or when predicting.

    A text without a known word is such a row, and a batch of them has no norm, no variance and no rank.
    """
    first, (X, Y), rows = sample()
    zeros, model = np.zeros_like(rows), under_test.fitted((np.zeros_like(X), Y))
    for queries in (zeros, rows):
        require_well_formed(results(model, queries), len(queries), Y.shape[1])
    under_test.learn(model, *first)
    require_well_formed(results(model, zeros), len(zeros), Y.shape[1])


def check_sparse(under_test: ModelUnderTest) -> None:
    """Check for the same results, but for rounding, from sparse ``X``, sparse ``Y`` or both, as from dense ones.

    How data are stored must not matter. Texts and large label sets are sparse, and would not fit into memory dense.
    """
    first, second, rows = sample()
    expected = results(under_test.fitted(first, second), rows)
    sparse = scipy.sparse.csr_array
    for names, of_X, of_Y in (("X", sparse, np.array), ("Y", np.array, sparse), ("X and Y", sparse, sparse)):
        model = under_test.fitted(*((of_X(X), of_Y(Y)) for X, Y in (first, second)))
        require_close(results(model, of_X(rows)), expected, f"when {names} came sparse")


def check_permuted_labels(under_test: ModelUnderTest) -> None:
    """Check that labels in another order give the same results, in that order.

    The order of the labels means nothing. What a model draws at random for each label, though, has to be put in that
    order as well: that is what ``permute`` is for.
    """
    first, second, rows = sample()
    order = np.array([3, 0, 5, 1, 4, 2])
    model, permuted = (under_test.permute(under_test.fresh(), each) for each in (np.arange(6), order))
    for X, Y in (first, second):
        under_test.learn(model, X, Y)
        under_test.learn(permuted, X, Y[:, order])
    expected = Results(*(array[:, order] for array in results(model, rows)))
    require_close(results(permuted, rows), expected, "when the labels came in another order")


def permute_known(model: Any, order: Array) -> Any:
    """Make an unfitted model ready for permuted labels, by the parameters that the models of this library have.

    An encoder is given as ``projection``, with its rows in the order; chains as ``orders``, by the new numbers of the
    labels.

    Parameters
    ----------
    model
        An unfitted copy, which may be changed.
    order : (l,) array
        The new order of the labels: column ``j`` of ``Y`` is what was column ``order[j]``.

    Returns
    -------
    model
        One that draws for the label in column ``j`` what it would have drawn for it in column ``order[j]``.

    Raises
    ------
    unittest.SkipTest
        If the model draws something, but has none of these parameters.

    Examples
    --------
    >>> import labelrace
    >>> A, bias = permute_known(labelrace.RACEClassifier(n_components=2), np.array([1, 0, 2])).projection
    >>> A.shape, bias.shape
    ((3, 2), (2,))
    """
    n_labels, known, rng = len(order), parameters(model), np.random.default_rng(0)
    if "projection" in known:
        n_components = max(1, math.ceil(math.log2(n_labels)))
        encoder = rng.uniform(-1, 1, (n_labels, n_components))
        return set_parameters(model, projection=(encoder[order], rng.uniform(-1, 1, n_components)))
    if "orders" in known:
        chains = np.stack([rng.permutation(n_labels) for _ in range(known.get("n_chains", 1))])
        return set_parameters(model, orders=np.argsort(order)[chains])
    if "random_state" in known:
        raise SkipTest("it has a random_state: give permute=, which puts what it draws for each label in another order")
    return model


def check_new_labels(under_test: ModelUnderTest) -> None:
    """Check of a model that takes a wider ``Y`` that the labels known before keep their ranks.

    New labels appear along a stream. What is learned of the other labels, from a row without the new ones, must be
    what it was before. A model may refuse new labels by a ``ValueError``, and must then be as it was.
    """
    first, (X, Y), rows = sample()
    grown, ungrown = under_test.fitted((first[0], first[1][:, :4])), under_test.fitted((first[0], first[1][:, :4]))
    without = np.column_stack([Y[:, :4], np.zeros((len(Y), 2))])
    _learn_or_skip(under_test, grown, X, without, "new labels")
    under_test.learn(ungrown, X, Y[:, :4])
    actual, before = results(grown, rows), results(ungrown, rows)
    require_well_formed(actual, len(rows), 6)
    # How many labels are predicted may depend on how many there are, but not how they rank.
    order, expected = (np.argsort(each.scores[:, :4], axis=1, kind="stable") for each in (actual, before))
    require(np.array_equal(order, expected), "when there were new labels, the labels known before rank differently")
    under_test.learn(grown, X, Y)
    require_well_formed(results(grown, rows), len(rows), 6)


def check_new_features(under_test: ModelUnderTest) -> None:
    """Check of a model that takes a wider sparse ``X`` that new features which are always 0 change nothing.

    Texts bring new words. A word that no row has must not matter. A model may refuse new features by a ``ValueError``,
    and must then be as it was.
    """
    sparse, (first, (X, Y), rows) = scipy.sparse.csr_array, sample()
    try:
        model, twin = (under_test.fitted((sparse(first[0]), first[1])) for _ in range(2))
    except (TypeError, ValueError) as refusal:
        raise SkipTest(f"it takes no sparse arrays: {refusal}") from refusal
    empty = np.zeros((len(X), 2))
    _learn_or_skip(under_test, model, sparse(np.hstack([X, empty])), Y, "new features")
    under_test.learn(twin, sparse(X), Y)
    wide = sparse(np.hstack([rows, np.zeros((len(rows), 2))]))
    require_close(results(model, wide), results(twin, sparse(rows)), "when it met two features that are always 0")
    under_test.learn(model, sparse(np.hstack([X, X[:, :2] + 1])), Y)
    require_well_formed(results(model, wide), len(rows), Y.shape[1])


def check_label_sets(under_test: ModelUnderTest) -> None:
    """Check of a model that takes sets of label names that they mean what the matrix of 0 and 1 means.

    Labels come like this in most streams. New names are new labels, in the order in which they appear, alphabetical
    within a set; ``label_names_``, if there is one, has them. For a model that takes no sets, the check is skipped.
    """
    (X, Y), _, rows = sample()
    by_sets, names = _fitted_by_sets(under_test)
    returned = list(getattr(by_sets, "label_names_", names))
    require(returned == names, f"label_names_ is {returned} instead of {names}, the order of appearance")
    by_matrix = under_test.fitted((X, Y[:, [_NAMES.index(name) for name in names]]))
    require_close(results(by_sets, rows), results(by_matrix, rows), "when labels were given as sets of names")
    with suppress(SkipTest):
        _learn_or_skip(under_test, under_test.fitted((X, Y[:, :4])), X, Y, "new labels")
        under_test.learn(by_sets, X[:2], [{"new"}, set()])
        require_well_formed(results(by_sets, rows), len(rows), 7)


def check_predict_labels(under_test: ModelUnderTest) -> None:
    """Check that ``predict_labels`` gives for each row the set of the labels that ``predict`` gives.

    Labels that were learned by name are given by name, those of a matrix by name or column number.
    """
    rows = sample().rows
    for model, names in _ways_to_learn(under_test, "predict_labels"):
        returned = model.predict_labels(rows)
        require(isinstance(returned, list), f"predict_labels returned a {type(returned).__name__}, not a list")
        expected = [{names[label] for label in np.flatnonzero(row)} for row in results(model, rows).predicted]
        require(len(returned) == len(rows), f"predict_labels returned {len(returned)} sets for {len(rows)} rows")
        for row, (actual, labels) in enumerate(zip(returned, expected, strict=True)):
            require(isinstance(actual, set), f"predict_labels returned a {type(actual).__name__} for a row, not a set")
            require(actual == labels, f"predict_labels gives {actual} for row {row}, predict gives {labels}")


def check_predict_top(under_test: ModelUnderTest) -> None:
    """Check that ``predict_top(X, k)`` gives for each row the ``k`` most probable labels, best first.

    Each is a pair of the label, by name or column number, and its probability. Where there are fewer labels than ``k``,
    all are given. If the model has ``predict_proba``, both must agree.
    """
    rows = sample().rows
    for model, names in _ways_to_learn(under_test, "predict_top"):
        probabilities = model.predict_proba(rows) if hasattr(model, "predict_proba") else None
        for k in (1, 3, len(names) + 2):
            returned = model.predict_top(rows, k)
            require(len(returned) == len(rows), f"predict_top returned {len(returned)} lists for {len(rows)} rows")
            for row, pairs in enumerate(returned):
                _require_top(pairs, min(k, len(names)), names, None if probabilities is None else probabilities[row])


def _require_top(pairs: Any, length: int, names: list[Any], probabilities: Array | None) -> None:
    """Require a list of known labels, each once, with falling probabilities that are those of the model."""
    require(len(pairs) == length, f"predict_top gives {len(pairs)} labels for a row instead of {length}")
    labels, values = [label for label, _ in pairs], np.array([value for _, value in pairs], dtype=float)
    require(set(labels) <= set(names), f"predict_top gives labels {labels}, but the labels are {names}")
    require(len(set(labels)) == length, f"predict_top gives a label twice: {labels}")
    require(((values >= 0) & (values <= 1)).all(), f"predict_top gives {values}, which are not probabilities")
    require((np.diff(values) <= 0).all(), f"predict_top gives {values}, which is not the best first")
    if probabilities is not None:
        best = np.sort(probabilities)[::-1][:length]
        own = probabilities[[names.index(label) for label in labels]]
        require(np.allclose(values, own, rtol=0, atol=1e-6), f"predict_top gives {values}, predict_proba gives {own}")
        require(np.allclose(values, best, rtol=0, atol=1e-6), f"predict_top gives {values}, but the best are {best}")


# Labels learned by name; no alphabetical order, so that it can be told from the order of appearance.
_NAMES = tuple("fabedc")


def _ways_to_learn(under_test: ModelUnderTest, method: str) -> Iterator[tuple[Any, list[Any]]]:
    """Yield a model that learned a matrix and one that learned sets, if it takes them, each with its label names."""
    if not hasattr(under_test.model, method):
        raise SkipTest(f"it has no {method}")
    X, Y = sample().first
    fitted: list[tuple[Any, list[Any]]] = [(under_test.fitted((X, Y)), list(range(Y.shape[1])))]
    with suppress(SkipTest):
        fitted.append(_fitted_by_sets(under_test))
    for model, unnamed in fitted:
        names = getattr(model, "label_names_", None)
        yield model, unnamed if names is None else list(names)


def _fitted_by_sets(under_test: ModelUnderTest) -> tuple[Any, list[str]]:
    """Return a model that learned sets of names, and the names in the order of appearance; skip if it takes none."""
    X, Y = sample().first
    sets = [{name for name, present in zip(_NAMES, row, strict=True) if present} for row in Y]
    model = under_test.fresh()
    try:
        under_test.learn(model, X, sets)
    except (AttributeError, TypeError, ValueError) as refusal:
        raise SkipTest(f"it takes no sets of names: {refusal}") from refusal
    return model, list(dict.fromkeys(name for row in sets for name in sorted(row)))


def _learn_or_skip(under_test: ModelUnderTest, model: Any, X: Any, Y: Array, what: str) -> None:
    """Have a model learn a wider batch; where it is refused, check that nothing has changed and skip the rest."""
    if not under_test.is_online:
        raise SkipTest("it is offline: each fit starts from the beginning, with any labels and features")
    rows, before = sample().rows, copy.deepcopy(model)
    try:
        under_test.learn(model, X, Y)
    except (TypeError, ValueError) as refusal:
        require_equal(results(model, rows), results(before, rows), f"after it refused {what}")
        raise SkipTest(f"it takes no {what}: {refusal}") from refusal
