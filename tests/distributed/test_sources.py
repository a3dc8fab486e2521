"""Pieces of large data files: read in any order, they are the file."""

from __future__ import annotations

import gzip
import itertools
import json

import dask
import dask.bag
import numpy as np
import pytest
from scipy.sparse import csr_array

import labelrace
from labelrace.distributed import fitting, worker_tasks
from labelrace.distributed.sources import DelayedPiece, FilePiece, as_delayed_pieces, pieces_of, read_batches
from labelrace.exceptions import DataFormatError
from labelrace.streams import load_dataset, table_stream, write_dataset
from labelrace.streams.column_matching import shared_features
from labelrace.streams.synthetic import SyntheticStream


@pytest.mark.parametrize("suffix", ["arff", "svm", "npz"])
def test_large_data_files_are_cut_by_rows(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    write_dataset(SyntheticStream(n_rows=2300, n_features=3, n_labels=4, seed=0), path)
    whole = load_dataset(path)
    pieces = pieces_of(path, as_tables=False)
    assert [(piece.first, piece.last) for piece in pieces] == [(0, 500), (500, 1000), (1000, 1500), (1500, 2300)]
    assert str(pieces[1]).endswith(f"rows.{suffix}, rows 500 to 999")
    for order in ([0, 1, 2, 3], [2, 0, 1, 3, 3]):
        for index in order:
            found = list(read_batches(pieces[index], 200, as_tables=False))
            rows = slice(pieces[index].first, pieces[index].last)
            X, Y = (np.vstack([_dense(part) for part in parts]) for parts in zip(*found, strict=True))
            np.testing.assert_array_equal(X, _dense(whole.X[rows]))
            np.testing.assert_array_equal(Y, _dense(whole.Y[rows]))
            assert max(batch[0].shape[0] for batch in found) == 200


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl"])
def test_large_tables_are_cut_by_rows(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    if suffix == "jsonl":
        lines = [json.dumps({"size": index, "tags": ["a"]}) for index in range(2300)]
    else:
        lines = ["size,tags", *(f"{index},a" for index in range(2300))]
    with gzip.open(path, "wt") if suffix.endswith("gz") else path.open("w") as file:
        file.write("\n".join(lines) + "\n")
    pieces = pieces_of(path, as_tables=True)
    assert [(piece.first, piece.last) for piece in pieces] == [(0, 500), (500, 1000), (1000, 1500), (1500, 2300)]
    for index in [0, 1, 2, 3, 1, 3]:
        found = list(read_batches(pieces[index], 200, as_tables=True))
        rows = [int(cell) for table in found for cell in table.columns["size"]]
        assert rows == list(range(pieces[index].first, pieces[index].last))
        assert max(table.n_rows for table in found) <= 200


def test_few_files_in_the_order_of_time_are_learned_in_rounds(tmp_path):
    """Their rows are counted, and few rows are shared less: shares of one round would not see what changes."""
    for index in range(8):
        write_dataset(SyntheticStream(n_rows=300, n_features=3, n_labels=4, seed=index), tmp_path / f"rows-{index}.svm")
    pieces = pieces_of(str(tmp_path / "rows-*.svm"), as_tables=False)
    assert [piece.n_rows for piece in pieces] == [300] * 8
    assert [len(each) for each in fitting.plan(8, 24, None, 2400)] == [1] * 6
    assert [len(each) for each in fitting.plan(8, 24, None)] == [8]


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


def test_batches_are_those_of_one_pass(tmp_path):
    path = tmp_path / "rows.svm"
    write_dataset(SyntheticStream(n_rows=2300, n_features=3, n_labels=4, seed=0), path)
    for size in (300, 700, 1000):
        pieces = pieces_of(path, as_tables=False, batch_size=size)
        found = [X.shape[0] for piece in pieces for X, _ in read_batches(piece, size, as_tables=False)]
        assert found == [size] * (2300 // size) + [2300 % size] * (2300 % size > 0)
        assert len(pieces) > 1


def test_a_file_that_took_the_place_of_another_is_read_anew(tmp_path):
    path, other = tmp_path / "rows.svm", tmp_path / "other.svm"
    for seed, target in enumerate((path, other)):
        write_dataset(SyntheticStream(n_rows=2300, n_features=3, n_labels=4, seed=seed), target)
    first, second, *_ = pieces_of(path, as_tables=False)
    list(read_batches(first, 500, as_tables=False))
    other.replace(path)
    [(X, _)] = read_batches(second, 500, as_tables=False)
    np.testing.assert_array_equal(_dense(X), _dense(load_dataset(path).X[500:1000]))


def test_delayed_pieces_are_computed_where_they_are_learned_unless_they_share_tasks():
    rows = [np.eye(3) * index for index in range(4)]
    own = [dask.delayed(np.add)(part, 1.0) for part in rows]
    for pieces in (own, dask.bag.from_sequence(range(4), npartitions=4).map(rows.__getitem__).to_delayed()):
        found = as_delayed_pieces(list(pieces))
        assert all(isinstance(piece, DelayedPiece) for piece in found)
    np.testing.assert_array_equal(as_delayed_pieces(own)[2].compute(), rows[2] + 1.0)
    common = dask.delayed(np.ones)(3)
    sharing = [dask.delayed(np.add)(part, common) for part in rows]
    mixed = as_delayed_pieces([*sharing, own[0], rows[0]])
    assert all(one is other for one, other in zip(mixed[:4], sharing, strict=True))
    assert isinstance(mixed[4], DelayedPiece)
    assert mixed[5] is rows[0]


def test_what_a_cluster_holds_stays_there(client):
    [held] = dask.persist(dask.delayed(np.ones)(3))
    submitted = client.submit(np.ones, 4)
    pieces = [held, dask.delayed(np.add)(submitted, 1.0), dask.delayed(np.add)(held, 1.0)]
    assert all(one is other for one, other in zip(as_delayed_pieces(pieces), pieces, strict=True))


@pytest.mark.parametrize("kind", ["sparse", "dense", "sets"])
def test_small_pieces_are_learned_together(kind):
    """Pieces of 20 rows give the start, and what a share has gained, of one piece of all their rows."""
    [(X, Y)] = SyntheticStream(n_rows=900, n_features=15, n_labels=12, seed=3).batches(900)
    Y = Y.toarray()
    if kind == "sparse":
        X, Y = csr_array(X * (X > 0.9)), csr_array(Y)
    elif kind == "sets":
        Y = [{str(label) for label in np.flatnonzero(row)} for row in Y]
    settings = worker_tasks.Settings(500, None, 40)
    scores = []
    for size in (20, 500):
        bounds = [*range(0, 500, size), *range(500, 901, 20 if size == 20 else 400)]
        pieces = [(X[a:b], Y[a:b]) for a, b in itertools.pairwise(bounds)]
        start = worker_tasks.begin(labelrace.LabelRaceClassifier(random_state=0), pieces, settings)
        assert start.rows == 500
        first = bounds.index(500)
        joined = worker_tasks.join(start, worker_tasks.learn(start, first, pieces[first:], settings))
        assert joined.rows == 900
        scores.append(joined.model.decision_function(X))
    np.testing.assert_array_equal(*scores)


def test_batches_that_are_not_alike_are_learned_apart():
    parts = list(SyntheticStream(n_rows=600, n_features=5, n_labels=6, seed=0).batches(60))
    pieces = [(X, Y.toarray()[:, : 4 if index < 7 else 6]) for index, (X, Y) in enumerate(parts)]
    begun = worker_tasks.begin(
        labelrace.LabelRaceClassifier(random_state=0), pieces, worker_tasks.Settings(500, None, 20)
    )
    assert begun.known_batches == (1,) * 7 + (0,) * 3


def test_files_are_scanned_once_before_they_are_learned_and_once_by_a_worker(tmp_path, monkeypatch):
    for number in range(2):
        rows = (f"{row % 5},{'red' if row % 2 else 'blue'},{'x;y' if row % 3 else 'y'}" for row in range(1500))
        (tmp_path / f"rows-{number}.csv").write_text("\n".join(["size,hue,tags", *rows]) + "\n")
    scans, scan = [], table_stream.scan_table
    monkeypatch.setattr(table_stream, "scan_table", lambda table, *a: scans.append(table.path.name) or scan(table, *a))
    opened = {}
    pieces = pieces_of(str(tmp_path / "rows-*.csv"), as_tables=False, labels="tags", opened=opened)
    assert len(pieces) == 6
    features = shared_features(opened, "tags", opened=opened)
    assert scans == ["rows-0.csv", "rows-1.csv"]
    for piece in (pieces[1], pieces[0], pieces[2]):
        list(read_batches(piece, 500, as_tables=False, labels="tags", features=features))
    assert scans == ["rows-0.csv", "rows-1.csv", "rows-0.csv"]
