"""A million labels, as ratios in one run: hashed RACE beside a bare product and Vowpal Wabbit's label tree.

Usage, each on one core:

    python benchmarks/extreme.py                                      speed
    python benchmarks/extreme.py tenth delicious cooking.csv.gz       quality with a tenth of the memory
    python benchmarks/extreme.py transition cooking.csv.gz 19MB       from a model for each label to codes
    python benchmarks/extreme.py file                                 save and load

*Speed*: a synthetic stream whose labels follow Zipf's law, each with words of its own among noise: 10⁵ features, 50
non-zeros and five labels a row. Printed for 10⁴ and 10⁶ labels: rows learned a second, the first batch, the five best
labels of one row and of 100, the product of 100 rows of codes with all labels, and the bytes of the file. With the
package ``vowpalwabbit`` installed, learning and the five best of one row beside its ``--plt``, batch by batch; with
``numba``, all of it with compiled loops and without. Each with the memory that ``race-hashed`` has by default, and with
more, for more codes and slots. Whoever writes to memory for the first time waits for the system to provide it: rows a
second are also given without the first 1,000 rows, in which both write to most of theirs.

Beside the label tree, 50,000 rows are learned: as many as a real stream of this kind has.

*Tenth* and *transition* take datasets of the catalog, or tables of text with a column ``tags``, in batches of 500, each
tested before it is learned. The uncompressed size is four bytes for each label and each column in use at the end.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.csv
import scipy.sparse

import labelrace
from labelrace.base import compiled
from labelrace.experiments.extreme import zipf_stream

BATCH, ROWS, ROWS_BESIDE = 500, 6000, 50_500
MEMORIES = ("100MB", "450MB")
DISCOUNT = 1 / np.log2(np.arange(2, 7))


def stream(n_labels: int, n_rows: int = ROWS) -> tuple[Any, Any]:
    _, X, Y = zipf_stream(n_labels, n_rows)
    return X, Y


def seconds(task: Callable[[], Any]) -> float:
    """Measure processor time, which other processes change less."""
    start = time.process_time()
    task()
    return time.process_time() - start


def hashed(n_labels: int, memory: str) -> dict[str, float]:
    X, Y = stream(n_labels)
    model = labelrace.make_model("race-hashed", max_memory=memory, random_state=0)
    first = seconds(lambda: model.partial_fit(X[:BATCH], Y[:BATCH]))
    places = range(BATCH, ROWS - BATCH, BATCH)
    spent = [seconds(lambda s=s: model.partial_fit(X[s : s + BATCH], Y[s : s + BATCH])) for s in places]  # type: ignore[misc]
    test = X[-BATCH:]
    # Rows as they come: cutting them out of a matrix takes as long as the label tree needs for all.
    rows = [test[i : i + 1] for i in range(100)]
    model.predict_top(rows[0], 5)
    one = seconds(lambda: [model.predict_top(row, 5) for row in rows]) / 100
    many = seconds(lambda: model.predict_top(test[:100], 5))
    rng = np.random.default_rng(0)
    codes, sums = (rng.random((n, model.n_components_), dtype=np.float32) for n in (100, n_labels))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        size = Path(folder, "model").stat().st_size
    return {
        "first batch, s": first,
        "rows learned a second": len(places) * BATCH / sum(spent),
        "rows learned a second, after 1,000": (len(places) - 1) * BATCH / sum(spent[1:]),
        "best of one row, ms": 1e3 * one,
        "best of 100 rows, ms": 1e3 * many,
        "product of 100 rows, ms": 1e3 * seconds(lambda: codes @ sums.T),
        "megabytes": size / 1e6,
    }


class Pair(NamedTuple):
    """Seconds of processor time that hashed RACE took for something, and Vowpal Wabbit's label tree beside it."""

    ours: float
    theirs: float


class Beside(NamedTuple):
    """What was measured of both, batch by batch, and how good the five best labels were: nDCG@5."""

    learned: list[Pair]
    predicted: list[Pair]
    quality: Pair


