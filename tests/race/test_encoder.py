"""The encoder against its definition: ``H = T A + b`` with ``T = 2Y - 1``, hyperplanes by modified Gram-Schmidt."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.race import encoder

SEEDS = st.integers(0, 2**32 - 1)


def gram_schmidt(vectors):
    """Make vectors orthonormal, one after the other, by the modified Gram-Schmidt process."""
    vectors = [np.array(vector, dtype=float) for vector in vectors]
    for i in range(len(vectors)):
        vectors[i] = vectors[i] / np.sqrt(sum(x * x for x in vectors[i]))
        for j in range(i + 1, len(vectors)):
            vectors[j] = vectors[j] - sum(vectors[i] * vectors[j]) * vectors[i]
    return vectors


def naive_encode(A, bias, Y):
    H = np.zeros((len(Y), len(bias)))
    for i, row in enumerate(Y):
        for c in range(len(bias)):
            H[i, c] = sum((1.0 if present else -1.0) * A[j, c] for j, present in enumerate(row)) + bias[c]
    return H


def some_labels(rng, n, n_labels):
    return (rng.random((n, n_labels)) < rng.random()).astype(float)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 9), st.data())
def test_hyperplanes_are_gram_schmidt_of_uniforms(seed, n_labels, data):
    k = data.draw(st.integers(1, n_labels))
    drawn = encoder.draw(n_labels, k, np.random.default_rng(seed))
    uniforms = np.random.default_rng(seed).uniform(-1, 1, size=(n_labels + 1, k))
    expected = gram_schmidt(uniforms.T)
    got = np.vstack([drawn.A, drawn.bias])
    np.testing.assert_allclose(got.T, expected, rtol=0, atol=1e-7)
    np.testing.assert_allclose(got.T @ got, np.eye(k), rtol=0, atol=1e-12)
    assert drawn.A.shape == (n_labels, k)
    assert drawn.bias.shape == (k,)


def test_uniforms_fill_the_range():
    """Of very many labels the columns are uniforms over a common length: flat between bounds around zero."""
    A = encoder.draw(20000, 1, np.random.default_rng(0)).A[:, 0] * np.sqrt(20001 / 3)
    counts, _ = np.histogram(A, bins=4, range=(-1.01, 1.01))
    assert counts.sum() == 20000
    np.testing.assert_allclose(counts, 5000, rtol=0.05)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(0, 6), st.integers(1, 9), st.integers(1, 4))
def test_encode_is_the_definition(seed, n, n_labels, k):
    rng = np.random.default_rng(seed)
    A, bias, Y = rng.normal(size=(n_labels, k)), rng.normal(size=k), some_labels(rng, n, n_labels)
    hyperplanes = encoder.given(A, bias)
    expected = naive_encode(A, bias, Y)
    np.testing.assert_allclose(encoder.encode(hyperplanes, Y), expected, rtol=0, atol=1e-12)
    sparse = encoder.encode(hyperplanes, scipy.sparse.csr_array(Y))
    assert isinstance(sparse, np.ndarray)
    np.testing.assert_allclose(sparse, expected, rtol=0, atol=1e-12)


def test_nothing_given_is_changed(assert_pure):
    rng = np.random.default_rng(0)
    hyperplanes = assert_pure(encoder.given, rng.normal(size=(5, 2)), rng.normal(size=2))
    assert_pure(encoder.encode, hyperplanes, some_labels(rng, 7, 5))


def test_adapting_takes_the_decoder_and_keeps_the_bias():
    rng = np.random.default_rng(1)
    A, bias, beta, Y = rng.normal(size=(6, 3)), rng.normal(size=3), rng.normal(size=(3, 6)), some_labels(rng, 8, 6)
    before = encoder.given(A.copy(), bias)
    adapted = encoder.adapt(before, beta)
    np.testing.assert_array_equal(adapted.A, beta.T)
    np.testing.assert_array_equal(adapted.bias, bias)
    np.testing.assert_allclose(encoder.encode(adapted, Y), naive_encode(beta.T, bias, Y), atol=1e-12)
    np.testing.assert_array_equal(before.A, A)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 6), st.integers(1, 3), st.integers(1, 4))
def test_new_labels_leave_other_rows_alone(seed, n_labels, n_new, k):
    rng = np.random.default_rng(seed)
    A, bias, rows = rng.normal(size=(n_labels, k)), rng.normal(size=k), rng.normal(size=(n_new, k))
    before = encoder.given(A, bias)
    grown = encoder.grow(before, rows)
    Y = some_labels(rng, 9, n_labels)
    absent = np.hstack([Y, np.zeros((9, n_new))])
    np.testing.assert_allclose(encoder.encode(grown, absent), encoder.encode(before, Y), atol=1e-12)
    # The bias takes up the new rows, and the encoder is then one like any other, also where the labels are present.
    Y_all = some_labels(rng, 9, n_labels + n_new)
    A_all, bias_all = np.vstack([A, rows]), bias + sum(rows)
    np.testing.assert_allclose(encoder.encode(grown, Y_all), naive_encode(A_all, bias_all, Y_all), atol=1e-12)
    for got, known in zip(grown[:3], encoder.given(A_all, bias_all)[:3], strict=True):
        np.testing.assert_allclose(got, known, atol=1e-12)
    # Nor do other rows hear of it when the label gets another row.
    others, late = rng.normal(size=(k, n_labels)), rng.normal(size=(k, n_new))
    adapted = encoder.adapt(grown, np.hstack([others, late]))
    expected = encoder.encode(encoder.adapt(before, others), Y)
    np.testing.assert_allclose(encoder.encode(adapted, absent), expected, atol=1e-12)
    np.testing.assert_allclose(adapted.bias, bias + late.sum(axis=1), atol=1e-12)
    assert before.A.shape == (n_labels, k)


@pytest.mark.parametrize(("n_labels", "n_new", "k"), [(10, 4000, 3), (3000, 3000, 6)])
def test_rows_drawn_later_are_of_the_size_of_the_others(n_labels, n_new, k):
    """Orthonormal columns of n labels and a bias have, on average, rows with a squared length of k / (n + 1)."""
    before = encoder.draw(n_labels, k, np.random.default_rng(0))
    rows = encoder.draw_rows(before, np.arange(n_new), np.random.default_rng(1))
    assert rows.shape == (n_new, k)
    assert (rows**2).sum(axis=1).mean() == pytest.approx(k / (n_labels + 1), rel=0.05)
    assert abs(rows.mean()) < 0.1 * rows.std()
    # In whatever order labels come, and however many came before.
    grown = encoder.grow(before, rows[:2])
    again = encoder.draw_rows(grown, np.array([7, 3]), np.random.default_rng(1))
    np.testing.assert_array_equal(again, rows[[7, 3]])
