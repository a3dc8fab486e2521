"""What every bank promises: targets may be sparse, and what cannot be merged exactly says so."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import SGDClassifier

from labelrace.learners.adapter import Adapter
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD

BANKS = {
    "density": NaiveBayes(),
    "binned": NaiveBayes(numeric="binned"),
    "sgd": SGD(rate=0.01),
    "turned sgd": SGD(rate=0.01, orient_binary=True, shuffle_seed=1, first_epochs=3),
    "ridge": Ridge(),
    "adapter": Adapter(SGDClassifier(random_state=0)),
}


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
@pytest.mark.parametrize("bank", sorted(BANKS))
def test_sparse_targets_are_dense_targets(learn, bank, make):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(90, 2)), rng.integers(0, 2, 90), rng.integers(0, 3, 90)])
    H = (rng.random((90, 3)) < 0.3).astype(float)
    if BANKS[bank].skips_missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    dense, sparse = (
        BANKS[bank].predict(BANKS[bank].derive(learn(BANKS[bank], [0, 0, 2, 3], make(X), targets, [70])), make(X))
        for targets in (H, scipy.sparse.csr_array(H))
    )
    assert isinstance(sparse, np.ndarray)
    np.testing.assert_allclose(sparse, dense, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bank", sorted(BANKS))
def test_unmergeable_banks_say_why(bank):
    state = BANKS[bank].init(np.zeros(2, int), 1)
    mergeable = BANKS[bank].why_unmergeable(state, state) is None
    assert mergeable == (bank in {"density", "ridge"})
    if bank in {"sgd", "adapter"}:
        with pytest.raises(NotImplementedError, match="order of the rows"):
            BANKS[bank].merge(state, state)
