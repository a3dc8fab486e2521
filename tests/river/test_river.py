"""The facade for River."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from helpers import interrupts
from helpers.models import MODELS
from sklearn.linear_model import Perceptron

import labelrace
from labelrace import LabelRaceClassifier, RACEClassifier
from labelrace.exceptions import DivergenceError, GrowthError
from labelrace.streams.synthetic import SyntheticStream

river = pytest.importorskip("river", reason="the extra 'river' is not installed")

from river import checks, compose, evaluate, metrics, preprocessing  # noqa: E402

from labelrace.river import RiverClassifier  # noqa: E402

ONLINE = [name for name in MODELS if labelrace.make_model(name).is_online]
FEATURES = [f"f{i}" for i in range(6)]
LABELS = list("abcde")


@pytest.fixture(scope="module")
def arrays():
    X, Y = next(SyntheticStream(n_rows=120, n_features=6, n_labels=5, seed=1).batches(120))
    return X, Y.toarray().astype(float)


@pytest.fixture(scope="module")
def stream(arrays):
    X, Y = arrays
    return list(zip(named(X, FEATURES), named(Y > 0, LABELS), strict=True))


def named(matrix, names):
    return [dict(zip(names, row, strict=True)) for row in matrix.tolist()]


def taught(stream, model="race", batch_size=16, seed=0):
    learner = RiverClassifier(model, batch_size, seed)
    for x, y in stream:
        learner.learn_one(x, y)
    return learner


def probabilities(model, stream):
    return np.array([[likely[True] for likely in model.predict_proba_one(x).values()] for x, _ in stream])


def assert_alike(one, other, stream):
    np.testing.assert_allclose(probabilities(one, stream), probabilities(other, stream), atol=1e-9)
    assert [one.predict_one(x) for x, _ in stream] == [other.predict_one(x) for x, _ in stream]


class Music:
    """Stands in for River's dataset of that name, which it would download: as many features and labels."""

    def take(self, n_rows):
        X, Y = next(SyntheticStream(n_rows=n_rows, n_features=72, n_labels=6, seed=0).batches(n_rows))
        yield from zip(named(X, [f"f{i}" for i in range(72)]), named(Y.toarray() > 0, "abcdef"), strict=True)


@pytest.mark.parametrize("name", ["race", "obr", "race-cls-fixed", "race-reg-adaptive", "oecc", "negative"])
def test_rivers_own_checks(name, monkeypatch):
    monkeypatch.setattr("river.datasets.Music", Music)
    checks.check_estimator(RiverClassifier(name))
    assert RiverClassifier(name)._unit_test_skips() == set()


@pytest.mark.parametrize("batch_size", [1, 16])
@pytest.mark.parametrize("name", ONLINE)
def test_is_the_classifier_that_learns_the_same_batches(arrays, stream, name, batch_size):
    X, Y = arrays
    model = RiverClassifier(name, batch_size, seed=0)
    classifier = labelrace.make_model(name)
    if "random_state" in classifier.get_params():
        classifier.set_params(random_state=0)
    tested = slice(64, 72)
    for n_rows, (x, y) in enumerate(stream[:64], start=1):
        model.learn_one(x, y)
        if n_rows % batch_size == 0:
            classifier.partial_fit(X[n_rows - batch_size : n_rows], Y[n_rows - batch_size : n_rows])
        if n_rows in (1, 2, 16, 32, 64) and n_rows % batch_size == 0:
            predicted = np.array([list(model.predict_one(x).values()) for x, _ in stream[tested]])
            # Row by row, as a product of many rows may be rounded otherwise, which decides ties.
            np.testing.assert_array_equal(predicted, np.vstack([classifier.predict(row[None]) for row in X[tested]]))
            # Probabilities rise in steps, which enlarge the rounding of scores in single precision.
            likely = np.vstack([classifier.predict_proba(row[None]) for row in X[tested]])
            np.testing.assert_allclose(probabilities(model, stream[tested]), likely, atol=1e-3)


