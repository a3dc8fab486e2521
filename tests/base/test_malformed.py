"""Sparse matrices whose arrays do not fit one another are refused before native code follows them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import labelrace
from labelrace.base.sparse import why_malformed
from labelrace.measures import evaluate

RNG = np.random.default_rng(0)
DENSE = (RNG.random((40, 6)) < 0.4).astype(float)


def changed(kind, attribute, change):
    matrix = kind(DENSE)
    setattr(matrix, attribute, change(getattr(matrix, attribute).copy()))
    return matrix


def at(index, value):
    def change(array):
        array[index] = value
        return array

    return change


CSR, CSC, BSR, COO = sparse.csr_array, sparse.csc_array, sparse.bsr_array, sparse.coo_array
DAMAGED = {
    "far": changed(CSR, "indices", lambda indices: indices + np.int32(10**9)),
    "one beyond": changed(CSR, "indices", at(3, 6)),
    "below zero": changed(CSR, "indices", at(0, -1)),
    "no whole numbers": changed(CSR, "indices", lambda indices: indices.astype(float)),
    "starts fall": changed(CSR, "indptr", at(5, 90)),
    "starts late": changed(CSR, "indptr", at(0, 1)),
    "starts beyond": changed(CSR, "indptr", at(-1, 10**6)),
    "starts too few": changed(CSR, "indptr", lambda indptr: indptr[:-1]),
    "short data": changed(CSR, "data", lambda data: data[:3]),
    "short indices": changed(CSR, "indices", lambda indices: indices[:3]),
    "columns": changed(CSC, "indices", lambda indices: indices + np.int32(10**9)),
    "blocks": changed(BSR, "indices", lambda indices: indices + np.int32(10**9)),
    "rows of a list": changed(COO, "row", lambda row: row + np.int32(10**9)),
    "columns of a list": changed(COO, "col", lambda col: col - np.int32(10**9)),
    "short list": changed(COO, "data", lambda data: data[:3]),
    "old matrix": changed(sparse.csr_matrix, "indices", lambda indices: indices + np.int32(10**9)),
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
def test_damaged_matrices_are_refused_everywhere(damaged):
    assert why_malformed(damaged)
    model = labelrace.make_model("race").fit(CSR(DENSE), DENSE)
    before = model._fitted
    for call in (
        lambda: model.partial_fit(damaged, DENSE),
        lambda: model.partial_fit(DENSE, damaged),
        lambda: model.predict(damaged),
        lambda: model.score(DENSE, damaged),
        lambda: labelrace.make_model("obr").fit(damaged, DENSE),
        lambda: labelrace.make_model("obr").fit(DENSE, damaged),
        lambda: evaluate(damaged, DENSE, measures="micro_f1"),
        lambda: evaluate(DENSE, damaged, measures="micro_f1"),
    ):
        with pytest.raises(ValueError, match="is not a valid sparse matrix"):
            call()
    assert model._fitted is before


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
def test_others_are_in_order(form):
    assert why_malformed(sparse.csr_array(DENSE).asformat(form)) is None
    assert why_malformed(sparse.csr_array((0, 5)).asformat(form)) is None
    room = sparse.csr_array(DENSE)
    room.data, room.indices = np.append(room.data, [7.0]), np.append(room.indices, [10**9])
    assert why_malformed(room) is None


def test_wide_indices():
    wide = sparse.csr_array(DENSE)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert why_malformed(wide) is None
    wide.indices[0] = -1
    assert why_malformed(wide)
