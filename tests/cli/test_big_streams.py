"""Streams that do not fit into the memory are evaluated to the end."""

import json
import math
import os
import subprocess
import sys
from functools import partial

import pytest
from helpers.memory import peak_of
from helpers.records import lasting

from labelrace.evaluation import experiment, read_run, run
from labelrace.streams import write_dataset
from labelrace.streams.dataset import FileStream
from labelrace.streams.synthetic import SyntheticStream

MEGABYTE = 1024**2

# Evaluates a stream as large as the memory it may have, and one ten times larger. The address space is limited to what
# is in use after the imports and a first small run, and the allowance. Prints the peaks in kilobytes.
LIMITED = """
import json, re, resource, sys
from labelrace.evaluation import run
from labelrace.streams.synthetic import SyntheticStream

allowance, features, rows = map(int, sys.argv[1:])

def status(name):
    return int(re.search(rf"{name}:\\s+(\\d+) kB", open("/proc/self/status").read())[1])

def evaluate(name, rows):
    stream = SyntheticStream(n_rows=rows, n_features=features, n_labels=5, cardinality=1.5, n_factors=2)
    run(stream, ["negative"], out=name, batch_size=500, measures=["hamming_loss"], jobs=1)
    return status("VmHWM")

evaluate("warm", 1500)
limit = 1024 * status("VmSize") + allowance
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
peaks = [evaluate("short", rows), evaluate("long", 10 * rows)]
try:
    SyntheticStream(n_rows=10 * rows, n_features=features, n_labels=5, cardinality=1.5, n_factors=2).load()
except MemoryError:
    print(json.dumps(peaks))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system does not tell a process's memory")
def test_ten_times_the_memory(tmp_path):
    allowance, features = 64 * MEGABYTE, 1000
    rows = math.ceil(allowance / features / 8)
    arguments = [sys.executable, "-c", LIMITED, *map(str, (allowance, features, rows))]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    ended = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, env=os.environ | threads)
    assert (ended.returncode, ended.stderr) == (0, "")
    short, long = json.loads(ended.stdout)
    assert long < 1.15 * short
    _, records = read_run(tmp_path / "long")
    assert records[-1]["kind"] == "done"
    assert records[-1]["rows"] == 10 * rows


@pytest.mark.parametrize("suffix", [".arff", ".svm", ".xc", ".csv", ".jsonl", ".npz", ".parquet", ".svm.gz"])
def test_streamed_files_give_what_loaded_ones_give(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"new{suffix}"
    density = 0.2 if suffix.startswith((".svm", ".xc")) else None
    write_dataset(SyntheticStream(n_rows=300, n_features=8, n_labels=6, cardinality=2, density=density), path)
    settings = {"source": path, "models": ["race-cls-fixed", "majority"], "batch_size": 50}
    loaded, expected = run(**settings, out=tmp_path / "loaded", jobs=1)
    monkeypatch.setattr(experiment, "_LOADED_BYTES", 100)
    for jobs in (1, 2):
        streamed, records = run(**settings, out=tmp_path / str(jobs), jobs=jobs)
        assert lasting(records) == lasting(expected)
        told = {"name", "kind", "checksum", "features", "labels"}
        assert {name: streamed["source"][name] for name in told} == {name: loaded["source"][name] for name in told}


@pytest.mark.parametrize("suffix", [".arff", ".svm", ".csv"])
def test_the_length_of_a_file_does_not_matter(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(experiment, "_LOADED_BYTES", 100)
    X, Y = next(SyntheticStream(n_rows=500, n_features=20, n_labels=4, cardinality=1.5).batches(500))
    peaks = []
    for times in (2, 12):
        first = SyntheticStream(n_rows=1, n_features=20, n_labels=4)
        names = (first.feature_names, first.label_names, first.categorical)
        path = tmp_path / f"{times}{suffix}"
        write_dataset(FileStream("long", *names, lambda _, times=times: iter([(X, Y)] * times)), path)
        settings = {"batch_size": 500, "out": tmp_path / str(times), "jobs": 1}
        peaks.append(peak_of(partial(run, path, ["negative"], **settings)))
        assert read_run(tmp_path / str(times))[1][-1]["rows"] == 500 * times
    # Loaded, the longer file's features alone would take 0.8 MB more.
    assert peaks[1] < peaks[0] + 0.3 * MEGABYTE