@pytest.mark.parametrize("n_rows", [1, 2, 4, 8, 16])
def test_the_first_batch_is_learned_as_it_comes(stream, n_rows):
    """Its rows are learned when they have doubled, as one batch; those in between wait."""
    model = taught(stream[:n_rows])
    whole = taught(stream[:n_rows], batch_size=n_rows)
    assert_alike(model, whole, stream[50:60])
    if 1 < n_rows < 16:
        model.learn_one(*stream[n_rows])
        assert_alike(model, whole, stream[50:60])


def test_the_newest_rows_wait_until_flushed(stream):
    model, before = taught(stream[:40]), taught(stream[:32])
    assert_alike(model, before, stream[50:60])
    model.flush()
    before.classifier.partial_fit(*(pd.DataFrame(part) for part in zip(*stream[32:40], strict=True)))
    assert_alike(model, before, stream[50:60])
    model.flush()
    assert_alike(model, before, stream[50:60])


def test_flushing_completes_nothing_in_the_first_batch(stream):
    model = RiverClassifier(batch_size=16, seed=0)
    for index, (x, y) in enumerate(stream[:60]):
        model.learn_one(x, y)
        if index in (2, 10):
            model.flush()
    # Learned at 1, 2, 3 (flushed), 6, 11 (flushed) and 16 rows: the first batch, as if nothing had happened.
    assert_alike(model, taught(stream[:60]), stream[60:70])


def test_nothing_is_predicted_before_something_is_learned(stream):
    model = RiverClassifier()
    x, frame = stream[0][0], pd.DataFrame([x for x, _ in stream[:3]])
    assert model.predict_one(x) == {}
    assert model.predict_proba_one(x) == {}
    assert model.predict_many(frame).shape == model.predict_proba_many(frame).shape == (3, 0)


def test_what_is_predicted_is_what_river_says(stream):
    model = taught(stream)
    x = stream[0][0]
    predicted, likely = model.predict_one(x), model.predict_proba_one(x)
    assert list(predicted) == list(likely) == LABELS
    assert {type(value) for value in predicted.values()} == {bool}
    assert all(set(of_label) == {False, True} for of_label in likely.values())
    assert all(of_label[False] + of_label[True] == pytest.approx(1) for of_label in likely.values())


@pytest.mark.parametrize("inner", [metrics.Jaccard(), metrics.F1()])
@pytest.mark.parametrize("average", ["MicroAverage", "MacroAverage", "SampleAverage", "PerOutput"])
def test_progressive_validation(stream, average, inner):
    metric = getattr(metrics.multioutput, average)(inner)
    model = preprocessing.StandardScaler() | RiverClassifier(seed=0, batch_size=8)
    score = evaluate.progressive_val_score(stream, model, metric).get()
    assert average == "PerOutput" or score > 0.2


def test_progressive_validation_by_hand(stream):
    model, hits, metric = RiverClassifier(seed=0, batch_size=8), [], metrics.multioutput.ExactMatch()
    for index, (x, y) in enumerate(stream):
        if index:
            hits.append(model.predict_one(x) == y)
        model.learn_one(x, y)
    found = evaluate.progressive_val_score(stream, RiverClassifier(seed=0, batch_size=8), metric).get()
    assert found == pytest.approx(np.mean(hits))


def test_metrics_may_ask_for_labels_that_are_new(stream):
    grown = [*stream[:20], *((x, {**y, "new": True}) for x, y in stream[20:])]
    metric = metrics.multioutput.MicroAverage(metrics.Recall())
    evaluate.progressive_val_score(grown, RiverClassifier(seed=0), metric)
    model = taught(stream[:20])
    assert model.predict_one({})["new"] is False
    assert model.predict_proba_one({})["new"] == {False: 1.0, True: 0.0}
    assert "new" not in model.predict_one({})


def test_sets_and_dicts_of_labels(stream):
    sets = [(x, {label for label, present in y.items() if present}) for x, y in stream]
    lists = [(x, [label for label, present in reversed(y.items()) if present]) for x, y in stream]
    first = (stream[0][0], dict.fromkeys(LABELS, True))
    assert_alike(taught([first, *stream]), taught([first, *sets]), stream[:10])
    assert_alike(taught([first, *stream]), taught([first, *lists]), stream[:10])


