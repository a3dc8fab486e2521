"""How well the tagger tags, with all its defaults, beside two pipelines tuned for the very data; and its memory.

The data are the questions of ``cooking.csv.gz``, or another table with the columns ``title``, ``content`` and ``tags``,
in order and in batches of 500, each predicted before it is learned. The rivals get the text without its HTML:

- ``sgd``: TF-IDF of hashed words, with the document frequencies of the rows so far, and one
  ``SGDClassifier(loss="log_loss")`` against the rest for each tag, by ``partial_fit``;
- ``vw``: Vowpal Wabbit's ``--multilabel_oaa`` with probabilities, left out where it is not installed.

Each runs with six settings. Both know all tags beforehand, which the tagger does not, and the probability from which a
tag is given is chosen afterwards, by what would have been best: the rivals' figures are the most that they could reach.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse
import typer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import MultiLabelBinarizer, normalize

import labelrace
from benchmarks.rivals import NOT_INSTALLED, vowpal_lines, vowpal_wabbit
from benchmarks.timing import seconds
from labelrace.cli.options import argument
from labelrace.evaluation.checkpoint import padded
from labelrace.measures import evaluate
from labelrace.tables.text import strip_html
from labelrace.typing import Array, FloatArray, SparseMatrix

BATCH = 500
MEASURES = ("example_f1", "micro_f1", "precision_at_1", "precision_at_5")
# Where parts of the rows begin, whose precision is shown.
PARTS = (1500, 4000, 11500)
THRESHOLDS = (0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)


def tags(
    table: Annotated[
        Path | None,
        argument(help="A CSV table with title, content and tags; without it, memory and files are measured."),
    ] = None,
    precisions: Annotated[
        bool, typer.Option("--precisions", help="Only show what precisions that are asked for lead to.")
    ] = False,
) -> None:
    """Compare the tagger with tuned pipelines; its memory.

    The comparison is on a table, and takes twenty minutes. Without a table, memory and files are measured. With
    --precisions, the precision that is found and the share of rows that get tags are printed for each asked for.

    [dim]Example:[/dim] python -m benchmarks tags cooking.csv.gz
    """
    if table is None:
        memory()
        full_file()
    elif precisions:
        leave_rows(table)
    else:
        names(table)
        compare(table)


def names(path: Path) -> None:
    """Print what the names of tags add on the first rows: by the tagger, and by its model alone."""
    import pandas as pd

    table = pd.read_csv(path, keep_default_na=False)[:6000]
    truth, seen = table["tags"].str.split().map(set).tolist(), Counter[str]()
    tagger, found = labelrace.Tagger(tags="tags", random_state=0), list[list[tuple[float, ...]]]()
    for start in range(0, len(table), BATCH):
        batch, true = table.iloc[start : start + BATCH], truth[start : start + BATCH]
        if start:
            rows = tagger.new_features().restore(tagger.state.features).transform(batch.drop(columns="tags"))
            sets = tagger.predict(batch), tagger.model_.predict_labels(rows)
            tops = tagger.predict_top(batch, 5), tagger.model_.predict_top(rows, 5)
            for i, tags in enumerate(true):
                found.append([_row(tags, chosen[i], top[i], seen) for chosen, top in zip(sets, tops, strict=True)])
        tagger.partial_fit(batch)
        seen.update(tag for tags in true for tag in tags)
    print(
        "names of tags: nDCG@5 of rows 1,000 to 2,000 and 2,000 to 5,000; example F1 of rows 1,000 to 2,500; share of"
    )
    print("tags seen one to five times among the first five")
    for name, values in zip(("labelrace.Tagger()", "its model alone"), np.array(found).transpose(1, 2, 0), strict=True):
        ndcg, f1, rare = values
        print(f"{name:<52}{ndcg[500:1500].mean():>10.4f}{ndcg[1500:4500].mean():>10.4f}", end="")
        print(f"{f1[500:2000].mean():>10.4f}{np.nanmean(rare):>10.4f}", flush=True)


def _row(true: set[str], chosen: set[str], top: list[tuple[str, float]], seen: Counter[str]) -> tuple[float, ...]:
    """Measure one row: nDCG@5, F1, and the share of its rarely seen tags among the first five; NaN without any."""
    gains, first = 1.0 / np.log2(np.arange(2, 7)), [tag for tag, _ in top]
    ndcg = sum(gain for gain, tag in zip(gains, first, strict=False) if tag in true) / gains[: len(true)].sum()
    rare = [tag in first for tag in true if 1 <= seen[tag] <= 5]
    return ndcg, 2 * len(true & chosen) / (len(true) + len(chosen)), float(np.mean(rare)) if rare else np.nan


def leave_rows(path: Path) -> None:
    """Print precision and share of rows with tags in three parts of a table, for each precision that is asked for."""
    import pandas as pd

    rows = pd.read_csv(path, keep_default_na=False)
    tagger, asked = labelrace.Tagger(tags="tags", random_state=0), (0.7, 0.8, 0.9)
    counts = np.zeros((len(PARTS), len(asked), 4))
    for start in range(0, len(rows), BATCH):
        batch = rows.iloc[start : start + BATCH]
        part = np.searchsorted(PARTS, start, side="right") - 1
        for column, precision in enumerate(asked if part >= 0 else ()):
            suggested = tagger.set_params(precision=precision).suggest(batch)
            pairs = list(zip(suggested, batch["tags"].str.split(), strict=True))
            right = sum(tag in true for one, true in pairs for tag in one.tags)
            given, handled = sum(len(one.tags) for one in suggested), sum(bool(one.tags) for one in suggested)
            counts[part, column] += right, given, handled, len(batch)
        tagger.set_params(precision=None).partial_fit(batch)
    print("| rows | " + " | ".join(f"target {one:g}: precision | rows with tags" for one in asked) + " |")
    print("| --- |" + " ---: |" * (2 * len(asked)))
    for first, last, of_part in zip(PARTS, (*PARTS[1:], len(rows)), counts, strict=True):
        cells = [f"{r / max(g, 1):.2f} | {h / max(n, 1):.0%}" for r, g, h, n in of_part]
        print(f"| {first:,} to {last:,} | " + " | ".join(cells) + " |")


def compare(path: Path) -> None:
    """Print a line for the tagger, and one for each setting of each rival, at its best threshold."""
    import pandas as pd

    table = pd.read_csv(path, keep_default_na=False)
    binarizer = MultiLabelBinarizer().fit(table["tags"].str.split())
    Y = binarizer.transform(table["tags"].str.split())
    texts = [strip_html(text) for text in table["title"] + " " + table["content"]]
    settings: list[tuple[Any, dict[str, Any]]] = [
        (sgd, {"alpha": alpha, "average": mean}) for alpha in (1e-6, 1e-5, 1e-4) for mean in (False, True)
    ]
    if find_spec("vowpalwabbit"):
        settings += [(vw, {"rate": rate, "tfidf": tfidf}) for rate in (0.1, 0.5, 2.0) for tfidf in (False, True)]
    else:
        print(NOT_INSTALLED)
    print(" " * 52 + "".join(f"{name:>16}" for name in MEASURES) + f"{'CPU':>12}")
    start = time.process_time()
    _tell("labelrace.Tagger(), all defaults", _tagger(table, Y, list(binarizer.classes_)), start)
    for rival, setting in settings:
        start = time.process_time()
        probabilities = np.vstack(list(rival(texts, Y, **setting)))
        threshold, values = _best_threshold(Y[BATCH:], probabilities)
        told = ", ".join(f"{key}={value}" for key, value in setting.items())
        _tell(f"{rival.__name__} {told}, from {threshold}", values, start)


def _tell(name: str, values: dict[str, float], start: float) -> None:
    cells = "".join(f"{value:>16.4f}" for value in values.values())
    print(f"{name:<52}{cells}{time.process_time() - start:>10.0f} s", flush=True)


def _tagger(table: Any, Y: Array, names: list[str]) -> dict[str, float]:
    """Measure the tagger with all its defaults."""
    columns = {name: column for column, name in enumerate(names)}
    tagger, predicted, best = labelrace.Tagger(tags="tags", random_state=0), np.zeros_like(Y), list[list[int]]()
    for start in range(0, len(table), BATCH):
        batch = table.iloc[start : start + BATCH]
        if start:
            for row, chosen in enumerate(tagger.predict(batch), start):
                predicted[row, [columns[tag] for tag in chosen]] = 1
            best += [[columns[tag] for tag, _ in row] for row in tagger.predict_top(batch, 5)]
        tagger.partial_fit(batch)
    return evaluate(Y[BATCH:], predicted[BATCH:], top=padded(best, 5), measures=MEASURES)


def _best_threshold(Y: Array, probabilities: FloatArray) -> tuple[float, dict[str, float]]:
    """Find the threshold with the best example F1, and its measures; the best tag is always given."""
    best = np.argsort(-probabilities, axis=1)[:, :5]
    judged = []
    for threshold in THRESHOLDS:
        predicted = probabilities >= threshold
        np.put_along_axis(predicted, best[:, :1], True, axis=1)
        judged.append((threshold, evaluate(Y, predicted, top=best, measures=MEASURES)))
    return max(judged, key=lambda one: one[1]["example_f1"])


class TfIdf:
    """Words of title and content, hashed, weighted by what was seen before, in rows of length one."""

    def __init__(self, width: int = 2**16) -> None:
        self._hash = HashingVectorizer(n_features=width, alternate_sign=False, norm=None, stop_words="english")
        self._rows, self._frequency = 0, np.zeros(width)

    def transform(self, texts: list[str]) -> SparseMatrix:
        """Turn the next batch into a matrix, and count it."""
        X = scipy.sparse.csr_array(self._hash.transform(texts))
        self._rows += X.shape[0]
        self._frequency += np.bincount(X.indices, minlength=X.shape[1])
        weights = 1.0 + np.log((1.0 + self._rows) / (1.0 + self._frequency))
        X.data = (1.0 + np.log(X.data)) * weights[X.indices]
        return normalize(X)


def sgd(texts: list[str], Y: Array, **setting: Any) -> Iterator[FloatArray]:
    """Yield the probabilities of each batch, before it is learned."""
    features = TfIdf()
    model = MultiOutputClassifier(SGDClassifier(loss="log_loss", random_state=0, **setting))
    for start in range(0, len(texts), BATCH):
        X = features.transform(texts[start : start + BATCH])
        if start:
            scores = np.column_stack([one.decision_function(X) for one in model.estimators_])
            yield 1.0 / (1.0 + np.exp(-scores))
        model.partial_fit(X, Y[start : start + BATCH], classes=[[0, 1]] * Y.shape[1])


def vw(texts: list[str], Y: Array, rate: float, tfidf: bool) -> Iterator[FloatArray]:
    """Yield the probabilities of each batch, before it is learned."""
    features = TfIdf() if tfidf else HashingVectorizer(n_features=2**20, alternate_sign=False, norm=None)
    kind = f"--multilabel_oaa {Y.shape[1]} --loss_function=logistic --link=logistic --probabilities"
    model = vowpal_wabbit(f"{kind} -b 25 -l {rate}")
    for start in range(0, len(texts), BATCH):
        X = features.transform(texts[start : start + BATCH])
        if start:
            # An example that is used again has the scores of before, too: the newest are the last.
            yield np.array([model.predict(line)[-Y.shape[1] :] for line in vowpal_lines(X)])
        for line in vowpal_lines(X, Y[start : start + BATCH]):
            model.learn(line)
    model.finish()


# In a process of its own: the peak of memory is of the whole process.
_LEARNING = """
import sys, labelrace
from labelrace.tables import file_tables
peak = lambda: int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))) / 976.5625
tagger, first = labelrace.Tagger("tags", random_state=0, max_features=2**14), None
for table in file_tables(sys.argv[1], 500):
    first = first or peak()
    tagger.partial_fit(table)
