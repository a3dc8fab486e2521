"""Hashed RACE: many labels in little memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

import labelrace
from labelrace.base import growth
from labelrace.exceptions import LimitError, MergeError
from labelrace.extreme import classifier as hashed
from labelrace.extreme.compress import project
from labelrace.extreme.sizes import sizes_for
from labelrace.linear.rls import RLS
from labelrace.measures import evaluate


def stream(n, n_labels, n_features=300, seed=0):
    """Make rows whose labels each bring three words, frequent ones and rare ones, and some noise."""
    rng = np.random.default_rng(seed)
    labels = np.minimum(rng.zipf(1.4, size=(n, 3)) - 1, n_labels - 1)
    words = (labels[:, :, None] * 37 + np.array([0, 101, 211])) % n_features
    words = np.hstack([words.reshape(n, -1), rng.integers(0, n_features, (n, 4))])
    X, Y = np.zeros((n, n_features)), scipy.sparse.lil_array((n, n_labels), dtype=np.int8)
    np.put_along_axis(X, words, 1.0, axis=1)
    for row, some in enumerate(labels):
        Y[[row], some] = 1
    return scipy.sparse.csr_array(X), scipy.sparse.csr_array(Y)


def fitted(n=1200, n_labels=2500, **parameters):
    X, Y = stream(n, n_labels)
    model = labelrace.HashedRACEClassifier(**{"max_memory": "4MB", "random_state": 0, **parameters})
    for first in range(0, n, 400):
        model.partial_fit(X[first : first + 400], Y[first : first + 400])
    return model, X, Y


def test_memory_is_divided_between_codes_and_table():
    for memory in (3e5, 4e6, 1e8):
        sizes = sizes_for(memory, 1000, 3000)
        assert 0.6 * min(memory, 7e7) < 4 * (sizes.n_components * 4000 + sizes.n_slots) <= memory
    model, *_ = fitted(400)
    state = model._fitted.state
    arrays = [state.learners.weights, state.decoder.sums, state.table]
    assert sum(np.asarray(array).nbytes for array in arrays) <= 4e6
    assert model.n_components_ == sizes_for(4e6, 300, 2500, uses_postings=False).n_components
    assert model.n_slots_ == sizes_for(4e6, 300, 2500, uses_postings=False).n_slots


def test_learns_and_predicts_sets_tops_and_scores_alike():
    model, X, Y = fitted(2400)
    test, truth = X[-300:], Y[-300:].toarray() > 0
    sets = model.predict(test)
    assert scipy.sparse.issparse(sets)
    assert sets.dtype == np.int8
    chosen = sets.toarray() > 0
    assert 2 * (chosen & truth).sum() / (chosen.sum() + truth.sum()) > 0.6
    assert [set(np.flatnonzero(row)) for row in chosen] == model.predict_labels(test)
    tops, likely = model.predict_top(test, 3), model.predict_proba(test)
    assert np.mean([truth[row, top[0][0]] for row, top in enumerate(tops)]) > 0.8
    for row, top in enumerate(tops):
        values = [value for _, value in top]
        assert values == sorted(values, reverse=True)
        np.testing.assert_allclose(likely[row, [label for label, _ in top]], values, atol=1e-6)
        assert likely[row].max() == pytest.approx(values[0], abs=1e-6)
    scores = model.decision_function(test)
    assert ((scores > 1e-6) <= chosen).all()
    assert len(model.predict_top(test[:1], 10_000)[0]) == 2500


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_of_labels_that_features_do_not_tell_are_their_frequencies(seed):
    """After the first rows, too, though the decoder was fitted to them: with their scores it would say up to .8."""
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random_array((800, 60), density=0.1, rng=rng, format="csr")
    Y = (rng.random((800, 40)) < 0.1).astype(float)
    model = labelrace.HashedRACEClassifier(random_state=0).partial_fit(X[:400], Y[:400])
    assert model.fitted.state.counts_left_out.rows == pytest.approx(128)
    likely = model.predict_proba(X[400:])
    assert likely.mean() == pytest.approx(0.1, abs=0.01)
    assert (likely > 0.2).mean() < 0.01
    assert likely.max() < 0.35


def test_no_array_of_rows_and_labels_is_made():
    """400 rows and 200,000 labels: bytes of them alone would take 80 MB."""
    X, Y = stream(400, 200_000)
    model = labelrace.HashedRACEClassifier(max_memory="20MB", random_state=0).partial_fit(X, Y)
    tracemalloc.start()
    model.partial_fit(X, Y)
    model.predict(X)
    model.predict_labels(X)
    model.predict_top(X, 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6


def test_scores_of_all_are_refused_where_they_are_too_many(monkeypatch):
    monkeypatch.setenv("LABELRACE_MAX_SCORES", "1000000")
    model, X, _ = fitted(500)
    assert model.predict_proba(X[:400]).shape == (400, 2500)
    for method in ("predict_proba", "decision_function"):
        with pytest.raises(LimitError, match=f"{method}'s array of 401 rows and 2,500 labels .* use predict_top"):
            getattr(model, method)(X[:401])
    assert model.predict(X).shape == (500, 2500)


def test_new_labels_are_as_if_known_from_the_start():
    """They have their codes already: a model that learns of them late is the one that had them, always absent."""
    X, Y = stream(1200, 600)
    Y = Y.toarray()
    Y[:800, 300:] = 0
    Y = scipy.sparse.csr_array(Y)
    models = [labelrace.HashedRACEClassifier(max_memory="3MB", random_state=0, n_components=32) for _ in range(2)]
    for first in range(0, 1200, 400):
        rows = slice(first, first + 400)
        models[0].partial_fit(X[rows], Y[rows])
        models[1].partial_fit(X[rows], Y[rows] if first == 800 else Y[rows, :300])
    one, other = (model._fitted.state for model in models)
    np.testing.assert_array_equal(np.asarray(one.learners.weights), np.asarray(other.learners.weights))
    np.testing.assert_array_equal(np.asarray(one.decoder.sums), np.asarray(other.decoder.sums))


def test_what_is_read_goes_on_like_what_was_written(tmp_path):
    model, X, Y = fitted(800, label_names=[f"label {index}" for index in range(2500)])
    model.save(tmp_path / "model")
    twin = labelrace.load(tmp_path / "model")
    for one in (model, twin):
        one.partial_fit(X, Y)
    assert model.predict_top(X[:50], 5) == twin.predict_top(X[:50], 5)
    assert model.predict_labels(X[:50]) == twin.predict_labels(X[:50])


def test_missing_labels():
    """Dense or stored in a sparse matrix; of a label that nobody knows, the table learns nothing."""
    X, Y = stream(900, 60)
    Y = Y.toarray().astype(float)
    Y[np.random.default_rng(0).random(Y.shape) < 0.2] = np.nan
    models = []
    for make in (np.asarray, scipy.sparse.csr_array):
        model = labelrace.HashedRACEClassifier(max_memory="1MB", random_state=0)
        models.append(model.partial_fit(X[:300], make(Y[:300])).partial_fit(X[300:], make(Y[300:])))
    one, other = (model.decision_function(X[:100]) for model in models)
    np.testing.assert_allclose(one, other, atol=1e-5)
    known = ~np.isnan(Y[:100])
    assert ((one > 0) == (Y[:100] == 1))[known].mean() > 0.97


def test_a_batch_that_fails_changes_nothing(monkeypatch):
    model, X, Y = fitted(800)
    before = model.predict_top(X[:20], 5)

    def fail(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(hashed.code_decoder, "update", fail)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, Y)
    monkeypatch.undo()
    assert model.predict_top(X[:20], 5) == before
    model.partial_fit(X, Y)
    assert model.predict_top(X[:20], 5) != before


def test_a_stream_that_outgrows_its_memory_keeps_its_quality():
    """The default, moved from a model for each label to codes: hits of the best label before and after."""
    X, Y = stream(4000, 300)
    model = labelrace.LabelRaceClassifier(max_memory=4 * 300 * 300, random_state=0)
    hits, forms = [], []
    for first in range(0, 4000, 200):
        rows = slice(first, first + 200)
        if first:
            tops = model.predict_top(X[rows], 1)
            hits.append(np.mean([Y[first + row, top[0][0]] for row, top in enumerate(tops)]))
            forms.append(model.n_components_)
        if first == 2000:
            # The other features come into use.
            X = scipy.sparse.hstack([X, X], format="csr")
        model.partial_fit(X[rows], Y[rows])
    assert forms[0] is None
    assert forms[-1] is not None
    moved = forms.index(forms[-1])
    assert np.mean(hits[moved : moved + 4]) > 0.9 * np.mean(hits[moved - 4 : moved])


def test_learners_of_labels_become_those_of_pseudo_labels():
    """Linear models of the labels make linear models of any sums of labels."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(700, 12)) * rng.permuted(np.arange(12) < 2 + np.zeros((700, 1)), axis=1)
    Y, A = (X[:, :3] > 0.5).astype(float), rng.normal(size=(3, 2))
    bank = RLS(binary=True)
    state = bank.update(bank.update(bank.init(np.zeros(12, int), 3), X[:600], Y[:600]), X[600:], Y[600:])
    projected = project(state, A)
    got = bank.predict(bank.derive(projected), X)
    np.testing.assert_allclose(got, bank.predict(bank.derive(state), X) @ A, atol=1e-9)
    assert not projected.is_recent_label.any()