@pytest.mark.parametrize("name", ONLINE)
def test_labels_and_features_appear(stream, name):
    early = [({f: x[f] for f in FEATURES[:3]}, {label: y[label] for label in "ab"}) for x, y in stream[:32]]
    model = taught(early, name)
    assert list(model.predict_one(stream[50][0])) == ["a", "b"]
    model.learn_one(*stream[32])
    # They are known now, but nothing of them has been learned.
    assert list(model.predict_one(stream[50][0])) == LABELS
    assert not any(model.predict_one(stream[50][0])[label] for label in "cde")
    assert list(model.predict_many(pd.DataFrame([stream[50][0]])).columns) == LABELS
    for x, y in stream[33:]:
        model.learn_one(x, y)
    assert list(model.classifier.feature_names_in_) == FEATURES
    assert list(model.classifier.label_names_) == LABELS
    assert np.isfinite(probabilities(model, stream)).all()


def test_a_model_that_cannot_grow_says_so_at_once(stream):
    model = taught(stream[:16], RACEClassifier(learner=Perceptron()))
    before = [model.predict_one(x) for x, _ in stream[:20]]
    with pytest.raises(GrowthError, match=r"The feature 'g' is new, but RACEClassifier cannot take new ones"):
        model.learn_one({"f0": 1.0, "g": 2.0}, {"a"})
    for x, y in stream[:16]:
        model.learn_one(x, y)
    assert list(model.predict_one(stream[0][0])) == list(before[0]) == LABELS


def test_a_label_too_many_is_refused_at_once(stream, monkeypatch):
    monkeypatch.setattr("labelrace.base.algorithm._MOST_PAIRED", 5)
    model = taught(stream[:16], "occ")
    with pytest.raises(ValueError, match="use at most 5"):
        model.learn_one(stream[0][0], {"a", "new"})
    assert list(model.predict_one(stream[0][0])) == LABELS


def test_text_becomes_a_feature_of_its_own(stream):
    colours = ["red", "green", "7"]
    spelled = [({**x, f"c={colours[i % 3]}": 1.0}, y) for i, (x, y) in enumerate(stream)]
    text = [({**x, "c": colours[i % 3]}, y) for i, (x, y) in enumerate(stream)]
    one, other = taught(text), taught(spelled)
    assert {"c=red", "c=green", "c=7"} <= set(one.classifier.feature_names_in_)
    assert [one.predict_one(x) for x, _ in text] == [other.predict_one(x) for x, _ in spelled]


def test_text_where_numbers_were_is_not_a_number(stream):
    model = taught(stream[:32])
    assert model.predict_proba_one({**stream[0][0], "f0": "1.5"}) == model.predict_proba_one(
        {name: value for name, value in stream[0][0].items() if name != "f0"}
    )


def test_none_is_a_missing_value(stream):
    gaps = [({**x, "f1": None} if i % 3 == 0 else x, y) for i, (x, y) in enumerate(stream)]
    nans = [({**x, "f1": np.nan} if i % 3 == 0 else x, y) for i, (x, y) in enumerate(stream)]
    assert_alike(taught(gaps), taught(nans), gaps[:10])


def test_none_is_a_label_that_is_not_known(arrays, stream):
    X, Y = arrays
    unknown = [(x, {**y, "c": None}) for x, y in stream[:32]]
    Y = Y[:32].copy()
    Y[:, 2] = np.nan
    classifier = LabelRaceClassifier(random_state=0).partial_fit(X[:16], Y[:16]).partial_fit(X[16:32], Y[16:])
    np.testing.assert_allclose(probabilities(taught(unknown), stream[:5]), classifier.predict_proba(X[:5]), atol=1e-5)
    with pytest.raises(ValueError, match=r"got None as 'c'.*not known; 'race' can"):
        taught(unknown, "obr")


