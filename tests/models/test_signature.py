"""Constructors made of declared parameters."""

import inspect

import pytest

from labelrace import ConstantClassifier
from labelrace.models.signature import DeclaredParameters


class Declared(DeclaredParameters):
    """A class with parameters.

    Parameters
    ----------
    rate : float, default=0.5
        A rate.
    """

    kind = "not a parameter"
    rate: float = 0.5
    random_state: int | None = None


class Further(Declared):
    """A class with a further parameter."""

    depth: int = 3


class Own(Further):
    """A class with a constructor of its own."""

    def __init__(self, size):
        self.size = size


def test_own_parameters_come_first_and_the_seed_last():
    assert list(inspect.signature(Further).parameters) == ["depth", "rate", "random_state"]
    assert vars(Further(depth=1)) == {"depth": 1, "rate": 0.5, "random_state": None}
    assert "A rate." in Further.__doc__
    with pytest.raises(TypeError, match="positional"):
        Further(1)
    with pytest.raises(TypeError, match="'width'"):
        Further(width=1)


def test_a_constructor_of_ones_own_stays():
    assert list(inspect.signature(Own).parameters) == ["size"]
    assert vars(Own(2)) == {"size": 2}


def test_models_are_compared_and_hashed_by_identity():
    assert ConstantClassifier() != ConstantClassifier()
    assert len({ConstantClassifier(), ConstantClassifier()}) == 2
