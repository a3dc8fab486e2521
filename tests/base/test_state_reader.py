"""Arrays of model files: those that native code could leave its arrays by are refused before any code uses them."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import safetensors.numpy
from helpers.model_files import load_changed
from helpers.models import MODELS

import labelrace
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import fields_of
from labelrace.base.state_reader import Sizes, StateReader
from labelrace.exceptions import LimitError, ModelFileError

RNG = np.random.default_rng(3)
X = np.column_stack([RNG.integers(0, 4, 60), RNG.normal(size=(60, 4))])
Y = (RNG.random((60, 11)) < 0.2).astype(float)
Floats, Ints = npt.NDArray[np.float64], npt.NDArray[np.intp]


# --- Marks ------------------------------------------------------------------------------------------------------------


def read(fields, arrays, *, kinds=(0, 3), settings=None, absent=(), parts=None, field_types=None):
    """Read a state of some fields, of 4 labels."""
    state_type = NamedTuple("state_type", list(fields.items()))
    tensors = {f"state.{name}": np.asarray(array) for name, array in arrays.items()}
    sizes = Sizes(FeatureKinds.of(kinds), 4, settings)
    return StateReader(tensors, {f"state.{name}" for name in absent}, parts or {}).read(state_type, sizes, field_types)


def assert_reads(kind, *marks, right=(), wrong=()):
    """Assert which arrays a field with these marks can have."""
    fields = {"part": Annotated[kind, *marks] if marks else kind}
    for array in right:
        np.testing.assert_array_equal(read(fields, {"part": array}).part, array)
    for array in wrong:
        with pytest.raises(ValueError, match=r"state\.part"):
            read(fields, {"part": array})


def test_axes():
    zeros = np.zeros
    assert_reads(Floats, "l m", right=[zeros((4, 2))], wrong=[zeros((2, 4)), zeros(4), zeros((4, 2, 1)), zeros((4, 3))])
    assert_reads(Floats, "l+1", right=[zeros(5)], wrong=[zeros(4), zeros(0)])
    assert_reads(Floats, "k+1", right=[zeros(1), zeros(7)], wrong=[zeros(0)])
    assert_reads(Floats, "k k", right=[zeros((3, 3))], wrong=[zeros((3, 2))])
    assert_reads(Floats, "l 2|0 2", right=[zeros((4, 2)), zeros((0, 2))], wrong=[zeros((4, 0)), zeros((3, 2))])
    assert_reads(Floats, "_n <=l", right=[zeros((9, 4)), zeros((9, 0))], wrong=[zeros((9, 5))])
    assert_reads(float, right=[1.5, np.nan], wrong=[zeros(1)])


def test_a_name_is_one_size_but_for_those_of_one_part():
    class Part(NamedTuple):
        a: Annotated[Floats, "k"]
        b: Annotated[Floats, "_n"]

    fields = {"one": Part, "other": Part}
    sizes = {"one.a": 2, "other.a": 2, "one.b": 3, "other.b": 4}
    read(fields, {name: np.zeros(size) for name, size in sizes.items()})
    with pytest.raises(ValueError, match=r"state\.other\.a has the shape \(3,\), not k, where k is 2"):
        read(fields, {name: np.zeros(size) for name, size in (sizes | {"other.a": 3}).items()})


def test_settings():
    class Bank:
        k = 2

        @staticmethod
        def double(size):
            return 2 * size

    class Algorithm:
        bank, n_trees = Bank(), 3

    fields = {"a": Annotated[Floats, "@n_trees+1 @k @double(l)"]}
    read(fields, {"a": np.zeros((4, 2, 8))}, settings=Algorithm())
    with pytest.raises(ValueError, match=r"state\.a"):
        read(fields, {"a": np.zeros((4, 2, 4))}, settings=Algorithm())


def test_types():
    assert_reads(Floats, "_n", right=[[1.0]], wrong=[[1], np.ones(1, np.float32), [True], np.ones(1, np.complex128)])
    assert_reads(Ints, "_n", right=[[1], np.ones(1, np.int32)], wrong=[[1.0], np.ones(1, np.uint64)])
    singles = np.ones(1, np.float32)
    assert_reads(npt.NDArray[Any], "_n", "float", right=[[1.0], singles], wrong=[[1], np.ones(1, np.float16)])


def test_indices():
    assert_reads(Ints, "_n", "<l", right=[[0, 3], np.zeros(0, int)], wrong=[[0, 4], [-1, 0], [-(2**63)]])
    assert_reads(Ints, "_n", "<l+1", right=[[4]], wrong=[[5]])
    assert_reads(Ints, "_n", "-1<l", right=[[-1, 3]], wrong=[[-2], [4]])
    assert_reads(float, "<l+1", right=[0.0, 4.0], wrong=[5.0, -1.0, np.nan])
    assert_reads(float, "=l", right=[4.0], wrong=[3.0, np.nan])


def test_starts_and_ends():
    most = 2**63 - 1
    # The differences of the last one overflow, to numbers that are not below 0.
    falling = [[0, 2, 1, 4], [0, 5, 4], [0, most, -most - 1, -1, 4]]
    assert_reads(Ints, "_n", "starts l", right=[[0, 0, 4]], wrong=[[1, 2, 4], [0, 3], np.zeros(0, int), *falling])
    assert_reads(Ints, "_n", "ends l", right=[[0, 4], [1, 1, 4]], wrong=[[-1, 4], [3], np.zeros(0, int), *falling])


def test_numbers_may_be_any():
    odd = np.array([np.nan, np.inf, -np.inf, 1e308, -1.0])
    assert_reads(Floats, "_n", right=[odd])


def test_numbers_of_values_may_have_grown_and_nothing_else():
    fields = {"kinds": FeatureKinds, "weights": Annotated[Floats, "M d j i"]}
    state = read(fields, {"kinds": [0, 5], "weights": np.zeros((5, 1, 1, 4))})
    assert state.kinds.n_values.tolist() == [0, 5]
    for wrong in ([0, 2], [2, 3], [0, 0]):
        with pytest.raises(ValueError, match="does not fit the model's features"):
            read(fields, {"kinds": wrong, "weights": np.zeros((5, 1, 1, 4))})
    with pytest.raises(ValueError, match="where M is 5"):
        read(fields, {"kinds": [0, 5], "weights": np.zeros((4, 1, 1, 4))})
    two = {"kinds": FeatureKinds, "more": FeatureKinds}
    with pytest.raises(ValueError, match="other parts know"):
        read(two, {"kinds": [0, 5], "more": [0, 4]})
    with pytest.raises(LimitError, match="LABELRACE_MAX_VALUES"):
        read({"kinds": FeatureKinds}, {"kinds": [0, 2**40]})


class Inner(NamedTuple):
    """A part of a state."""

    a: Annotated[Floats, "t m"]
    b: Annotated[Ints, "_n", "<l"]


@pytest.mark.parametrize(
    ("marks", "shape", "index"),
    [
        (["t=l"], (4, 2), 3),
        (["t=l+1"], (5, 2), 3),
        (["t~l"], (4, 2), 3),
        (["t=l", "stacked L"], (7, 4, 2), None),
        (["own k", "t=l"], (4, 6), 3),
        (["own m k", "t=l"], (6, 2), 5),
    ],
)
def test_parts(marks, shape, index):
    fields = {"first": Annotated[Floats, "k"], "inner": Annotated[Inner, *marks]}
    b = np.zeros((7, 1), int) if index is None else np.array([index])
    arrays = {"first": np.zeros(6), "inner.a": np.zeros(shape), "inner.b": b}
    read(fields, arrays)
    read({**fields, "inner": Annotated[Any, *marks]}, arrays, field_types={"inner": Inner})
    with pytest.raises(ValueError, match=r"state\.inner\.a"):
        read(fields, arrays | {"inner.a": np.zeros((*shape[:-1], 9))})
    with pytest.raises(ValueError, match=r"state\.inner\.b"):
        read(fields, arrays | {"inner.b": b + 9})


def test_tuples_and_what_may_be_missing():
    fields = {"several": Annotated[tuple[Inner, ...], "t=l"], "some": Annotated[Floats | None, "l"]}
    arrays = {f"several.{i}.{name}": part for i in (0, 1) for name, part in (("a", np.zeros((4, 2))), ("b", [i]))}
    state = read(fields, arrays, parts={"state.several": 2}, absent=["some"])
    assert [part.b.tolist() for part in state.several] == [[0], [1]]
    assert state.some is None
    for count in (1, 3, 10**18):
        with pytest.raises(ValueError, match=r"is missing|belongs to no part"):
            read(fields, arrays, parts={"state.several": count}, absent=["some"])


def test_a_check_of_ones_own():
    class Odd(NamedTuple):
        a: Annotated[Floats, "k"]

        def why_malformed(self, size):
            return "an even size" if size("k") % 2 == 0 else None

    read({"odd": Odd}, {"odd.a": np.zeros(3)})
    with pytest.raises(ValueError, match=r"state\.odd has an even size"):
        read({"odd": Odd}, {"odd.a": np.zeros(2)})


def test_marks_without_a_meaning_are_errors():
    with pytest.raises(TypeError, match="means nothing"):
        read({"a": Annotated[Floats, "l", "<>l"]}, {"a": np.zeros(4)})
    with pytest.raises(TypeError, match="means nothing"):
        read({"a": Annotated[Inner, "once"]}, {"a.a": np.zeros((4, 2)), "a.b": [0]})


# --- Models -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=MODELS)
def content(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "model"
    model = labelrace.make_model(request.param, categorical_features=[0])
    if "max_memory" in model.get_params():
        model.set_params(max_memory="1MB")
    model.fit(X, Y).save(path)
    return path.read_bytes()


def state_of(content):
    return {name: array for name, array in safetensors.numpy.load(content).items() if name.startswith("state.")}


def load_with(tmp_path, content, name, array):
    return load_changed(tmp_path, content, lambda _, tensors: tensors.update({name: array}))


def test_arrays_that_are_missing_or_too_many(tmp_path, content):
    for name, array in state_of(content).items():
        with pytest.raises(ModelFileError, match=rf"{name} is missing"):
            load_changed(tmp_path, content, lambda _, tensors, name=name: tensors.pop(name))
        with pytest.raises(ModelFileError, match=r"belongs to no part of the model"):
            load_with(tmp_path, content, f"{name}.more", array)


def test_arrays_with_another_number_of_axes(tmp_path, content):
    for name, array in state_of(content).items():
        with pytest.raises(ModelFileError, match="its contents do not fit its header"):
            load_with(tmp_path, content, name, array[None])


def test_other_numbers_of_labels_and_features(tmp_path, content):
    def fewer_features(_, tensors):
        tensors["n_values"] = tensors["n_values"][:-1]

    def more_features(_, tensors):
        tensors["n_values"] = np.append(tensors["n_values"], 0)

    for n_labels in (10, 12, 9_999_999):
        with pytest.raises(ModelFileError, match="its contents do not fit its header"):
            load_changed(tmp_path, content, lambda header, _, n=n_labels: header.update(n_labels=n))
    knows_features = any(name.endswith((".kinds", ".n_values")) for name in state_of(content))
    for change in (fewer_features, more_features) if knows_features else ():
        with pytest.raises(ModelFileError, match="its contents do not fit its header"):
            load_changed(tmp_path, content, change)


def test_whole_numbers_out_of_range(tmp_path, content):
    for name, array in state_of(content).items():
        # Leaves of trees ask about no feature, and hashes may be any.
        if array.dtype.kind == "i" and array.size and not name.endswith((".feature", ".keys")):
            for added in (10**9, -(10**9)):
                with pytest.raises((ModelFileError, LimitError)):
                    load_with(tmp_path, content, name, array + added)


def test_annotations_are_read_with_their_marks():
    decoder = type(labelrace.make_model("race-cls-fixed").fit(X, Y)._fitted.state.decoder)
    assert next(field for field in fields_of(decoder) if field.name == "gram").marks == ("k k", "sum")