def test_the_order_of_keys_does_not_matter(stream):
    rng = np.random.default_rng(0)

    def shuffled(row):
        return {name: row[name] for name in rng.permutation(list(row)).tolist()}

    other = [(shuffled(x), shuffled(y)) for x, y in stream]
    assert_alike(taught(stream), taught(other), stream[:10])
    assert taught(stream).predict_one(stream[0][0]) == taught(stream).predict_one(shuffled(stream[0][0]))


def test_features_that_are_not_there_are_zero(stream):
    sparse = [({f: v for f, v in x.items() if v > 0.2}, y) for x, y in stream]
    zeros = [({f: v if v > 0.2 else 0.0 for f, v in x.items()}, y) for x, y in stream]
    first = stream[0]
    assert_alike(taught([first, *sparse]), taught([first, *zeros]), zeros[:10])
    assert taught(stream).predict_one({**sparse[3][0], "unknown": 5}) == taught(stream).predict_one(zeros[3][0])


def test_many_words(stream):
    """More columns than are worth filling with zeros."""
    rng = np.random.default_rng(0)
    words = [({f"w{j:04d}": 1.0 for j in sorted(rng.choice(2000, 12, replace=False))}, y) for _, y in stream]
    vocabulary = sorted({word for x, _ in words for word in x})
    X = np.array([[x.get(word, 0.0) for word in vocabulary] for x, _ in words])
    first = (dict.fromkeys(vocabulary, 0.0), dict.fromkeys(LABELS, False))
    Y = np.array([list(y.values()) for _, y in [first, *words]], dtype=float)
    model, classifier = taught([first, *words][:64]), labelrace.make_model("race", random_state=0)
    for start in range(0, 64, 16):
        classifier.partial_fit(np.vstack([0 * X[:1], X])[start : start + 16], Y[start : start + 16])
    np.testing.assert_allclose(probabilities(model, words[80:90]), classifier.predict_proba(X[80:90]), atol=1e-5)


@pytest.mark.parametrize("chunk", [7, 16, 120])
@pytest.mark.parametrize("as_frame", [True, False])
def test_many_rows_are_learned_as_one_after_the_other(stream, chunk, as_frame):
    model = RiverClassifier(batch_size=16, seed=0)
    X, Y = (pd.DataFrame(list(part)) for part in zip(*stream, strict=True))
    for start in range(0, len(X), chunk):
        y = Y[start : start + chunk]
        model.learn_many(
            X[start : start + chunk], y if as_frame else pd.Series([y for _, y in stream[start:]][: len(y)])
        )
    assert_alike(model, taught(stream), stream[:10])


def test_many_rows_are_predicted_as_one_after_the_other(stream):
    model = taught(stream)
    X = pd.DataFrame([x for x, _ in stream[:20]], index=range(100, 120))
    predicted, likely = model.predict_many(X), model.predict_proba_many(X)
    assert predicted.to_dict("records") == [model.predict_one(x) for x, _ in stream[:20]]
    np.testing.assert_allclose(likely.to_numpy(), probabilities(model, stream[:20]), atol=1e-5)
    assert list(likely.index) == list(predicted.index) == list(range(100, 120))
    assert set(predicted.dtypes) == {np.dtype(bool)}


def test_rows_of_x_and_y_must_be_as_many(stream):
    with pytest.raises(ValueError, match="same number of rows, got 2 and 1"):
        RiverClassifier().learn_many(pd.DataFrame([x for x, _ in stream[:2]]), [{"a"}])


def test_a_seed_makes_it_deterministic(stream):
    many = [(x, {f"l{i:03d}": i in (index % 200, 3) for i in range(200)}) for index, (x, _) in enumerate(stream)]
    assert_alike(taught(many, seed=3), taught(many, seed=3), stream[:5])
    one, other = (taught(many, RACEClassifier(n_components=8), seed=seed).classifier.encoder_ for seed in (3, 4))
    assert not np.allclose(one, other)


