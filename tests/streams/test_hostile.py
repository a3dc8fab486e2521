"""Files that claim too much, or hold what no reader may hand on; each has once been read in silence, or too long."""

from __future__ import annotations

import io
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from helpers.memory import peak_of

import labelrace
from labelrace.exceptions import DataFormatError, LimitError
from labelrace.streams import load_dataset, open_stream


def npz_with(folder, schema=None, **arrays):
    known = {
        "labelrace_schema": 1, "features": ["a", "b"], "labels": ["l", "m"], "nominal": {"1": ["red", "blue"]},
        "options": {},
    }  # fmt: skip
    text = json.dumps(known | (schema or {})).encode()
    content = {
        "schema": np.frombuffer(text, np.uint8),
        "X": np.array([[0.5, 0.0], [np.nan, 1.0]]),
        "Y_indices": np.array([0, 1], np.int32),
        "Y_indptr": np.array([0, 1, 2]),
    }
    packed = io.BytesIO()
    np.savez(packed, **(content | arrays))
    (folder / "data.npz").write_bytes(packed.getvalue())
    return folder / "data.npz"


def test_npz(tmp_path):
    assert load_dataset(npz_with(tmp_path)).X.shape == (2, 2)
    for X in (
        [[np.inf, 0.0], [0.0, 1.0]],
        [[0.0, 0.0], [0.0, 2.0]],
        [[0.0, 0.0], [0.0, 0.5]],
        [[0.0, 0.0], [0.0, -1.0]],
    ):
        with pytest.raises(DataFormatError, match=r"infinite|none of its 2 values"):
            load_dataset(npz_with(tmp_path, X=np.array(X)))
    for names in ({"features": ["a", "a"]}, {"labels": ["l", "l"]}):
        with pytest.raises(DataFormatError, match="twice"):
            load_dataset(npz_with(tmp_path, names))


def test_labels_that_are_given(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("0,1 1:2\n1 2:1\n")
    for labels in (-2, ["a", "a"]):
        with pytest.raises(ValueError, match="must be different names, or their number"):
            open_stream(path, labels)


@pytest.mark.parametrize(("name", "text"), [("one.svm", "99999999 1:1\n"), ("two.xc", "1 3 100000000\n0 1:1\n")])
def test_a_number_that_claims_many_labels(tmp_path, name, text):
    """Nobody makes a list of a hundred million names."""
    (tmp_path / name).write_text(text)
    with pytest.raises(LimitError, match="LABELRACE_MAX_LABELS"):
        open_stream(tmp_path / name)


def test_a_schema_that_claims_many_features(tmp_path):
    (tmp_path / "data.jsonl").write_text('{"x1": 1, "l": 1}\n')
    many = {"prefix": "x", "first": 1, "length": 10**8}
    schema = {"labelrace_schema": 1, "features": many, "labels": ["l"], "nominal": {}, "options": {}}
    (tmp_path / "data.jsonl.schema.json").write_text(json.dumps(schema))
    with pytest.raises(LimitError, match="LABELRACE_MAX_BYTES"):
        open_stream(tmp_path / "data.jsonl")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes on this system")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "table.csv")
    with pytest.raises(DataFormatError, match="must be a plain file"):
        labelrace.Tagger(tags="tags").fit(tmp_path / "table.csv")


def test_a_column_of_nothing_is_not_made_whole(tmp_path):
    """It takes no room in the file, however long it is."""
    nothing = pa.nulls(2**31 - 1)
    batch = pa.record_batch([nothing, nothing], names=["a", "l"])
    with pa.OSFile(str(tmp_path / "data.arrow"), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(DataFormatError, match="row 1: label 'l' is missing"):
        next(open_stream(tmp_path / "data.arrow", 1).batches(10))


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl"])
@pytest.mark.parametrize("options", [{}, {"label_column": "y"}])
def test_claims_of_a_schema(tmp_path, name, options):
    """A few bytes claim 10⁸ columns: they are compared with the file and the limits before there are names of them."""
    path, many = tmp_path / name, {"first": 0, "length": 10**8}
    path.write_text("x0,y\n1,1\n" if name == "s.csv" else '{"x0": 1, "y": ["a"]}\n')
    names = {"features": {"prefix": "x", **many}, "labels": {"prefix": "y", **many}}
    schema = {"labelrace_schema": 1, **names, "nominal": {}, "options": options}
    (tmp_path / f"{name}.schema.json").write_text(json.dumps(schema))

    def refused():
        with pytest.raises(DataFormatError, match=r"must name columns of the file|must have at most"):
            load_dataset(path)

    assert peak_of(refused) < 1e6
