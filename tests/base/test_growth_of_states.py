"""States move, grow, empty and add as their fields declare."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelrace.base import growth
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import SAME, SUM, Moves
from labelrace.typing import FloatArray, IntArray


class Inner(NamedTuple):
    """What learners hold."""

    totals: Annotated[FloatArray, "t+1", SUM]
    missing: Annotated[FloatArray | None, "M t", SUM]


class State(NamedTuple):
    """One field of each kind."""

    kinds: FeatureKinds
    rows: Annotated[float, SUM]
    n_labels: Annotated[float, "=l"]
    by_label: Annotated[FloatArray, "l k", SAME]
    seen: Annotated[FloatArray, "l", "new inf"]
    order: Annotated[IntArray, "_n", "-1<l"]
    design: Annotated[FloatArray, "M+r l", SUM]
    absent: Annotated[FloatArray, "m l|0 l"]
    learners: Annotated[Any, "t=l"]


class Stack(NamedTuple):
    """Several states in one."""

    leaves: Annotated[Inner, "stacked L", "t=l"]


KINDS = FeatureKinds(np.array([0, 3, 2]))


def state(**changes):
    made = State(
        kinds=KINDS,
        rows=5.0,
        n_labels=2.0,
        by_label=np.array([[1.0, 2.0], [3.0, 4.0]]),
        seen=np.array([7.0, 8.0]),
        order=np.array([1, -1, 0]),
        design=np.arange(10.0).reshape(5, 2),
        absent=np.zeros((0, 2)),
        learners=Inner(np.array([1.0, 2.0, 30.0]), None),
    )
    return made._replace(**changes)


def test_new_labels():
    grown = growth.take(state(), Moves({"l": growth.longer(2, 3)}))
    assert grown.n_labels == 3.0
    np.testing.assert_array_equal(grown.by_label, [[1, 2], [3, 4], [0, 0]])
    np.testing.assert_array_equal(grown.seen, [7, 8, np.inf])
    np.testing.assert_array_equal(grown.order, [1, -1, 0])
    np.testing.assert_array_equal(grown.design, np.column_stack([np.arange(10.0).reshape(5, 2), np.zeros(5)]))
    assert grown.absent.shape == (0, 3)
    # The total stays last.
    np.testing.assert_array_equal(grown.learners.totals, [1, 2, 0, 30])
    assert grown.kinds is KINDS


def test_another_order_of_labels():
    moved = growth.take(state(), Moves({"l": np.array([1, 0])}))
    np.testing.assert_array_equal(moved.by_label, [[3, 4], [1, 2]])
    # Entries that stand for labels follow them.
    np.testing.assert_array_equal(moved.order, [0, -1, 1])
    np.testing.assert_array_equal(moved.learners.totals, [2, 1, 30])


def test_new_features_and_new_values():
    """A number comes behind the numbers, the indicator of a new value behind those of its feature."""
    wider = FeatureKinds(np.array([0, 4, 2, 0]))
    grown = growth.take(state(), Moves(KINDS.moves(wider), wider))
    assert grown.kinds is wider
    np.testing.assert_array_equal(grown.design[:, 0], [0, 0, 2, 4, 0, 6, 8])
    assert grown.absent.shape == (0, 2)


@given(data=st.data())
def test_moves_of_columns_are_those_of_the_design(data):
    """The columns of a design, taken where the moves say, are the design of the features taken so."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    kinds = FeatureKinds(np.array(data.draw(st.lists(st.sampled_from([0, 2, 3, 5]), min_size=1, max_size=6))))
    X = np.column_stack([rng.integers(0, v, 9) if v else rng.normal(size=9) for v in kinds.n_values]).astype(float)
    order = np.array(data.draw(st.permutations([*range(len(kinds)), -1])))
    after = FeatureKinds(
        np.where(order < 0, 3, kinds.n_values[order] + data.draw(st.integers(0, 1)) * (kinds.n_values[order] > 0))
    )
    moved_X = np.where(order < 0, 0.0, X[:, order])
    expected = after.design(moved_X)
    expected = expected if isinstance(expected, np.ndarray) else expected.toarray()
    before = kinds.design(X)
    before = before if isinstance(before, np.ndarray) else before.toarray()
    moves = kinds.moves(after, order)
    np.testing.assert_array_equal(growth.moved(before, moves["M"], 1), expected)
    np.testing.assert_array_equal(growth.moved(X, moves["m"], 1), moved_X)
    np.testing.assert_array_equal(growth.moved(kinds.numeric(X), moves["d"], 1), after.numeric(moved_X))
    np.testing.assert_array_equal(growth.moved(kinds.nominal(X), moves["j"], 1), after.nominal(moved_X))


def test_stacked_states_have_one_axis_more():
    stack = Stack(Inner(np.array([[1.0, 2.0], [3.0, 4.0]]), None))
    grown = growth.take(stack, Moves({"l": growth.longer(1, 2)}))
    np.testing.assert_array_equal(grown.leaves.totals, [[1, 0, 2], [3, 0, 4]])


def test_a_part_with_a_function_of_its_own_gets_the_moves_by_its_names():
    def take(part, moves):
        np.testing.assert_array_equal(moves.source("t+1", 3), [0, 1, -1, 2])
        return "taken"

    assert growth.take(state(), Moves({"l": growth.longer(2, 3)}), learners=take).learners == "taken"


def test_sums_add_and_empty():
    missing = np.ones((5, 2))
    one, other = state(), state(rows=1.0, learners=Inner(np.ones(3), missing))
    both = growth.add(one, other)
    assert both.rows == 6.0
    np.testing.assert_array_equal(both.design, 2 * one.design)
    np.testing.assert_array_equal(both.learners.totals, [2, 3, 31])
    np.testing.assert_array_equal(both.learners.missing, missing)
    np.testing.assert_array_equal(both.by_label, one.by_label)
    nothing = growth.empty(both)
    assert nothing.rows == 0.0
    assert nothing.learners.missing is None
    np.testing.assert_array_equal(nothing.by_label, one.by_label)
    merged = growth.add(nothing, both)
    for found, expected in zip(merged.learners, both.learners, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_what_must_be_the_same():
    assert growth.differing(state(), state(rows=9.0)) is None
    assert growth.differing(state(), state(by_label=np.zeros((2, 2)))) == "by_label"


def test_what_is_declared():
    class Undeclared(NamedTuple):
        model: Any

    assert growth.is_declared(Inner)
    assert not growth.is_declared(State)
    assert growth.is_declared(State, "learners")
    assert not growth.is_declared(Undeclared)
    assert growth.adds(Inner)
    assert not growth.adds(State, "learners")


def test_growth_knows_values_that_came_later():
    """A state may know more values than the schema that its model began with."""
    old, new = FeatureKinds(np.array([0, 2, 2])), FeatureKinds(np.array([0, 2, 2, 0]))
    moves = growth.to_grow(state(), old, new, l=(2, 2))
    assert moves.kinds.n_values.tolist() == [0, 3, 2, 0]
    assert "l" not in moves.sources