def test_names_may_be_anything_hashable(stream):
    numbered = [(dict(enumerate(x.values())), dict(enumerate(y.values()))) for x, y in stream]
    model = taught(numbered)
    assert_alike(model, model, numbered[:3])
    assert list(model.predict_one(numbered[0][0])) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"The name '1' of a feature is, as text, the name of another"):
        model.learn_one({1: 2.0, "1": 3.0}, {0})


@pytest.mark.parametrize(("x", "y", "message"), [
    ({"f0": [1, 2]}, {"a"}, r"x must hold .* got \[1, 2\] as 'f0'"),
    ({"f0": np.inf}, {"a"}, "infinity"),
    ([1.0, 2.0], {"a"}, "x must be a dict.*list"),
    ({"f0": 1.0}, "a", "y must be a dict.*set of labels, but it is 'a'"),
    ({"f0": 1.0}, {"a": 0.5}, "got 0.5 as 'a'"),
    ({"f0": 1.0}, {"a": [1]}, r"got \[1\] as 'a'"),
    ({"f0": 10**400}, {"a"}, "x must hold .* got 1000"),
])  # fmt: skip
def test_bad_rows_are_refused_before_anything_changes(stream, x, y, message):
    model = taught(stream[:20])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.learn_one(x, y)
    assert pickle.dumps(model) == before


def test_a_row_that_cannot_be_learned_is_left_out(stream):
    model = taught(stream[:32])
    for x, y in stream[32:47]:
        model.learn_one(x, y)
    with pytest.raises(FloatingPointError):
        model.learn_one({"f0": 1e300}, {"a"})
    twin = taught(stream[:47])
    twin.flush()
    assert_alike(model, twin, stream[:5])
    for x, y in stream[:16]:
        model.learn_one(x, y)
        twin.learn_one(x, y)
    assert_alike(model, twin, stream[:5])


def test_rows_before_the_first_label_wait(stream):
    bare = [(x, set()) for x, _ in stream[:3]]
    model = taught(bare)
    assert model.predict_one(stream[0][0]) == {}
    for x, y in stream[3:16]:
        model.learn_one(x, y)
    assert_alike(model, taught([*[(x, dict.fromkeys(LABELS, False)) for x, _ in bare], *stream[3:16]]), stream[:5])


def test_rows_that_never_have_labels_do_not_pile_up(stream):
    model = RiverClassifier(batch_size=4)
    for x, _ in stream:
        model.learn_one(x, set())
    assert len(model._pending) == 4


def test_label_names_that_are_given_come_first(stream):
    model = taught(stream, LabelRaceClassifier(label_names=["e", "z", "a"]))
    assert list(model.predict_one(stream[0][0])) == ["e", "z", "a", "b", "c", "d"]
    plain = taught(stream)
    x = stream[0][0]
    assert {label: model.predict_one(x)[label] for label in LABELS} == plain.predict_one(x)


@pytest.mark.parametrize(("parameters", "message"), [
    ({"model": "nothing"}, "no model 'nothing'"),
    ({"model": "race-offline"}, "'race-offline'.*all data at once"),
    ({"model": Perceptron()}, "must be a model's name or a classifier of labelrace"),
    ({"batch_size": 0}, "batch_size"),
])  # fmt: skip
def test_wrong_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        RiverClassifier(**parameters)


def test_a_classifier_is_copied_and_must_be_new(stream):
    classifier = LabelRaceClassifier(optimise="example_f1", random_state=5)
    model = taught(stream, classifier, seed=None)
    assert not classifier.is_fitted
    assert model.classifier.get_params() == classifier.get_params()
    assert taught(stream, classifier, seed=7).classifier.random_state == 7
    with pytest.raises(ValueError, match="learned anything yet"):
        RiverClassifier(model.classifier)


def test_clones_have_the_parameters_and_nothing_learned(stream):
    model = taught(stream, LabelRaceClassifier(optimise="example_f1"), batch_size=5, seed=3)
    copy = model.clone()
    assert (copy.batch_size, copy.seed, copy.model.optimise) == (5, 3, "example_f1")
    assert copy.predict_one(stream[0][0]) == {}
    assert model.clone(include_attributes=True).predict_one(stream[0][0]) == model.predict_one(stream[0][0])