def beside_label_tree(n_labels: int, memory: str) -> Beside:
    """Let both learn each batch, and then find the five best labels of each row, one right after the other.

    So what slows the machine down for a while slows both.
    """
    import vowpalwabbit

    X, Y = stream(n_labels, ROWS_BESIDE)
    texts = [" ".join(map(str, X.indices[X.indptr[i] : X.indptr[i + 1]].tolist())) for i in range(ROWS_BESIDE)]
    tags = [",".join(map(str, Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist())) for i in range(ROWS_BESIDE)]
    tree = vowpalwabbit.Workspace(f"--plt {n_labels} --loss_function logistic -b 24 --top_k 5 --quiet")
    model = labelrace.make_model("race-hashed", max_memory=memory, random_state=0)
    learned, predicted = [], []
    for start in range(0, ROWS_BESIDE - BATCH, BATCH):
        batch, labels, places = X[start : start + BATCH], Y[start : start + BATCH], range(start, start + BATCH)
        ours = seconds(lambda batch=batch, labels=labels: model.partial_fit(batch, labels))  # type: ignore[misc]
        theirs = seconds(lambda places=places: [tree.learn(f"{tags[i]} | {texts[i]}") for i in places])  # type: ignore[misc]
        learned.append(Pair(ours, theirs))
    # Rows as they come: cutting them out of a matrix takes as long as the label tree needs for all.
    for start in range(ROWS_BESIDE - BATCH, ROWS_BESIDE, 50):
        rows = [X[i : i + 1] for i in range(start, start + 50)]
        ours = seconds(lambda rows=rows: [model.predict_top(row, 5) for row in rows])  # type: ignore[misc]
        theirs = seconds(lambda start=start: [tree.predict(f"| {texts[i]}") for i in range(start, start + 50)])  # type: ignore[misc]
        predicted.append(Pair(ours, theirs))
    last = range(ROWS_BESIDE - BATCH, ROWS_BESIDE)
    truth = [set(Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()) for i in last]
    found = model.predict_top(X[last.start :], 5), [[(j, 1.0) for j in tree.predict(f"| {texts[i]}")] for i in last]
    gains = [np.mean([of_row(*row, set())[1] for row in zip(truth, tops, strict=True)]) for tops in found]
    return Beside(learned, predicted, Pair(*map(float, gains)))


class Batch(NamedTuple):
    """What was measured of a batch before it was learned, and how long learning took."""

    precision_at_1: float
    ndcg_at_5: float
    example_f1: float
    seconds: float


def batches_of(name: str) -> Iterator[tuple[Any, Any, list[set[Any]]]]:
    """Yield what a model learns of batches, and the labels of each row; a table is learned with its tags."""
    if name.endswith((".csv", ".csv.gz")):
        options = pyarrow.csv.ParseOptions(newlines_in_values=True)
        table = pyarrow.csv.read_csv(name, parse_options=options)
        for start in range(0, len(table), BATCH):
            part = table.slice(start, BATCH)
            yield part, None, [set((tags or "").split()) for tags in part["tags"].to_pylist()]
        return
    data = labelrace.load_dataset(name)
    for X, Y in data.batches(BATCH):
        Y = scipy.sparse.csr_array(Y)
        yield X, Y, [set(labels) for labels in np.split(Y.indices, Y.indptr[1:-1])]


def run(name: str, model: Any) -> tuple[Any, list[Batch]]:
    """Let a model, or a tagger with it, go through a stream; return it and what was measured of all batches."""
    measured: list[Batch] = []
    is_table = name.endswith((".csv", ".csv.gz"))
    learner = labelrace.Tagger(tags="tags", model=model, random_state=0) if is_table else model
    for place, (X, Y, truth) in enumerate(batches_of(name)):
        quality = (0.0, 0.0, 0.0)
        if place:
            tops = learner.predict_top(X, 5)
            sets = learner.predict(X) if is_table else learner.predict_labels(X)
            rows = [of_row(*row) for row in zip(truth, tops, sets, strict=True)]
            quality = tuple(np.mean(rows, axis=0).tolist())
        spent = seconds(lambda X=X, Y=Y: learner.partial_fit(X) if is_table else learner.partial_fit(X, Y))  # type: ignore[misc]
        measured.append(Batch(*quality, seconds=spent))
    return learner.model_ if is_table else learner, measured


def of_row(truth: set[Any], top: list[tuple[Any, float]], chosen: set[Any]) -> tuple[float, float, float]:
    hits = np.array([label in truth for label, _ in top], float)
    gain = (hits * DISCOUNT[: len(hits)]).sum() / DISCOUNT[: max(1, min(5, len(truth)))].sum()
    both = len(truth) + len(chosen)
    return hits[0] if len(hits) else 0.0, gain, 2 * len(truth & chosen) / both if both else 1.0


def tenth(names: list[str], share: float = 0.1) -> None:
    """Compare compressed labels with uncompressed ones that take ten times the memory."""
    for name in names:
        whole, found = run(name, labelrace.make_model("race", max_memory="100GB", random_state=0))
        state = whole._fitted.state.learners
        memory = share * 4.0 * state.in_use * len(state.intercepts)
        print(f"{name}: {len(state.intercepts)} labels, {memory / 1e6:.3g} MB")
        best = np.mean(found[1:], axis=0)
        print("  uncompressed  P@1 {:.3f}, nDCG@5 {:.3f}, example F {:.3f}".format(*best))
        for kind in ("race", "race-hashed"):
            _, measured = run(name, labelrace.make_model(kind, max_memory=memory, random_state=0))
            mean = np.mean(measured[1:], axis=0)
            text = "  {:12}  P@1 {:.3f}, nDCG@5 {:.3f}, example F {:.3f}".format(kind, *mean)
            print(f"{text}; nDCG@5 is {mean[1] / best[1]:.1%}", flush=True)