print(f"{peak() - first:.0f} MB more than when it began")
"""


# In a process of its own, too. Writing to ``clear_refs`` resets the peak of memory.
_SAVING = """
import itertools, sys, threading, time, labelrace
path, n_rows = sys.argv[1], int(sys.argv[2])
memory = lambda name: int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith(name)))
rows = [{"body": " ".join(f"w{word}" for word in range(row, row + 40))} for row in range(0, 40 * max(n_rows, 10), 40)]
tagger, done, times = labelrace.load(path), threading.Event(), []
if n_rows:
    tagger.partial_fit([{**row, "tags": "tag-1"} for row in rows])
def predict():
    for row in itertools.cycle(rows):
        tagger.predict([row])
        times.append(time.perf_counter())
        if done.is_set():
            return
thread = threading.Thread(target=predict)
thread.start()
time.sleep(1)
open("/proc/self/clear_refs", "w").write("5")
before, first = memory("VmRSS"), len(times) - 1
tagger.save(path + ".again")
peak = memory("VmHWM")
done.set()
thread.join()
gap = max(two - one for one, two in itertools.pairwise(times[first:]))
print(f"predictions of another thread waited {1000 * gap:.0f} ms at most, {peak / before:.2f} times the memory")
"""


def full_file(n_words: int = 2**18, n_tags: int = 700) -> None:
    """Print size and loading time of the file of a tagger all of whose columns and tags are in use."""
    tagger, rng = labelrace.Tagger(tags="tags", random_state=0, max_features=n_words), np.random.default_rng(0)
    for words in np.array_split(rng.permutation(n_words), 11):
        # Often enough for a word of a long text to get a column.
        texts = [" ".join(f"w{word}" for word in part) for part in np.array_split(words, 500)] * 6
        tagger.partial_fit([{"body": text, "tags": f"tag-{rng.integers(n_tags)}"} for text in texts])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "full.labelrace")
        tagger.save(path)
        shape = tagger.model_.n_features_in_, len(tagger.tags_)
        spent = seconds(lambda: labelrace.load(path))
        weights, size = 4 * shape[0] * shape[1] / 1e6, path.stat().st_size / 1e6
        print(f"{shape[0]} columns, {shape[1]} tags, {weights:.0f} MB of weights: a file of {size:.0f} MB,", end=" ")
        print(f"loaded in {spent:.1f} s")
        del tagger
        for n_rows in (0, 500):
            told = subprocess.run(
                [sys.executable, "-c", _SAVING, path, str(n_rows)], capture_output=True, text=True, check=True
            )
            print(f"saved again after {n_rows} more rows: {told.stdout.strip()}", flush=True)


def memory(megabytes: int = 300) -> None:
    """Print the peak of memory while a small table is learned, and one of some hundred megabytes."""
    rng = np.random.default_rng(0)
    # The r-th word has a frequency of about 1 / r, as in texts.
    words = np.exp(rng.random((20_000, 100)) * np.log(20_000)).astype(int)
    lines = [f"{' '.join(f'w{word}' for word in row)},tag-{row[0] % 50} tag-{row[1] % 50}\n" for row in words.tolist()]
    with tempfile.TemporaryDirectory() as folder:
        for name, times in (("small", 1), ("large", megabytes * 10**6 // sum(map(len, lines)))):
            path = Path(folder, f"{name}.csv")
            with path.open("w") as file:
                file.write("body,tags\n")
                for _ in range(times):
                    file.writelines(lines)
            told = subprocess.run([sys.executable, "-c", _LEARNING, path], capture_output=True, text=True, check=True)
            print(f"learned a table of {path.stat().st_size / 1e6:.0f} MB: {told.stdout.strip()}", flush=True)