def test_pickled_while_rows_wait(stream):
    model = taught(stream[:40])
    again = pickle.loads(pickle.dumps(model))
    for x, y in stream[40:60]:
        model.learn_one(x, y)
        again.learn_one(x, y)
    assert_alike(model, again, stream[:5])


def test_what_was_learned_is_a_classifier_with_names(stream, tmp_path):
    model = taught(stream)
    model.classifier.save(tmp_path / "model")
    loaded = labelrace.load(tmp_path / "model")
    x = stream[0][0]
    assert dict(zip(loaded.label_names_, loaded.predict([x])[0], strict=True)) == model.predict_one(x)


def test_works_at_the_end_of_a_pipeline(stream):
    model = compose.Select(*FEATURES[:4]) | preprocessing.StandardScaler() | RiverClassifier(seed=0)
    X, Y = (pd.DataFrame(list(part)) for part in zip(*stream, strict=True))
    model.learn_many(X, Y)
    assert model.predict_many(X).shape == Y.shape
    assert set(model.predict_one(stream[0][0])) == set(LABELS)


def test_river_is_imported_here_only_and_without_it_the_error_names_the_extra():
    before = "import sys, labelrace.base.registry, labelrace.evaluation; assert 'river' not in sys.modules"
    code = f"{before}; sys.modules['river'] = None; import labelrace.river"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'labelrace[river]'" in run.stderr


@pytest.mark.parametrize("first", [True, False])
def test_a_row_that_cannot_be_learned_costs_that_row_alone(first):
    """Where it is in the first batch or in a later one; the error names it, and the others are learned."""
    model, twin = (RiverClassifier("obr", batch_size=8) for _ in range(2))
    at = 5 if first else 21
    for i in range(1, 33):
        row, labels = {"a": float(i % 5), "b": float(i % 3)}, {"x"} if i % 2 else {"y"}
        if i == at:
            model.learn_one({**row, "a": 1e200}, labels)
            continue
        twin.learn_one(row, labels)
        if i == (8 if first else 24):
            with pytest.raises(
                DivergenceError, match=rf"Row {at} cannot be learned, and is left out: X must hold numbers"
            ):
                model.learn_one(row, labels)
        else:
            model.learn_one(row, labels)
    for one in (model, twin):
        one.flush()
    assert model.classifier._fitted.state.learners.rows[-1] == twin.classifier._fitted.state.learners.rows[-1] == 31
    asked = {"a": 2.0, "b": 1.0}
    found, expected = (one.predict_proba_one(asked)["x"][True] for one in (model, twin))
    assert found == pytest.approx(expected)


def test_several_rows_that_cannot_be_learned():
    model = RiverClassifier("obr", batch_size=4)
    for i in range(3):
        model.learn_one({"a": float(i)}, {"x"} if i else {"y"})
    model.learn_one({"a": 3.0}, {"x"})
    for _ in range(2):
        model.learn_one({"a": 1e200}, {"x"})
    with pytest.raises(DivergenceError, match=r"Row 5 cannot be learned.*Nor can 1 others"):
        model.flush()
    assert model.classifier._fitted.state.learners.rows[-1] == 4
    model.flush()


def test_a_row_that_cannot_be_learned_does_not_end_many():
    model, twin = (RiverClassifier("obr", batch_size=4) for _ in range(2))
    X, labels = pd.DataFrame({"a": np.arange(12) % 3 * 1.0}), [{"x"} if i % 2 else {"y"} for i in range(12)]
    wrong = X.assign(a=X["a"].where(X.index != 5, np.inf))
    with pytest.raises(ValueError, match="X contains infinity"):
        model.learn_many(wrong, labels)
    twin.learn_many(X.drop(index=5), [y for i, y in enumerate(labels) if i != 5])
    for one in (model, twin):
        one.flush()
    assert model.predict_proba_one({"a": 1.0}) == twin.predict_proba_one({"a": 1.0})


