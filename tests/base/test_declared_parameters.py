"""Constructors made of declared parameters."""

import inspect

import pytest

import labelrace
from labelrace import ConstantClassifier
from labelrace.base.declared_parameters import DeclaredParameters


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


class _Own(labelrace.LabelRaceClassifier):
    def __init__(self, extra=1):
        super().__init__()
        self.extra = extra


def test_a_constructor_that_a_base_has_written_is_kept():
    class Inherits(_Own):
        pass

    class Mixed(type("Mixin", (), {"__init__": _Own.__init__}), labelrace.BinaryRelevanceClassifier):
        pass

    assert Inherits(extra=3).extra == 3
    assert list(inspect.signature(Inherits).parameters) == ["extra"]
    assert list(inspect.signature(Mixed).parameters) == ["extra"]


def test_fields_come_behind_what_is_given_by_position():
    class Own(labelrace.Tagger):
        more: int = 1

    assert list(inspect.signature(Own).parameters)[:2] == ["tags", "more"]
    assert Own("topics", more=2).get_params()["tags"] == "topics"
