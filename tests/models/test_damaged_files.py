"""Files that are not the models they should be: an error that says what is wrong, never anything else."""

from __future__ import annotations

import json
import re
import struct

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import labelrace
from labelrace import RACEClassifier
from labelrace.exceptions import LabelraceError, ModelFileError
from labelrace.models import persistence

RNG = np.random.default_rng(11)
X = pd.DataFrame(RNG.integers(0, 4, size=(30, 3)), columns=list("xyz")).astype(float).mask(RNG.random((30, 3)) < 0.1)
Y = (RNG.random((30, 3)) < 0.4).astype(int)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "model"
    model = RACEClassifier.paper(categorical_features=[0], label_names=list("abc"), random_state=0)
    model.fit(X, Y).save(path)
    return path.read_bytes()


def load_bytes(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    return labelrace.load(tmp_path / "file")


def rewritten(content, change):
    """Change a file's header and arrays, and make the checksum fit again."""
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["labelrace"])
    tensors = safetensors.numpy.load(content)
    change(header, tensors)
    text = json.dumps(header)
    return safetensors.numpy.save(tensors, {"labelrace": text, "checksum": persistence._checksum(text, tensors)})


def test_no_file(tmp_path):
    for missing in (tmp_path / "none", tmp_path, str(tmp_path / "none")):
        with pytest.raises(FileNotFoundError, match=f"There is no model file {re.escape(str(missing))}"):
            labelrace.load(missing)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is not a labelrace model, or it is cut short"),
        (b"\0", "is not a labelrace model"),
        (b"@relation enron\n" * 100, "is not a labelrace model"),
        (bytes(1000), "not a labelrace model"),
        (safetensors.numpy.save({"weights": np.eye(3)}), "is a safetensors file, but not a labelrace model"),
        (safetensors.numpy.save({}, {"labelrace": "[" * 100_000}), "damaged"),
        (safetensors.numpy.save({}, {"labelrace": "{}"}), "damaged: its header cannot be read"),
        (safetensors.numpy.save({}, {"labelrace": "[]"}), "damaged: its header cannot be read"),
        (safetensors.numpy.save({}, {"labelrace": '{"format": "1"}'}), "damaged: its header cannot be read"),
        (safetensors.numpy.save({}, {"labelrace": '{"format": 1}'}), "damaged: .*checksum"),
        (safetensors.numpy.save({}, {"labelrace": f'{{"format": {"9" * 5000}}}'}), "damaged"),
    ],
)
def test_foreign_files(tmp_path, content, match):
    with pytest.raises(ModelFileError, match=match) as caught:
        load_bytes(tmp_path, content)
    assert isinstance(caught.value, (LabelraceError, ValueError))


def test_files_cut_short(tmp_path, content):
    for length in [*range(0, len(content), 37), len(content) - 1]:
        with pytest.raises(ModelFileError):
            load_bytes(tmp_path, content[:length])


def test_files_of_newer_versions(tmp_path, content):
    newer = rewritten(content, lambda header, _: header.update(format=persistence.FORMAT + 1, version="9.9"))
    with pytest.raises(ModelFileError, match=r"written by labelrace 9\.9, in a newer format.*upgrade labelrace"):
        load_bytes(tmp_path, newer)


def test_a_single_bit_that_flipped(tmp_path, content):
    for i in range(0, len(content), 11):
        damaged = bytearray(content)
        damaged[i] ^= 1 << (i % 8)
        with pytest.raises(ModelFileError):
            load_bytes(tmp_path, bytes(damaged))


TENSORS = ("state.encoder.A", "state.encoder.bias", "state.decoder.gram", "state.learners.rows", "n_values")


@pytest.mark.parametrize(
    "change",
    [
        *(lambda h, t, name=name: t.pop(name) for name in TENSORS),
        *(lambda h, t, name=name: t.update({name: t[name][:-1]}) for name in TENSORS if name != "n_values"),
        lambda h, t: t.update({"state.decoder.cross": t["state.decoder.cross"].astype(np.float32)}),
        lambda h, t: t.update({"state.decoder.rows": np.zeros(2)}),
        lambda h, t: t.update({"state.encoder.A": np.zeros(3)}),
        lambda h, t: h.update({"class": "load_dataset"}),
        lambda h, t: h.update({"class": "os.system"}),
        lambda h, t: h["parameters"].update(method="regression"),
        lambda h, t: h["parameters"].update(method="magic"),
        lambda h, t: h["parameters"].update(colour="red"),
        lambda h, t: h["parameters"].update(learner={"bank": "Adapter", "settings": {}}),
        lambda h, t: h["parameters"].update(learner={"bank": "SGD", "settings": {"speed": 1}}),
        lambda h, t: h["parameters"].update(projection={"array": "nowhere"}),
        lambda h, t: h.pop("parameters"),
        lambda h, t: h.update(n_labels=4),
        lambda h, t: h.update(n_labels=None),
        lambda h, t: h.update(n_labels=1e400),
        lambda h, t: h.update(label_names=["a", "b"]),
        lambda h, t: h.update(label_names=[1, 2, 3]),
        lambda h, t: h.update(feature_names=list("uvwxyz")),
    ],
)
def test_contents_that_do_not_fit_the_header(tmp_path, content, change):
    assert load_bytes(tmp_path, rewritten(content, lambda *_: None)).predict(X).shape == (30, 3)
    with pytest.raises(ModelFileError, match="damaged: its contents do not fit its header"):
        load_bytes(tmp_path, rewritten(content, change))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 9) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["list", "array", "bank"]), inner),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_the_bytes_there_is_a_model_or_a_clear_error(tmp_path, content, data):
    def change(header, _):
        inside = header["parameters"] if data.draw(st.booleans()) else header
        inside[data.draw(st.sampled_from(sorted(inside)))] = data.draw(ANYTHING)

    if data.draw(st.booleans()):
        made = rewritten(content, change)
    else:
        start = data.draw(st.integers(0, len(content)))
        stop = data.draw(st.integers(start, min(start + 20, len(content))))
        made = content[:start] + data.draw(st.binary(max_size=20)) + content[stop:]
    try:
        model = load_bytes(tmp_path, made)
    except ModelFileError as error:
        message = str(error)
    else:
        message = f"{tmp_path} has a {type(model).__name__}"
    assert str(tmp_path) in message