def test_an_interrupt_leaves_rows_learned_or_pending():
    made = RiverClassifier("obr", batch_size=4)
    for i in range(11):
        made.learn_one({"a": float(i % 3)}, {"x"} if i % 2 else {"y"})

    def check(model):
        n_learned = int(model.classifier._fitted.state.learners.rows[-1])
        assert (n_learned, len(model._pending)) in ((8, 3), (11, 0))

    assert interrupts.each_line(lambda: copy.deepcopy(made), lambda model: model.flush(), check) > 50


def test_huge_numbers_are_cut_for_one_row_as_for_many(stream):
    model = taught(stream)
    row = {**stream[0][0], next(iter(stream[0][0])): 1e300}
    assert list(model.predict_one(row).values()) == model.predict_many(pd.DataFrame([row])).to_numpy()[0].tolist()


def test_labels_that_cannot_be_names():
    with pytest.raises(ValueError, match="y must hold labels"):
        RiverClassifier("obr").learn_one({"a": 1.0}, [["x"]])


def test_a_refused_row_leaves_no_column_behind():
    """Its label clashes with another; its new feature must not be known, either."""
    model = RiverClassifier("obr", batch_size=8)
    model.learn_one({"a": 1.0}, {0: True})
    with pytest.raises(ValueError, match="the name of another"):
        model.learn_one({"a": 1.0, "new": 2.0}, {"0": True})
    model.flush()
    assert model.classifier.feature_names_in_.tolist() == ["a"]
    assert list(model._features.columns) == ["a"]


def learn_at_once(model, X, y):
    model.learn_many(X, y)
    model.flush()


@pytest.mark.parametrize("batch_size", [1, 4, 32])
@pytest.mark.parametrize("at", [0, 1, 2, 7, 40])
def test_a_refused_row_leaves_nothing_behind(batch_size, at):
    """Rows with numbers that are too large, and names of their own, come one after another."""
    hues = [f"hue {i % 5}" for i in range(60)]
    stream = [({"a": i % 3, hues[i]: 1.0}, {"x": i % 3 == 0, f"is {hues[i]}": True}) for i in range(60)]
    clean, model = (RiverClassifier("race", batch_size=batch_size, seed=0) for _ in range(2))
    for i, (x, y) in enumerate(stream):
        if i == at:
            for one in (clean, model):
                one.flush()
            for k in range(20):
                frame = pd.DataFrame([{"a": 1e300, f"junk {k}": 1.0}])
                with pytest.raises(DivergenceError, match=f"Row {i + k + 1} cannot be learned"):
                    learn_at_once(model, frame, [{"x": True, f"junk label {k}": True}])
        for one in (clean, model):
            one.learn_one(x, y)
    for one in (clean, model):
        one.flush()
    names = [f"hue {i}" for i in range(5)]
    assert set(model.classifier.feature_names_in_) == set(model._features.columns) == {"a", *names}
    assert set(model.classifier.label_names_) == set(model._labels.columns) == {"x", *(f"is {name}" for name in names)}
    for x, _ in stream[:15]:
        assert model.predict_proba_one(x) == clean.predict_proba_one(x)


def test_rows_of_the_same_batch_as_a_refused_one_keep_their_names():
    model = RiverClassifier("race", batch_size=4, seed=0)
    rows = [({"a": float(i % 3)}, {"x": i % 3 == 0}) for i in range(8)]
    rows += [({"a": 1e300, "junk": 1.0}, {"bad"}), ({"a": 1.0, "new": 1.0}, {"good"}), ({"a": 2.0}, {"x"})]
    for x, y in rows:
        model.learn_one(x, y)
    with pytest.raises(DivergenceError, match="Row 9 cannot be learned"):
        model.flush()
    assert model.classifier.feature_names_in_.tolist() == list(model._features.columns) == ["a", "new"]
    assert model.classifier.label_names_.tolist() == list(model._labels.columns) == ["x", "good"]
    model.learn_one({"a": 1.0, "new": 1.0, "junk": 3.0}, {"good", "bad"})
    model.flush()
    assert list(model.predict_one({"a": 1.0})) == list(model.classifier.label_names_) == ["x", "good", "bad"]