def test_what_is_compressed_predicts_what_it_was_made_of():
    """Right after the move and after the next batch, beside a model that stays."""
    X, Y = stream(3000, 400)
    models = [labelrace.LabelRaceClassifier(max_memory=memory, random_state=0) for memory in ("1GB", 4 * 300 * 400)]
    for first in range(0, 2400, 200):
        for model in models:
            model.partial_fit(X[first : first + 200], Y[first : first + 200])
    other = scipy.sparse.hstack([X, X], format="csr")
    for first in range(2400, 2800, 200):
        rows, test = slice(first, first + 200), slice(first + 200, first + 400)
        truth = Y[test].toarray()
        assert models[1].n_components_ is None if first == 2400 else models[1].n_components_ > 0
        stays, moves = (hits(model.partial_fit(other[rows], Y[rows]), other[test], truth) for model in models)
        assert moves > stays - 0.03


@pytest.mark.parametrize("given", ["many", 0, 1.5])
def test_wrong_numbers_of_codes(given):
    with pytest.raises(ValueError, match="n_components must be a whole number of at least 1"):
        labelrace.HashedRACEClassifier(n_components=given).fit(*stream(20, 5))


def test_rows_unlike_those_of_one_code_have_scores_in_bounds():
    """Where all codes learned are the same, nothing is known of others: scores are not what round-off makes of them."""
    X = (np.random.default_rng(0).random((2, 5)) < 0.2).astype(float)
    model = labelrace.HashedRACEClassifier(random_state=0).partial_fit(X, np.ones((2, 12)))
    assert np.abs(model.decision_function(np.vstack([np.eye(5), -np.eye(5)]))).max() < 3


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 20])
def test_after_few_rows_a_batch_is_predicted_as_its_rows_are(n_rows):
    """Codes are next to 0 then, and a penalty relative to them alone let round-off decide: scores were 30 apart."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(n_rows, 3)), (rng.random((n_rows, 4)) < 0.4).astype(int)
        model = labelrace.make_model("race-hashed", max_memory="30kB").fit(X, Y)
        asked = rng.normal(size=(12, 3))
        scores = model.decision_function(asked)
        assert np.abs(scores).max() < 10
        one_by_one = np.vstack([model.decision_function(row[None]) for row in asked])
        np.testing.assert_allclose(one_by_one, scores, atol=1e-5)


def hits(model, X, Y):
    """Measure how often the best label is true."""
    return np.mean([Y[row, top[0][0]] for row, top in enumerate(model.predict_top(X, 1))])


@pytest.mark.parametrize("kind", ["race-hashed", "race"])
def test_merged_models_know_what_both_learned(kind):
    """The decoder's sums are those of both; each alone has learned half of the rows."""
    X, Y = stream(3000, 600)
    halves = [labelrace.make_model(kind, max_memory="700kB", random_state=0, n_components=32) for _ in range(2)]
    for index, model in enumerate(halves):
        for first in range(500 * index, 2800, 1000):
            model.partial_fit(X[first : first + 500], Y[first : first + 500])
    one, other = halves
    alone = [hits(model, X[2500:], Y[2500:].toarray()) for model in halves]
    states = [one._fitted.state, other._fitted.state]
    sums = [np.asarray(state.decoder.sums)[:, :-1] * state.decoder.scale for state in states]
    rows = sum(state.decoder.rows for state in states)
    before = other.predict_top(X[:5], 3)
    one.merge(other)
    assert other.predict_top(X[:5], 3) == before
    joint = one._fitted.state
    joint_sums = np.asarray(joint.decoder.sums)[:, :-1]
    np.testing.assert_allclose(joint_sums, joint.decoder.rows / rows * sum(sums), atol=1e-4)
    assert hits(one, X[2500:], Y[2500:].toarray()) > max(alone) - 0.02
    one.partial_fit(X[2500:], Y[2500:])


