"""Many sparse labels: no array with a cell for every row and label, nor, for a small batch, for every label."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from labelrace import RACEClassifier

N_ROWS, N_LABELS, N_COMPONENTS, PER_ROW = 2000, 100_000, 17, 5


def sparse_labels(rng, n):
    labels = rng.integers(0, N_LABELS, size=(n, PER_ROW)).ravel()
    rows = np.repeat(np.arange(n), PER_ROW)
    Y = scipy.sparse.csr_array((np.ones(n * PER_ROW), (rows, labels)), shape=(n, N_LABELS))
    Y.data[:] = 1.0
    return Y


def peak_of(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", ["classification", "regression"])
@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
def test_learning_allocates_no_array_of_rows_by_labels(method, encoding):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(N_ROWS, 10)), sparse_labels(rng, N_ROWS)
    model = RACEClassifier(method=method, encoding=encoding, random_state=0)

    def learn():
        model.partial_fit(X, Y)
        model.partial_fit(X, Y)

    # One byte a cell would be 200 MB. The hyperplanes, with what drawing them needs, are 14 MB a few times over.
    assert peak_of(learn) < N_ROWS * N_LABELS / 2
    assert model.decoder_.shape == (N_COMPONENTS, N_LABELS)


def test_small_batch_allocates_no_array_of_all_labels():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(40, 10)), sparse_labels(rng, 40)
    model = RACEClassifier(random_state=0).partial_fit(X, Y)

    def learn():
        for i in range(40):
            model.partial_fit(X[i : i + 1], Y[i : i + 1])

    assert peak_of(learn) < N_LABELS
