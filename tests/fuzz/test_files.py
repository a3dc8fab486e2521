"""Files that were damaged or made to do harm: each is refused with a clear error, or is what it says.

A few of them run with the other tests; `make fuzz` runs as many as one likes (``LABELRACE_FUZZ``).
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers.model_files import rewritten
from helpers.models import MODELS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import labelrace
from labelrace.evaluation import read_run
from labelrace.evaluation.records import appending, write_manifest
from labelrace.exceptions import DataFormatError, DivergenceWarning, LabelraceError, LimitError, ModelFileError

EXAMPLES = 8 * int(os.environ.get("LABELRACE_FUZZ", "2"))
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 4)), (RNG.random((40, 5)) < 0.3).astype(float)
X[:, 0] = RNG.integers(0, 3, 40)
# What a model may raise whose numbers no rows can have taught: an error of Python's, no crash, and no `MemoryError`.
CLEAN = (LabelraceError, ValueError, IndexError, TypeError, ArithmeticError)
QUICK = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", params=MODELS)
def content(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        model = labelrace.make_model(request.param)
        wanted = {"random_state": 0, "max_memory": "1MB"}
        model.set_params(**{name: value for name, value in wanted.items() if name in model.get_params()})
        model.fit(X, Y).save(path)
    return path.read_bytes()


def load(content):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model").write_bytes(content)
        return labelrace.load(Path(folder, "model"))


def other_array(draw, array):
    """Change an array: its shape, its type or some of its entries."""
    match draw(st.sampled_from(["shape", "length", "type", "entry", "all"])):
        case "shape":
            return array.reshape(draw(st.permutations([1, *array.shape])))
        case "length":
            return np.resize(array, [max(0, size + draw(st.integers(-1, 2))) for size in array.shape])
        case "type":
            with np.errstate(all="ignore"):
                return array.astype(draw(st.sampled_from(["f4", "f8", "i4", "i8", "u1", "?"])))
        case "all":
            return array + array.dtype.type(1)
    changed = array.copy()
    if changed.size:
        value = draw(st.sampled_from([-1, 0, 7, 10**9, -(2**62), np.nan, np.inf, 1e300]))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            changed.flat[draw(st.integers(0, changed.size - 1))] = np.array(value).astype(changed.dtype)
    return changed


@QUICK
@given(data=st.data())
def test_model_files_with_other_arrays_and_a_fitting_checksum(content, data):
    """What is loaded can be used: native code meets no array that does not fit."""

    def change(_, tensors):
        for name in data.draw(st.lists(st.sampled_from(sorted(tensors)), min_size=1, max_size=2, unique=True)):
            tensors[name] = other_array(data.draw, tensors[name])

    try:
        model = load(rewritten(content, change))
    except (ModelFileError, LimitError):
        return
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(*CLEAN):
            scores = model.decision_function(X)
            assert scores.shape == (40, 5)
            assert np.isfinite(scores).all()
        with contextlib.suppress(*CLEAN):
            assert model.predict(X).shape == (40, 5)
        if model.is_online:
            with contextlib.suppress(*CLEAN):
                model.partial_fit(X, Y)


@QUICK
@given(data=st.data())
def test_model_files_with_other_bytes(content, data):
    start = data.draw(st.integers(0, len(content) - 1))
    other = data.draw(st.binary(min_size=1, max_size=9))
    changed = content[:start] + other + content[start + data.draw(st.integers(0, 9)) :]
    if changed != content:
        with pytest.raises(ModelFileError):
            load(changed)


@QUICK
@given(data=st.data())
def test_run_folders_with_other_bytes(data):
    """What is no longer JSON, or no record, is refused; a record that was cut off at the end is left out."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_manifest(folder, {"format": 1, "runs": 2})
        with appending(folder) as append:
            for number in range(3):
                append({"kind": "batch", "model": "a", "run": 0, "batch": number, "value": number / 7})
        path = folder / data.draw(st.sampled_from(["records.jsonl", "manifest.json"]))
        content = path.read_bytes()
        start = data.draw(st.integers(0, len(content) - 1))
        path.write_bytes(
            content[:start] + data.draw(st.binary(max_size=5)) + content[start + data.draw(st.integers(0, 5)) :]
        )
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*cut off")
                manifest, records = read_run(folder)
        except DataFormatError:
            return
        assert isinstance(manifest["format"], int)
        assert all({"kind", "model", "run"} <= record.keys() for record in records)
