"""What the tests of all banks share: learning batch by batch, and seeing that nothing given was changed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from labelrace.base import growth
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import Moves


def add_targets(bank: Any, state: Any, before: int, after: int) -> Any:
    """Let a bank have more targets, which were 0 so far."""
    return bank.take(state, Moves({"t": growth.longer(before, after)}))


def add_features(bank: Any, state: Any, n_values: Any) -> Any:
    """Let a bank have more features, which were 0 so far; ``n_values`` are those of all features."""
    known = growth.kinds_of(state) or FeatureKinds.numbers(0)
    return bank.take(state, growth.to_grow(state, known, FeatureKinds(np.asarray(n_values))))


def _arrays(value: Any) -> Iterator[Any]:
    """List the arrays inside tuples and sparse matrices."""
    if isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    elif scipy.sparse.issparse(value):
        yield from (value.data, value.indices, value.indptr)
    elif isinstance(value, np.ndarray):
        yield value


@pytest.fixture(scope="session")
def learn() -> Callable[..., Any]:
    """Let a bank learn (X, H) cut into batches at the given rows."""

    def learn(bank: Any, n_values: Any, X: Any, H: Any, cuts: Any = ()) -> Any:
        state = bank.init(np.asarray(n_values), H.shape[1])
        bounds = [0, *sorted(cuts), H.shape[0]]
        for start, stop in pairwise(bounds):
            if start < stop:
                state = bank.update(state, X[start:stop], H[start:stop])
        return state

    return learn


@pytest.fixture(scope="session")
def assert_pure() -> Callable[..., Any]:
    """Call a function whose arguments cannot be written to, and see that they hold what they held."""

    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        before = [array.copy() for array in _arrays(arguments)]
        for array in _arrays(arguments):
            array.setflags(write=False)
        try:
            result = copy.deepcopy(function(*arguments))
        finally:
            for array in _arrays(arguments):
                if array.base is None:
                    array.setflags(write=True)
        for now, then in zip(_arrays(arguments), before, strict=True):
            np.testing.assert_array_equal(now, then)
        return result

    return call


def assert_states_close(one, other, rtol=1e-9):
    """Compare what learners by recursive least squares have learned."""
    one, other = (
        state._replace(extra_precision=np.asarray(state.extra_precision) * state.decay) for state in (one, other)
    )
    for name in (
        "alpha",
        "weights",
        "intercepts",
        "extra_precision",
        "intercept_extra_precision",
        "rows",
        "n_used_columns",
    ):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=1e-9, err_msg=name)
