"""RACE on a stream that drifts: test, then train, batch by batch.

Makes a small synthetic stream, lets the paper's four variants learn it, and prints how their example-based F develops.
Halfway, the meaning of the features changes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import labelrace
from labelrace.measures import evaluate
from labelrace.typing import Array

BATCHES, SIZE, FEATURES, TOPICS, LABELS = 24, 200, 30, 6, 60


def stream(seed: int = 0) -> Iterator[tuple[Array, Array]]:
    """Yield batches of features and labels, both governed by a few hidden topics."""
    rng = np.random.default_rng(seed)
    labels_of = rng.random((TOPICS, LABELS)) < 0.15
    for batch in range(BATCHES):
        if batch in (0, BATCHES // 2):
            features_of = rng.normal(size=(TOPICS, FEATURES))
        topics = rng.random((SIZE, TOPICS)) < 0.25
        X = topics @ features_of + 0.7 * rng.normal(size=(SIZE, FEATURES))
        noise = rng.random((SIZE, LABELS)) < 0.01
        yield X, ((topics @ labels_of > 0) ^ noise).astype(np.int8)


def prequential(name: str) -> tuple[list[float], float]:
    """Test and train a model batch by batch; return its example-based F for each batch, and its own time."""
    model = labelrace.make_model(name, random_state=0)
    curve, seconds = [], 0.0
    for number, (X, Y) in enumerate(stream()):
        start = time.perf_counter()
        predicted = model.predict(X) if number else None
        model.partial_fit(X, Y)
        seconds += time.perf_counter() - start
        if predicted is not None:
            curve.append(evaluate(Y, predicted, measures="example_f1")["example_f1"])
    return curve, seconds


def sparkline(values: list[float]) -> str:
    """Draw values between 0 and 1 as a line of blocks."""
    return "".join("▁▂▃▄▅▆▇█"[min(int(8 * value), 7)] for value in values)


def main() -> None:
    """Run all models and print a table."""
    rows = BATCHES * SIZE
    print(f"A synthetic stream: {rows} rows, {FEATURES} features, {LABELS} labels, drift after {rows // 2} rows.\n")
    print(f"{'model':<20}{'example F':>10}{'µs a row':>10}   example F, batch by batch")
    for name in labelrace.model_names():
        curve, seconds = prequential(name)
        print(f"{name:<20}{np.mean(curve):>10.3f}{1e6 * seconds / rows:>10.1f}   {sparkline(curve)}")


if __name__ == "__main__":
    main()