def test_merging_by_name_and_what_is_refused():
    X, Y = stream(1200, 60)
    names = [f"label {index}" for index in range(60)]
    models = []
    for own in (names, [*names[:50], *(f"other {index}" for index in range(10))], names[::-1]):
        model = labelrace.HashedRACEClassifier(max_memory="1MB", random_state=0, n_components=16, label_names=own)
        models.append(model.partial_fit(X[:600], Y[:600]).partial_fit(X[600:], Y[600:]))
    one, two, reverse = models
    for model in models[1:]:
        model.set_params(label_names=names)
        model._fitted.parameters["label_names"] = names
    with pytest.raises(MergeError, match="labels have different numbers"):
        one.merge(reverse)
    one.merge(two)
    assert list(one.label_names_) == [*names, *(f"other {index}" for index in range(10))]
    assert one.predict_top(X[:5], 2)
    other = labelrace.HashedRACEClassifier(max_memory="2MB", random_state=0).partial_fit(X[:600], Y[:600])
    with pytest.raises(MergeError, match="parameters differ"):
        labelrace.HashedRACEClassifier(max_memory="1MB", random_state=0).partial_fit(X[:600], Y[:600]).merge(other)


def test_a_model_in_another_order_predicts_the_same_but_for_its_table():
    """Its learners, decoder and postings follow labels and features; where nothing moves, the table stays, too."""
    X, Y = stream(900, 2500, n_features=4000)
    model = labelrace.HashedRACEClassifier(max_memory="4MB", random_state=0).partial_fit(X, Y)
    algorithm, state = model._fitted.algorithm, model._fitted.state
    state = state._replace(table=hashed.residual_table.init(len(state.table)))
    rng = np.random.default_rng(0)
    labels, features = rng.permutation(2500), rng.permutation(4000)
    moved = algorithm.take(state, growth.to_reorder(state, features, l=labels))
    expected, likely = algorithm.predict_best(algorithm.derive(state), X[:50], 5)
    found, of_moved = algorithm.predict_best(algorithm.derive(moved), X[:50][:, features], 5)
    np.testing.assert_allclose(of_moved, likely, atol=1e-4)
    assert (labels[found] == expected).mean() > 0.95
    full = state._replace(table=model._fitted.state.table)
    grown = algorithm.take(full, growth.Moves({"l": growth.longer(2500, 2600)}))
    assert grown.table is full.table
    assert len(grown.decoder.sums) == 2600
    assert not np.asarray(algorithm.take(full, growth.to_reorder(full, features)).table).any()


