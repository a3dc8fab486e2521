"""The shuffle against numbers that a Java program printed.

The program: fill ``a`` with 0 … n - 1, then ``for (int j = n - 1; j > 0; j--)`` swap ``a[j]`` with
``a[random.nextInt(j + 1)]``, with a ``java.util.Random(seed)``.
"""

import numpy as np
import pytest

from labelrace.learners.java_random import _Random, shuffled

PRINTED = {
    (1, 1): "0",
    (2, 1): "0 1",
    (10, 1): "6 9 7 8 4 2 0 3 1 5",
    (12, 0): "4 10 3 8 1 7 11 5 2 9 6 0",
    (16, -7): "2 7 13 14 5 10 8 0 11 1 9 6 3 15 12 4",
    (17, 42): "16 6 5 4 13 2 14 12 7 8 11 1 15 10 3 0 9",
    (33, 123456789012345): "7 6 26 12 31 27 15 11 24 10 28 1 30 14 29 3 19 9 2 8 23 32 18 20 4 5 13 0 17 22 21 16 25",
    (50, 1): "47 23 14 25 15 22 27 17 24 19 36 33 43 3 45 20 48 12 8 5 2 40 16 38 32 44 31 49 13 26 21 29 42 "
    "28 39 18 1 11 41 9 37 10 34 6 4 0 30 7 46 35",
}


@pytest.mark.parametrize(("n", "seed"), PRINTED)
def test_order_is_java_s(n, seed):
    assert " ".join(map(str, shuffled(n, seed))) == PRINTED[n, seed]


@pytest.mark.parametrize(("seed", "printed"), [(1, 31356160321), (99, 31150821533)])
def test_long_order_is_java_s(seed, printed):
    """The program printed the sum of ``i * a[i]`` over 5000 rows."""
    order = shuffled(5000, seed)
    assert sorted(order.tolist()) == list(range(5000))
    assert int((np.arange(5000) * order).sum()) == printed


def test_numbers_that_java_draws_again():
    """Below ``2³⁰ + 1`` about every other draw falls into the incomplete last range and is repeated."""
    random = _Random(3)
    printed = [152454210, 144139128, 488197459, 757666882, 142793614, 64032981]
    printed += [883832806, 290368137, 327992911, 88791913, 297019259, 1029052793]
    assert [random.below((1 << 30) + 1) for _ in printed] == printed
