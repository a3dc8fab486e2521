"""Labels in another order: the check, and how models that draw something for each label take part in it."""

from __future__ import annotations

import math
from typing import Any
from unittest import SkipTest

import numpy as np

from labelrace.checks.subject import (
    Results,
    Subject,
    demand_close,
    parameters,
    results,
    sample,
    set_parameters,
)
from labelrace.typing import Array

__all__ = ["check_permuted_labels", "permute_known"]


def check_permuted_labels(subject: Subject) -> None:
    """Demand that labels in another order give the same results, in that order.

    The order of the labels is an accident of the file that they came in. What a model draws for each label, though, has
    to be put in that order as well: that is what ``permute`` is for.
    """
    first, second, rows = sample()
    order = np.array([3, 0, 5, 1, 4, 2])
    model, permuted = (subject.permute(subject.fresh(), each) for each in (np.arange(6), order))
    for X, Y in (first, second):
        subject.learn(model, X, Y)
        subject.learn(permuted, X, Y[:, order])
    expected = Results(*(array[:, order] for array in results(model, rows)))
    demand_close(results(permuted, rows), expected, "when the labels came in another order")


def permute_known(model: Any, order: Array) -> Any:
    """Make an unfitted model ready for permuted labels, by the parameters that the models of this library have.

    An encoder is given as ``projection``, with its rows in the order; chains as ``orders``, which speak of the labels
    by their new places.

    Parameters
    ----------
    model
        An unfitted copy, which may be changed.
    order : (l,) array
        The labels to come: column ``j`` of ``Y`` is what was column ``order[j]``.

    Returns
    -------
    model
        One that draws for the label in column ``j`` what it would have drawn for it in column ``order[j]``.

    Raises
    ------
    unittest.SkipTest
        If the model draws something, but has none of these parameters.
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
        raise SkipTest(
            "it has a random_state: what it draws for each label can be permuted only by a permute= of yours"
        )
    return model
