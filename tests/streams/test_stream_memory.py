"""A stream's memory is that of a batch, however long the file."""

import subprocess
import sys

import numpy as np
import pytest
from helpers.memory import peak_of
from scipy.sparse import csr_array

from labelrace.streams import CategoricalMask, Dataset, load_dataset, open_stream, write_dataset
from labelrace.streams.dataset import FileStream

BATCH, FEATURES, LABELS = 100, 6, 3
NOISE = 100_000  # bytes: when garbage goes, and the footer of a Parquet file
SUFFIXES = [".arff", ".svm", ".xc", ".csv", ".jsonl", ".parquet", ".arrow", ".svm.gz"]


def repeated(times):
    """Return a stream of some rows, over and over."""
    random = np.random.default_rng(0)
    X = np.round(random.normal(size=(BATCH, FEATURES)), 3)
    X[:, 0] = random.integers(0, 3, BATCH)
    Y = csr_array((random.random((BATCH, LABELS)) < 0.3).astype(np.int8))
    names = tuple(f"f{i}" for i in range(FEATURES)), tuple(f"l{i}" for i in range(LABELS))
    mask = CategoricalMask([3] + [0] * (FEATURES - 1))
    return FileStream("long", *names, mask, lambda size: iter([(X, Y)] * times), {0: ("a", "b", "c")})


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_reading_is_flat(tmp_path, suffix):
    path = tmp_path / f"long{suffix}"
    labels = {".csv": LABELS, ".jsonl": "labels", ".parquet": LABELS, ".arrow": LABELS}.get(suffix)

    def stream():  # with its scan, where there is one
        return sum(X.shape[0] for X, _ in open_stream(path, labels).batches(BATCH))

    peaks = []
    for times in (20, 50):
        write_dataset(repeated(times), path, batch_size=BATCH)
        path.with_name(f"long{suffix.removesuffix('.gz')}.schema.json").unlink(missing_ok=True)
        assert stream() == times * BATCH
        peaks.append(peak_of(stream))
    assert peaks[1] < 1.1 * peaks[0] + NOISE
    whole = peak_of(lambda: load_dataset(path, labels))
    assert whole > peaks[1] + 30 * BATCH * FEATURES * 8 - NOISE


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".npz"])
def test_writing_is_flat(tmp_path, suffix):
    path = tmp_path / f"long{suffix}"
    write_dataset(repeated(2), path)
    short, long = (peak_of(lambda times=times: write_dataset(repeated(times), path)) for times in (10, 50))
    assert long < 1.1 * short + NOISE


def test_dataset_in_memory_is_not_copied(tmp_path):
    X, Y = np.zeros((20_000, 20)), csr_array((20_000, 5), dtype=np.int8)
    data = Dataset(X, Y, tuple(map(str, range(20))), tuple("abcde"), np.zeros(20, dtype=bool), "zeros")
    assert peak_of(lambda: write_dataset(data, tmp_path / "zeros.svm")) < X.nbytes / 2


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere peaks are in other units")
def test_columns_of_a_wide_table_take_few_bytes_each(tmp_path):
    """Pyarrow allocates outside of Python: a process of its own tells its peak."""
    (tmp_path / "wide.csv").write_text(
        "\n".join([",".join(f"c{i}" for i in range(40_000)), *["0," * 39_999 + "1"] * 2])
    )
    code = (
        "import resource\n"
        "from labelrace.streams import open_stream, table_stream\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        "for _ in open_stream('wide.csv', 1).batches(10): pass\n"
        "print(peak() - before)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert int(told.stdout) / 40_000 < 3, "kilobytes a column"


@pytest.mark.parametrize("truths", [("1", "0"), ("true", "false"), ("1.0", "FALSE")])
def test_labels_may_be_other_truths_further_down(tmp_path, truths):
    path = tmp_path / "rows.csv"
    lines = ["a,l", *["1,0", "2,1"] * 9000, *[f"1,{truths[1]}", f"2,{truths[0]}"] * 9000, *["1,0", "2,1"] * 9000]
    path.write_text("\n".join(lines) + "\n")
    data = load_dataset(path, ["l"])
    np.testing.assert_array_equal(data.Y.toarray()[:, 0], data.X[:, 0] == 2)
