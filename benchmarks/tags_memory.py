"""What a tagger takes in memory and on disk, and what reading a table costs.

- ``file``: a tagger of 2¹⁸ words and 700 tags: megabytes of its file, seconds to load it and to tag a first row.
- ``flat``: peak memory over a table of text ten times larger than the memory that learning it may take.
- ``ratio``: CPU time from CSV to learned, texts of 100 words, over that of scikit-learn's ``HashingVectorizer`` alone
  and of the model on the finished matrix.

Usage: ``python benchmarks/tags_memory.py [file] [flat] [ratio]``, all of them by default. Words are drawn as they are
in texts: the r-th has a frequency of about 1 / r.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

import labelrace
from labelrace.tables import file_tables, tagged_dataset

WORDS, TAGS, LENGTH = 2**18, 700, 100
LIMITS = {"megabytes": 100.0, "seconds": 0.5, "ratio": 4.0}
FLAT_MEGABYTES = 300


def rows(n: int, n_words: int, n_tags: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Make texts of 100 words with two tags each; a tag has words of its own, ten of which are in the text."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        words = np.exp(rng.random(LENGTH) * np.log(n_words)).astype(int)
        tags = rng.integers(0, n_tags, 2)
        words[:20] += np.repeat(tags, 10) - words[:20] % n_tags
        yield " ".join(f"w{word % n_words}" for word in words), " ".join(f"tag-{tag}" for tag in set(tags.tolist()))


def write(path: Path, n: int, n_words: int, n_tags: int, seed: int = 0) -> None:
    with path.open("w") as file:
        file.write("body,tags\n")
        file.writelines(f"{text},{tags}\n" for text, tags in rows(n, n_words, n_tags, seed))


def full_tagger() -> labelrace.Tagger:
    """Learn until all columns and tags are in use: every word comes, in long texts."""
    tagger = labelrace.Tagger(tags="tags", random_state=0, max_features=WORDS)
    rng = np.random.default_rng(0)
    for start in range(0, WORDS, 25_000):
        some = rng.permutation(np.arange(start, min(start + 25_000, WORDS)))
        # Often enough for a word of a long text to get a column.
        parts = [some[place::500] for place in range(500)] * 6
        tags = [f"tag-{rng.integers(TAGS)}" for _ in parts]
        texts = [" ".join(f"w{word}" for word in part) for part in parts]
        tagger.partial_fit([{"body": text, "tags": tag} for text, tag in zip(texts, tags, strict=True)])
    return tagger.partial_fit([{"body": text, "tags": tags} for text, tags in rows(20_000, WORDS, TAGS)])


def file(folder: Path) -> None:
    """Print size and loading time of a tagger's file."""
    tagger = full_tagger()
    path = folder / "full.labelrace"
    start = time.perf_counter()
    tagger.save(path)
    saving = time.perf_counter() - start
    shape = tagger.model_.n_features_in_, len(tagger.tags_)
    megabytes = path.stat().st_size / 1e6
    test = [{"body": text, "tags": tags} for text, tags in rows(1000, WORDS, TAGS, seed=1)]
    before = tagger.score(test)
    del tagger
    loading = cpu(lambda: labelrace.load(path), 5)
    start = time.perf_counter()
    again = labelrace.load(path)
    waiting = time.perf_counter() - start
    start = time.perf_counter()
    again.predict(test[:1])
    first = time.perf_counter() - start
    print(f"a tagger of {shape[0]} columns and {shape[1]} tags, {4 * shape[0] * shape[1] / 1e6:.0f} MB of weights")
    print(f"  file: {megabytes:.1f} MB (limit {LIMITS['megabytes']:g}), saved in {saving:.1f} s")
    print(
        f"  loaded in {loading:.2f} s of CPU time, {waiting:.2f} s in all (limit {LIMITS['seconds']:g}), a first row "
        f"tagged {first:.3f} s later"
    )
    print(f"  example F of 1,000 rows: {before:.4f} before it was saved, {again.score(test):.4f} after")


def flat(folder: Path) -> None:
    """Print the peak of memory while a table is learned that is ten times as large as what this may take."""
    path = folder / "large.csv"
    small = folder / "small.csv"
    write(small, 20_000, 20_000, 50)
    lines = small.read_text().partition("\n")[2]
    with path.open("w") as written:
        written.write("body,tags\n")
        while written.tell() < FLAT_MEGABYTES * 1e6:
            written.write(lines)
    n_megabytes = path.stat().st_size / 1e6
    for source in (small, path):
        # A process of its own: the peak of memory is of the whole process.
        told = subprocess.run([sys.executable, __file__, "--learn", source], capture_output=True, text=True, check=True)
        print(f"learned a table of {source.stat().st_size / 1e6:.0f} MB: {told.stdout.strip()}")
    print(f"  (limit: {n_megabytes / 10:.0f} MB more)")


def learn(path: str) -> None:
    """Learn a file, and print how much memory that took more than the first batches did."""
    tagger = labelrace.Tagger(tags="tags", random_state=0, max_features=2**14)
    tables = file_tables(path, 500)
    peaks = list[float]()
    for number, table in enumerate(tables):
        if number in (0, 10):
            peaks.append(peak())
        tagger.partial_fit(table)
    first, tenth, last = [*peaks, peak()]
    print(f"{last - first:.0f} MB more than before, {last - tenth:.0f} MB more than after ten batches")


def peak() -> float:
    """Return the peak of this process' memory in megabytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # What `resource` tells includes the peak of the parent, which is larger where a full tagger was made before.
        [kilobytes] = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(kilobytes) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def ratio(folder: Path) -> None:
    """Print the CPU time from CSV to learned, beside that of its parts."""
    path = folder / "texts.csv"
    write(path, 20_000, 50_000, 100)
    tagger = labelrace.Tagger(tags="tags", random_state=0)
    whole = cpu(lambda: labelrace.Tagger(tags="tags", random_state=0).partial_fit(path))
    texts = [line.partition(",")[0] for line in path.read_text().splitlines()[1:]]
    hashing = cpu(lambda: HashingVectorizer().transform(texts))
    data, _ = tagged_dataset(tagger, path)

    def model() -> None:
        alone = labelrace.make_model("race", random_state=0)
        for X, Y in data.batches(500):
            alone.partial_fit(X, Y)

    model_alone = cpu(model)
    print(f"from CSV to learned, 20,000 texts of 100 words: {whole:.2f} s")
    print(f"  HashingVectorizer {hashing:.2f} s, the model on the finished matrix {model_alone:.2f} s")
    print(f"  ratio {whole / (hashing + model_alone):.2f} (limit {LIMITS['ratio']:g})")


def cpu(function: Any, repeats: int = 3) -> float:
    """Measure the CPU time of a call: the best of some."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    if sys.argv[1:2] == ["--learn"]:
        learn(sys.argv[2])
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or ["file", "flat", "ratio"]:
            {"file": file, "flat": flat, "ratio": ratio}[name](Path(folder))


if __name__ == "__main__":
    main()
