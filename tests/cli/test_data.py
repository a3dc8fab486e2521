"""``labelrace data``."""

import numpy as np
import pytest

from labelrace.base.sparse import dense
from labelrace.streams import load_dataset
from labelrace.streams.synthetic import like

SUFFIXES = [".arff", ".svm", ".xc", ".csv", ".tsv", ".jsonl", ".parquet", ".npz", ".arff.gz", ".csv.bz2"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_converting_there_and_back(works, files, data, suffix):
    assert works("data", "convert", files(".arff"), f"there{suffix}") == f"there{suffix}\n"
    works("data", "convert", f"there{suffix}", "back.npz")
    for name in (f"there{suffix}", "back.npz"):
        read = load_dataset(name)
        np.testing.assert_array_equal(dense(read.X), data.X)
        np.testing.assert_array_equal(read.Y.toarray(), data.Y.toarray())
        assert tuple(read.feature_names) == data.feature_names
        assert tuple(read.label_names) == data.label_names


def test_making_and_telling(works):
    shape = ("--rows", 300, "--features", 12, "--labels", 9, "--cardinality", 2, "--density", 0.2, "--seed", 5)
    out = works("data", "make", "new.svm", *shape, "--drift", "sudden")
    assert "300 rows" in out
    assert "sudden drift" in out
    told = works("data", "info", "new.svm")
    for fact in ("new", "300", "12, of which 12 are nominal", "9, of which 0 never occur"):
        assert fact in told
    assert load_dataset("new.svm").Y.sum() / 300 == pytest.approx(2, rel=0.2)


def test_making_the_same_again(works, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        works("data", "make", f"{name}.csv", "--rows", 50, "--features", 3, "--labels", 4, "--seed", seed)
    a, b, c = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c


def test_making_data_like_the_papers(works):
    works("data", "make", "new.npz", "--like", "cal500", "--rows", 40, "--seed", 3)
    expected = like("CAL500", n_rows=40, seed=3).load()
    read = load_dataset("new.npz")
    np.testing.assert_array_equal(read.X, expected.X)
    np.testing.assert_array_equal(read.Y.toarray(), expected.Y.toarray())


def test_list(works, monkeypatch, tmp_path, files):
    monkeypatch.setenv("LABELRACE_DATA", str(tmp_path))
    out = works("data", "list")
    assert "enron" in out
    assert "1702" in out
    assert str(tmp_path) not in out


def test_a_dataset_by_its_name(works, monkeypatch, files):
    monkeypatch.setenv("LABELRACE_DATA", str(files(".arff").parent))
    assert "120" in works("data", "info", "toy")
    works("data", "convert", "toy", "new.jsonl")
    assert len(load_dataset("new.jsonl")) == 120


def test_a_label_that_never_occurs_and_no_rows(works, tmp_path):
    (tmp_path / "rare.csv").write_text("a,y,z\n1,0,1\n0,0,1\n")
    assert "2, of which 1 never occur" in works("data", "info", "rare.csv", "--labels", 2)
    (tmp_path / "none.csv").write_text("a,y,z\n")
    assert "0.000" in works("data", "info", "none.csv", "--labels", 2)