def transition(name: str, memory: str) -> None:
    """Compare a model that moves from a model for each label to codes with one that is always this or that."""
    kinds = (("moves", "race", memory), ("never", "race", "100GB"), ("from the start", "race-hashed", memory))
    runs = {title: run(name, labelrace.make_model(kind, max_memory=of, random_state=0))[1] for title, kind, of in kinds}
    print("batch  " + "  ".join(f"{title:>15}" for title in runs) + "    nDCG@5, seconds to learn the batch")
    for place in range(1, len(runs["moves"])):
        cells = (f"{found[place].ndcg_at_5:.3f} {found[place].seconds:8.2f}s" for found in runs.values())
        print(f"{place:5}  " + "  ".join(f"{cell:>15}" for cell in cells))


# By what the system says of the process: what `resource` says would count the process that started it, too.
_LOADING = """
import sys, time, labelrace
labelrace.HashedRACEClassifier  # its modules are no part of the model
size = lambda name: next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 976.5625
at_rest, start = size("VmRSS"), time.process_time()
model = labelrace.load(sys.argv[1])
spent, peak = time.process_time() - start, size("VmHWM") - at_rest
print(f"load: {spent:.2f} s; the process grows by {size('VmRSS') - at_rest:.0f} MB, at its peak by {peak:.0f} MB")
"""


def save_and_load() -> None:
    """Save and load 10⁶ labels with names of 13 letters, each in a process of its own."""
    X, Y = stream(10**6)
    names = [f"label {place:07}" for place in range(10**6)]
    model = labelrace.make_model("race-hashed", max_memory="450MB", random_state=0, label_names=names)
    model.partial_fit(X[:BATCH], Y[:BATCH]).partial_fit(X[BATCH:], Y[BATCH:])
    state = model._fitted.state
    arrays = [state.learners.weights, state.learners.gained, state.decoder.sums, state.decoder.counts, state.table]
    print(f"state: {sum(array.nbytes for array in arrays) / 1e6:.0f} MB")
    with tempfile.TemporaryDirectory() as folder:
        path, before = Path(folder, "model"), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        spent = seconds(lambda: model.save(path))
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"save: {spent:.2f} s, {more * 1024 / 1e6:.0f} MB beside the model")
        print(f"file: {path.stat().st_size / 1e6:.0f} MB")
        subprocess.run([sys.executable, "-c", _LOADING, str(path)], check=True)


def main(arguments: list[str]) -> None:
    tasks: dict[str, Callable[[], None]] = {
        "tenth": lambda: tenth(arguments[1:]),
        "transition": lambda: transition(*arguments[1:]),
        "file": save_and_load,
    }
    tasks.get(arguments[0] if arguments else "", speed)()


def speed() -> None:
    forms = {"NumPy": lambda: False}
    if compiled.is_available():
        forms = {"compiled loops": lambda: True, **forms}
        # Compiling, and loading what was compiled before, is no part of learning.
        stream_of_few = zipf_stream(10_000, 1200)
        model = labelrace.make_model("race-hashed", max_memory="10MB", random_state=0)
        model.partial_fit(*stream_of_few[1:]).partial_fit(*stream_of_few[1:]).predict_top(stream_of_few.X[:1])
    for form, is_available in forms.items():
        compiled.is_available = is_available  # type: ignore[assignment]
        for memory in MEMORIES:
            print(f"{form}, {memory}", flush=True)
            print_alone(hashed(10**4, memory), hashed(10**6, memory))
            try:
                print_beside(beside_label_tree(10**6, memory))
            except ImportError:
                print("  Vowpal Wabbit is not installed")


def print_alone(few: dict[str, float], many: dict[str, float]) -> None:
    for name, value in few.items():
        print(f"  {name}: {value:.3g} with 10⁴ labels, {many[name]:.3g} with 10⁶")
    slower = few["rows learned a second"] / many["rows learned a second"]
    share = many["product of 100 rows, ms"] / many["best of 100 rows, ms"]
    print(f"  learning, 10⁶ against 10⁴ labels: {slower:.2f} times; best of 100 rows: 1/{share:.0f} of the product")


def print_beside(measured: Beside) -> None:
    # Without the first 1,000 rows; and what is predicted first derives what all need.
    parts = ("learning", measured.learned[2:], BATCH), ("five best of one row", measured.predicted[1:], 50)
    for what, pairs, size in parts:
        ours, theirs = (1e3 * np.median(part) / size for part in zip(*pairs, strict=True))
        quartiles = np.percentile([pair.theirs / pair.ours for pair in pairs], (25, 50, 75))
        times = ", ".join(f"{ratio:.2f}" for ratio in quartiles)
        print(f"  {what}: {ours:.3g} ms a row, --plt {theirs:.3g}: quartiles of its time by ours {times}")
    ours, theirs = (sum(part) for part in zip(*measured.learned, strict=True))
    print(f"  all {ROWS_BESIDE - BATCH:,} rows: {theirs / ours:.2f} times its rows a second")
    print("  nDCG@5 of the last 500 rows: {:.3f}, --plt {:.3f}".format(*measured.quality), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
