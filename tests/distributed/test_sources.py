"""Pieces of large data files: read in any order, they are the file."""

from __future__ import annotations

import numpy as np
import pytest

from labelrace.distributed import sources
from labelrace.distributed.sources import FilePiece, pieces_of, read_batches
from labelrace.exceptions import DataFormatError
from labelrace.streams import load_dataset, write_dataset
from labelrace.streams.synthetic import SyntheticStream


@pytest.mark.parametrize("suffix", ["arff", "svm", "npz"])
def test_large_data_files_are_cut_by_rows(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(sources, "_LARGE", 1000)
    path = tmp_path / f"rows.{suffix}"
    write_dataset(SyntheticStream(n_rows=2300, n_features=3, n_labels=4, seed=0), path)
    whole = load_dataset(path)
    pieces = pieces_of(path, as_tables=False)
    assert [(piece.first, piece.last) for piece in pieces] == [(0, 500), (500, 1000), (1000, 1500), (1500, 2300)]
    assert str(pieces[1]).endswith(f"rows.{suffix}, rows 500 to 999")
    for order in ([0, 1, 2, 3], [2, 0, 1, 3, 3]):
        for place in order:
            found = list(read_batches(pieces[place], 200, as_tables=False))
            rows = slice(pieces[place].first, pieces[place].last)
            X, Y = (np.vstack([_dense(part) for part in parts]) for parts in zip(*found, strict=True))
            np.testing.assert_array_equal(X, _dense(whole.X[rows]))
            np.testing.assert_array_equal(Y, _dense(whole.Y[rows]))
            assert max(batch[0].shape[0] for batch in found) == 200


def _dense(part):
    part = getattr(part, "matrix", part)
    return part.toarray() if hasattr(part, "toarray") else np.asarray(part)


def test_a_row_that_cannot_be_read_is_named_by_its_line_in_the_file(tmp_path):
    path = tmp_path / "rows.arff"
    header = "@relation x\n@attribute a numeric\n@attribute b {0,1}\n@data\n"
    path.write_text(header + "1,0\n" * 700 + "1,2,3\n" + "1,1\n" * 300)
    piece = FilePiece(str(path), None, 500, 1000)
    with pytest.raises(DataFormatError, match=r"rows\.arff.*705"):
        list(read_batches(piece, 100, as_tables=False, labels=1))


def test_batches_are_those_of_one_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_LARGE", 1000)
    path = tmp_path / "rows.svm"
    write_dataset(SyntheticStream(n_rows=2300, n_features=3, n_labels=4, seed=0), path)
    for size in (300, 700, 1000):
        pieces = pieces_of(path, as_tables=False, batch_size=size)
        found = [X.shape[0] for piece in pieces for X, _ in read_batches(piece, size, as_tables=False)]
        assert found == [size] * (2300 // size) + [2300 % size] * (2300 % size > 0)
        assert len(pieces) > 1


def test_a_file_that_took_the_place_of_another_is_read_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_LARGE", 1000)
    path, other = tmp_path / "rows.svm", tmp_path / "other.svm"
    for seed, target in enumerate((path, other)):
        write_dataset(SyntheticStream(n_rows=2300, n_features=3, n_labels=4, seed=seed), target)
    first, second, *_ = pieces_of(path, as_tables=False)
    list(read_batches(first, 500, as_tables=False))
    other.replace(path)
    [(X, _)] = read_batches(second, 500, as_tables=False)
    np.testing.assert_array_equal(_dense(X), _dense(load_dataset(path).X[500:1000]))
