"""How well the tagger tags, with all its defaults, beside two pipelines that are tuned for the very data.

The data are the questions of ``cooking.csv.gz``, in order and in batches of 500, each predicted before it is learned.
The rivals, which get the text without its HTML, are

- ``sgd``: TF-IDF of hashed words, with the document frequencies of the rows so far, and one
  ``SGDClassifier(loss="log_loss")`` against the rest for each tag, by ``partial_fit``;
- ``vw``: Vowpal Wabbit's ``--multilabel_oaa`` with probabilities (``pip install vowpalwabbit``), left out where it is
  not installed.

Each runs with six settings. Both know all tags beforehand, which the tagger does not, and the probability from which a
tag is given is chosen afterwards, by what would have been best: the rivals' figures are the most that they could reach.
Usage: ``python benchmarks/tags_rivals.py cooking.csv.gz``, for about twenty minutes on one core.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import importlib.util
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import normalize

import labelrace
from labelrace.tables.text import strip_html
from labelrace.typing import Array, FloatArray, SparseMatrix

BATCH = 500
THRESHOLDS = (0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)
SGD = [{"alpha": alpha, "average": mean} for alpha in (1e-6, 1e-5, 1e-4) for mean in (False, True)]
VW = [{"rate": rate, "tfidf": tfidf} for rate in (0.1, 0.5, 2.0) for tfidf in (False, True)]


class TfIdf:
    """Words of title and content, hashed, weighted by what was seen before, in rows of length one."""

    def __init__(self, width: int = 2**16) -> None:
        self._hash = HashingVectorizer(n_features=width, alternate_sign=False, norm=None, stop_words="english")
        self._rows, self._frequency = 0, np.zeros(width)

    def __call__(self, texts: list[str]) -> SparseMatrix:
        """Turn the next batch into a matrix, and count it."""
        X = scipy.sparse.csr_array(self._hash.transform(texts))
        self._rows += X.shape[0]
        self._frequency += np.bincount(X.indices, minlength=X.shape[1])
        weights = 1.0 + np.log((1.0 + self._rows) / (1.0 + self._frequency))
        X.data = (1.0 + np.log(X.data)) * weights[X.indices]
        return normalize(X)


def sgd(texts: list[str], Y: Array, settings: dict[str, Any]) -> Iterator[FloatArray]:
    """Yield the probabilities of each batch, before it is learned."""
    features = TfIdf()
    model = MultiOutputClassifier(SGDClassifier(loss="log_loss", random_state=0, **settings))
    for start in range(0, len(texts), BATCH):
        X = features(texts[start : start + BATCH])
        if start:
            scores = np.column_stack([one.decision_function(X) for one in model.estimators_])
            yield 1.0 / (1.0 + np.exp(-scores))
        model.partial_fit(X, Y[start : start + BATCH], classes=[[False, True]] * Y.shape[1])


def vw(texts: list[str], Y: Array, settings: dict[str, Any]) -> Iterator[FloatArray]:
    """Yield the probabilities of each batch, before it is learned."""
    import vowpalwabbit

    features, words = TfIdf(), HashingVectorizer(n_features=2**20, alternate_sign=False, norm=None)
    model = vowpalwabbit.Workspace(
        f"--multilabel_oaa {Y.shape[1]} -b 25 -l {settings['rate']} --loss_function=logistic --link=logistic "
        "--probabilities --quiet"
    )
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        X = scipy.sparse.csr_array(features(batch) if settings["tfidf"] else words.transform(batch))
        lines = [
            "| " + " ".join(f"{column}:{value:.4g}" for column, value in zip(row.indices, row.data, strict=True))
            for row in (X[[place]] for place in range(X.shape[0]))
        ]
        if start:
            # An example that is used again has the scores of before, too: the newest are the last.
            yield np.array([model.predict(line)[-Y.shape[1] :] for line in lines])
        for line, tags in zip(lines, Y[start : start + BATCH], strict=True):
            model.learn(f"{','.join(map(str, np.flatnonzero(tags)))} {line}")
    model.finish()


def measured(Y: Array, predicted: Array, best: Array) -> dict[str, float]:
    """Compute example F, micro F and precision at 1 and 5; ``best`` has the five most likely tags of each row."""
    hits, sizes = (Y & predicted).sum(axis=1), Y.sum(axis=1) + predicted.sum(axis=1)
    right = np.take_along_axis(Y, best, axis=1)
    return {
        "example F": float(np.mean(2 * hits / np.maximum(sizes, 1))),
        "micro F": float(2 * hits.sum() / sizes.sum()),
        "precision at 1": float(right[:, 0].mean()),
        "precision at 5": float(right.mean()),
    }


def judged(Y: Array, probabilities: FloatArray) -> list[tuple[float, dict[str, float]]]:
    """Measure label sets by each threshold; the best tag is always given."""
    best = np.argsort(-probabilities, axis=1)[:, :5]
    found = []
    for threshold in THRESHOLDS:
        predicted = probabilities >= threshold
        np.put_along_axis(predicted, best[:, :1], True, axis=1)
        found.append((threshold, measured(Y, predicted, best)))
    return found


def ours(table: pd.DataFrame, Y: Array, names: list[str]) -> dict[str, float]:
    """Measure the tagger with all its defaults."""
    places = {name: place for place, name in enumerate(names)}
    tagger = labelrace.Tagger(tags="tags", random_state=0)
    predicted, best = np.zeros_like(Y[BATCH:]), list[list[int]]()
    for start in range(0, len(table), BATCH):
        batch = table.iloc[start : start + BATCH]
        if start:
            rows = batch.drop(columns="tags")
            for row, tags in enumerate(tagger.predict(rows), start=start - BATCH):
                predicted[row, [places[tag] for tag in tags]] = True
            best += [[places[tag] for tag, _ in row] for row in tagger.predict_top(rows, 5)]
        tagger.partial_fit(batch)
    return measured(Y[BATCH:], predicted, np.array(best))


def tell(name: str, values: dict[str, float], seconds: float) -> None:
    """Print a line of the table."""
    print(f"{name:<52}" + "".join(f"{value:>16.4f}" for value in values.values()) + f"{seconds:>10.0f} s", flush=True)


def main() -> None:
    """Print a line for the tagger, one for each setting of each rival, and the least that the tagger is ahead."""
    table = pd.read_csv(sys.argv[1], keep_default_na=False)
    sets = [set(tags.split()) for tags in table["tags"]]
    names = sorted(set().union(*sets))
    Y = np.array([[name in tags for name in names] for tags in sets])
    texts = [strip_html(text) for text in table["title"] + " " + table["content"]]
    start = time.process_time()
    tagger = ours(table, Y, names)
    print(" " * 52 + "".join(f"{name:>16}" for name in tagger) + f"{'CPU':>12}")
    tell("labelrace.Tagger(), all defaults", tagger, time.process_time() - start)
    most = dict.fromkeys(tagger, 0.0)
    pairs = [(sgd, settings) for settings in SGD]
    if importlib.util.find_spec("vowpalwabbit"):
        pairs += [(vw, settings) for settings in VW]
    for run, settings in pairs:
        start = time.process_time()
        probabilities = np.concatenate(list(run(texts, Y, settings)))
        seconds = time.process_time() - start
        found = judged(Y[BATCH:], probabilities)
        threshold, values = max(found, key=lambda one: one[1]["example F"])
        told = ", ".join(f"{key}={value}" for key, value in settings.items())
        tell(f"{run.__name__} {told}, from {threshold}", values, seconds)
        # Each measure may have a threshold of its own: the tagger must beat them all by one and the same prediction.
        most = {key: max(most[key], *(one[key] for _, one in found)) for key in most}
    tell("best of all rivals, each measure by itself", most, 0.0)
    ahead = {key: tagger[key] - most[key] for key in most}
    tell("the tagger is ahead by", ahead, 0.0)
    raise SystemExit(0 if min(ahead.values()) > 0 else 1)


if __name__ == "__main__":
    main()