def documents(n, seed, skew, n_labels=2500, n_features=600):
    """Make rows of some 80 of 600 words, of which each label has a dozen; low labels are frequent."""
    rng = np.random.default_rng(seed)
    words_of_labels = np.random.default_rng(0).integers(0, n_features, (n_labels, 12))
    labels = (n_labels * rng.random((n, 4)) ** skew).astype(int)
    words = np.hstack([words_of_labels[labels].reshape(n, -1), rng.integers(0, n_features, (n, 40))])
    X, Y = np.zeros((n, n_features)), np.zeros((n, n_labels), np.int8)
    np.put_along_axis(X, words, 1.0, axis=1)
    np.put_along_axis(Y, labels, 1, axis=1)
    return scipy.sparse.csr_array(X), scipy.sparse.csr_array(Y)


@pytest.mark.slow
@pytest.mark.parametrize(("skew", "kept"), [(4.0, 0.75), (1.5, 0.4)])
def test_documents_of_common_words_in_a_fourth_of_the_memory(skew, kept):
    """Words that are in one of eight documents name no label: the decoder finds the candidates, and more of them.

    Labels have nothing in common here: where they are about equally frequent, half of the hits are lost.
    """
    X, Y = documents(6000, 1, skew)
    x, y = documents(500, 2, skew)
    hits = []
    for memory in (6e6, 1.5e6):
        model = labelrace.make_model("race", max_memory=memory, random_state=0)
        for first in range(0, 6000, 500):
            model.partial_fit(X[first : first + 500], Y[first : first + 500])
        hits.append(np.mean([[y[row, label] for label, _ in top] for row, top in enumerate(model.predict_top(x, 3))]))
    assert model.n_components_ is not None
    assert len(model._fitted.state.postings) == 0
    assert hits[1] > kept * hits[0]


@pytest.mark.parametrize(("n_words", "n_signatures"), [(5, 1), (30, 1), (30, 3), (80, 3)])
def test_words_that_only_come_together_cost_nothing(n_words, n_signatures):
    """A signature under each text, for instance: one alone is the intercept's."""
    rng = np.random.default_rng(0)
    Y = (rng.random((3000, 12)) < 0.15).astype(int)
    X = (np.repeat(Y, 10, axis=1) & (rng.random((3000, 120)) < 0.3)) | (rng.random((3000, 120)) < 0.02)
    signatures, f1 = rng.integers(0, n_signatures, 3000), []
    for columns in (X, np.hstack([X, np.repeat(np.eye(n_signatures)[signatures], n_words, axis=1)])):
        model, rows = (
            labelrace.HashedRACEClassifier(max_memory="1MB", random_state=0),
            scipy.sparse.csr_array(columns * 1.0),
        )
        for start in range(0, 2500, 250):
            model.partial_fit(rows[start : start + 250], Y[start : start + 250])
        f1.append(evaluate(Y[2500:], model.predict(rows[2500:]), measures="micro_f1")["micro_f1"])
    assert f1[1] > f1[0] - 0.02 > 0.8
