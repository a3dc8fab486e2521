"""Labels that the rarest features of a row offer, against lists kept in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import labelrace
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.extreme import postings
from labelrace.linear.versioned_rows import VersionedRows

M, N_LABELS = 12, 3000


def batch(rng, n):
    Z = scipy.sparse.csr_array((rng.random((n, M)) < 0.5) * rng.random((n, M)))
    Y = scipy.sparse.lil_array((n, N_LABELS))
    for row in range(n):
        for label in rng.integers(0, 30, rng.integers(0, 4)):
            Y[row, label] = 1.0
    return Z, Y.tocsr()


def begun():
    """Make empty postings of all features: these rows are too few, and too dense, to begin with."""
    return VersionedRows.taking(np.zeros((M, postings.LABELS_PER_FEATURE), np.int32))


def updated(table, Z, precision, Y):
    extra_precision = VersionedRows.taking(np.stack([precision, precision], axis=1))
    return postings.update(table, Z, FeatureKinds.numbers(M), extra_precision, Y)


def by_rarity(Z, row, precision):
    features = Z.indices[Z.indptr[row] : Z.indptr[row + 1]]
    return sorted(features.tolist(), key=lambda feature: (precision[feature], feature))


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_lists_are_those_of_plain_python(seed, sizes):
    rng = np.random.default_rng(seed)
    table, lists = begun(), {feature: [] for feature in range(M)}
    for n in sizes:
        precision = rng.integers(0, 5, M).astype(float)
        Z, Y = batch(rng, n)
        table = updated(table, Z, precision, Y)
        for row in range(n):
            labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist()
            for feature in by_rarity(Z, row, precision)[:8]:
                lists[feature] = (labels + lists[feature])[: postings.LABELS_PER_FEATURE]
    expected = [lists[feature] + [-1] * (postings.LABELS_PER_FEATURE - len(lists[feature])) for feature in range(M)]
    np.testing.assert_array_equal(np.asarray(table) - 1, expected)
    precision = rng.integers(0, 5, M).astype(float)
    Z, _ = batch(rng, 5)
    rows = Z.indptr, Z.indices, Z.data, Z.indices
    for row in range(5):
        offers = postings.labels_from_postings(np.asarray(table), np.stack([precision, precision], axis=1), rows, row)
        known = [feature for feature in by_rarity(Z, row, precision) if precision[feature] > 0][:4]
        wanted = [expected[feature][d] for d in range(postings.LABELS_PER_FEATURE) for feature in known]
        assert [label for label in offers if label >= 0] == [label for label in wanted if label >= 0]


def test_labels_in_another_order_and_features_that_stand_for_others():
    rng = np.random.default_rng(0)
    Z, Y = batch(rng, 20)
    table = updated(begun(), Z, np.ones(M), Y)
    # A new label comes in front of the others.
    labels = np.concatenate([[-1], rng.permutation(N_LABELS)])
    moved = np.asarray(postings.renumbered(table, labels))
    for before, after in zip(np.asarray(table).ravel(), moved.ravel(), strict=True):
        assert after == 0 if before == 0 else labels[after - 1] == before - 1
    np.testing.assert_array_equal(np.asarray(postings.reset(table, np.array([3])))[3], 0)


def test_two_models_offer_labels_by_turns():
    """Also where one of them has met fewer features, or none."""
    lists = np.zeros((3, postings.LABELS_PER_FEATURE), np.int32)
    lists[0, :3], lists[1, :1] = [4, 2, 9], [7]
    other = np.zeros((4, postings.LABELS_PER_FEATURE), np.int32)
    other[0], other[3, :2] = np.arange(11, 11 + postings.LABELS_PER_FEATURE), [5, 6]
    joint = np.asarray(postings.merged(lists, VersionedRows.of(other)))
    assert joint[:2].tolist() == [[4, 11, 2, 12, 9, 13, 14, 15], [7, 0, 0, 0, 0, 0, 0, 0]]
    np.testing.assert_array_equal(joint[2:], other[2:])
    np.testing.assert_array_equal(postings.merged(postings.init(), lists), lists)


def test_few_labels_few_rows_and_common_features_keep_nothing():
    """Once there are postings, rows with common features go on with them."""
    X, Y = stream(200, 0)
    kinds, extra_precision = FeatureKinds.numbers(X.shape[1]), np.ones((X.shape[1], 2))
    extra_precision = VersionedRows.taking(extra_precision)

    def n_lists(table, rows, labels):
        return len(postings.update(table, rows, kinds, extra_precision, labels))

    X = X.astype(np.float32)
    assert n_lists(postings.init(), X, Y) == 2560
    assert n_lists(postings.init(), X.toarray(), Y) == 0
    assert n_lists(postings.init(), X, Y[:, :2000]) == 0
    assert n_lists(postings.init(), X[:5], Y[:5]) == 0
    common = scipy.sparse.csr_array(np.random.default_rng(0).random((200, 2560)) < 0.05).astype(np.float32)
    assert n_lists(postings.init(), common, Y) == 0
    begun = postings.update(postings.init(), X, kinds, extra_precision, Y)
    assert n_lists(begun, common, Y) == 2560


def stream(n, seed):
    """Rows of common words, and of one rare word that names the label."""
    rng = np.random.default_rng(seed)
    named = rng.integers(0, 2500, n)
    words = np.column_stack([2500 + rng.integers(0, 60, (n, 6)), named])
    X = scipy.sparse.csr_array((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, 7)), shape=(n, 2560))
    X.sum_duplicates()
    return X, scipy.sparse.csr_array((np.ones(n), named, np.arange(n + 1)), shape=(n, 2500))


def test_a_label_that_was_seen_once_with_its_word_is_found():
    X, Y = stream(6000, 0)
    model = labelrace.HashedRACEClassifier(max_memory="3MB", random_state=0)
    for start in range(0, 6000, 500):
        model.partial_fit(X[start : start + 500], Y[start : start + 500])
    x, y = stream(400, 1)
    top = model.predict_top(x, 5)
    hits = np.mean([label in {name for name, _ in row} for label, row in zip(y.indices, top, strict=True)])
    # Nine in ten of the labels were seen before; the decoder alone, of 16 codes, finds fewer of them.
    assert hits > 0.8


@pytest.mark.parametrize("rows", [1, 7])
def test_a_model_with_postings_is_saved_whole(tmp_path, rows):
    X, Y = stream(1500, 2)
    model = labelrace.HashedRACEClassifier(max_memory="3MB", random_state=0).partial_fit(X[:1000], Y[:1000])
    model.save(tmp_path / "m")
    loaded = labelrace.load(tmp_path / "m")
    for one in (model, loaded):
        one.partial_fit(X[1000:], Y[1000:])
    assert len(model._fitted.state.postings) == 2560
    assert model.predict_top(X[:rows], 5) == loaded.predict_top(X[:rows], 5)
