"""The default model as users meet it: parameters, probabilities, and files in every phase."""

from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import pytest
from helpers.linear_models import rows, small
from scipy import sparse

import labelrace
from labelrace import BinaryRelevanceClassifier, LabelRaceClassifier, RACEClassifier
from labelrace.base.sparse import dense
from labelrace.extreme.classifier import HashedRace
from labelrace.linear.rls import RLS
from labelrace.measures import evaluate
from labelrace.measures.calibration import expected_calibration_error
from labelrace.streams.synthetic import SyntheticStream


def assert_equal(one, other, X):
    for method in ("predict", "decision_function", "predict_proba"):
        np.testing.assert_array_equal(dense(getattr(one, method)(X)), dense(getattr(other, method)(X)), err_msg=method)


# Parameters and attributes.

WRONG = {
    "no components": ({"n_components": 0}, "n_components must be a whole number of at least 1.*, got 0"),
    "half a component": ({"n_components": 1.5}, "n_components must be a whole number.*, got 1.5"),
    "aim": ({"optimise": "f1"}, "optimise must be one of 'cardinality', 'hamming_loss'.*, got 'f1'"),
    "no aim": ({"optimise": None}, "optimise must be one of .*, got None"),
    "drift": ({"detect_drift": "yes"}, "detect_drift must be True or False.*, got 'yes'"),
    "no drift": ({"detect_drift": 1}, "detect_drift must be True or False.*, got 1"),
    "alpha": ({"alpha": 0}, "alpha must be a number of at least 1e-05.*, got 0"),
    "alpha text": ({"alpha": "best"}, "alpha must be one of 'auto', got 'best'"),
    "alpha none": ({"alpha": np.nan}, "alpha must be .*, got nan"),
    "forgetting": ({"forgetting": 0}, "forgetting must be a number above 0.*, got 0"),
    "forgetting more": ({"forgetting": 1.5}, "forgetting must be a number above 0.*, got 1.5"),
    "forgetting text": ({"forgetting": "fast"}, "forgetting must be a number above 0.*, got 'fast'"),
    "half_life": ({"half_life": 0}, "half_life must be a number above 0.*, got 0"),
    "half_life text": ({"half_life": "long"}, "half_life must be a number above 0.*, got 'long'"),
    "several": ({"half_life": [None, 5]}, r"half_life must be a number above 0.*, got \[None, 5\]"),
    "no memory": ({"max_memory": 0}, "max_memory must be a number of bytes above 0 or a number with a unit.*, got 0"),
    "no unit": ({"max_memory": "1 XB"}, "max_memory must be a number of bytes above 0 or .*, got '1 XB'"),
    "no amount": ({"max_memory": None}, "max_memory must be a number of bytes above 0 or .*, got None"),
    "no number": ({"n_random_features": -1}, "n_random_features must be a whole number of at least 0.*, got -1"),
    "half a random feature": ({"n_random_features": 0.5}, "n_random_features must be a whole number.*, got 0.5"),
    "random_state": ({"random_state": -1}, "random_state must be a whole number of at least 0.*, got -1"),
    "random_state text": ({"random_state": "dice"}, "random_state must be a whole number.*, got 'dice'"),
}


@pytest.mark.parametrize(("parameters", "message"), WRONG.values(), ids=WRONG)
def test_wrong_parameters(parameters, message):
    model = LabelRaceClassifier(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(*rows(0, 20))
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("half_life", [None, 500, np.float32(500)])
def test_half_lives_of_all_kinds(half_life, tmp_path):
    X, Y = rows(0, 150)
    model = small(half_life=half_life).partial_fit(X, Y).partial_fit(X, Y)
    model.save(tmp_path / "model")
    assert_equal(labelrace.load(tmp_path / "model").partial_fit(X, Y), model.partial_fit(X, Y), X)


@pytest.mark.parametrize(("forgetting", "half_life"), [(1, None), (0.5**0.01, 100.0)])
def test_a_rate_is_a_half_life(forgetting, half_life, tmp_path):
    X, Y = rows(0, 600)
    by_rate, by_half_life, other = small(forgetting=forgetting, half_life=7), small(half_life=half_life), small()
    for model in (by_rate, by_half_life, other):
        model.partial_fit(X, Y).partial_fit(X, Y)
    np.testing.assert_allclose(by_rate.decision_function(X), by_half_life.decision_function(X), atol=1e-6)
    assert np.abs(by_rate.decision_function(X) - other.decision_function(X)).max() > 1e-5
    by_rate.save(tmp_path / "model")
    assert_equal(labelrace.load(tmp_path / "model").partial_fit(X, Y), by_rate.partial_fit(X, Y), X)


def test_fitted_attributes():
    X, Y = rows(0)
    model = small(n_components=4, alpha=2).fit(X, Y)
    assert model.alpha_ == 2
    assert model.n_components_ is None
    np.testing.assert_array_equal(model.encoder_.toarray(), np.eye(8))
    assert model.n_drifts_ == 0
    assert isinstance(model.n_drifts_, int)
    model = small(n_components=3, max_memory=1).fit(X, Y)
    assert model.n_components_ == 3
    assert model.encoder_.shape == (8, 3)
    assert model.offsets_.tolist() == [0.0] * 8
    assert model.alpha_ / 1.25 in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
    assert np.abs(model.encoder_.toarray()).sum(axis=1).tolist() == [2.0] * 8
    marked = model.predict(X).astype(bool)
    scores = model.decision_function(X)
    # A row without any score above zero may have its best label.
    assert ((scores > 0) <= marked).all()
    assert (marked[(scores > 0).any(axis=1)] == (scores > 0)[(scores > 0).any(axis=1)]).all()


def test_memory_decides_about_compression():
    """Four bytes for each label and column: 6 features and 10 random ones, or of sparse rows those in use."""
    X, Y = rows(0)
    assert small(n_components=3, max_memory=4 * 8 * 16).fit(X, Y).n_components_ is None
    assert small(n_components=3, max_memory=4 * 8 * 16 - 1).fit(X, Y).n_components_ == 3
    assert small(n_components=8, max_memory=1).fit(X, Y).n_components_ is None
    wide = sparse.csr_array((np.ones(300), (np.arange(300), np.arange(300) % 50)), shape=(300, 100_000))
    assert small(n_components=3, max_memory=4 * 8 * 50).fit(wide, Y).n_components_ is None
    assert small(n_components=3, max_memory=4 * 8 * 50 - 1).fit(wide, Y).n_components_ == 3


@pytest.mark.parametrize("what", ["labels", "features"])
def test_what_outgrows_the_memory_is_compressed(what, tmp_path):
    X, Y = rows(0, 900, 12)[1], rows(0, 900, 12)[1]
    X = sparse.csr_array(X[:, ::-1].astype(float))
    n_labels, n_features = (4, 12) if what == "labels" else (12, 6)
    memory = 4 * n_labels * n_features
    model = small(n_components=5 if what == "features" else 3, max_memory=memory)
    for start in (0, 300):
        model.partial_fit(X[start : start + 300, :n_features], Y[start : start + 300, :n_labels])
    assert model.n_components_ is None
    model.partial_fit(X[600:], Y[600:])
    assert model.n_components_ == (5 if what == "features" else 3)
    model.save(tmp_path / "model")
    twin = labelrace.load(tmp_path / "model")
    assert_equal(twin.partial_fit(X, Y), model.partial_fit(X, Y), X)


def test_a_model_that_was_compressed_stays_so_and_keeps_its_parameters():
    """It is another algorithm from then on, and the parameters are still those that it began with."""
    X, Y = rows(0)
    model = small(n_components=3, max_memory=1).fit(X, Y)
    assert isinstance(model._fitted.algorithm, HashedRace)
    assert model.encoder_.shape == (Y.shape[1], 3)
    assert not model.offsets_.any()
    fitted = model._fitted
    with pytest.raises(ValueError, match=r"[Pp]arameters"):
        model.set_params(max_memory="1GB").partial_fit(X, Y)
    assert model._fitted is fitted
    model.set_params(max_memory=1).partial_fit(X, Y)
    assert model.n_components_ == 3
    # To begin again is to begin with what the parameters say.
    assert model.set_params(max_memory="1GB").fit(X, Y).n_components_ is None


def test_compressed_labels_are_imported_when_they_are_needed():
    code = "import sys, labelrace.linear.classifier; assert not [m for m in sys.modules if 'labelrace.extreme' in m]"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "attribute", ["encoder_", "threshold_", "offsets_", "alpha_", "n_alarms_", "n_drifts_", "n_components_"]
)
def test_nothing_is_fitted_before(attribute):
    assert not hasattr(LabelRaceClassifier(), attribute)
    with pytest.raises(ValueError, match="not fitted"):
        LabelRaceClassifier().explain([1.0, 2.0])


@pytest.mark.parametrize(
    "change",
    [
        {"half_life": 100},
        {"forgetting": 0.9},
        {"max_memory": "2GB"},
        {"optimise": "micro_f1"},
        {"detect_drift": False},
        {"alpha": 1.0},
        {"n_random_features": 5},
    ],
)
def test_changed_parameters_need_a_new_start(change, tmp_path):
    X, Y = rows(0)
    model = small(random_state=None).fit(X, Y)
    before = model.decision_function(X)
    model.set_params(**change)
    for call in (lambda: model.partial_fit(X, Y), lambda: model.save(tmp_path / "model")):
        with pytest.raises(ValueError, match="Parameters were changed after fitting"):
            call()
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_setting_the_same_parameters_is_no_change():
    """What was drawn at the start is not drawn again to compare."""
    X, Y = rows(0)
    model = small(random_state=None, half_life=100, max_memory="1GB").fit(X, Y)
    assert model.set_params(half_life=100.0, max_memory=1e9).partial_fit(X, Y).predict(X).shape == Y.shape


# Randomness.


def directions(model):
    state = model._fitted.state
    [state] = getattr(state, "compressed", ()) or [state]
    return state.learners.scaling.directions


@pytest.mark.parametrize("max_memory", ["1GB", 1])
def test_random_state(max_memory):
    X, Y = rows(0)

    def fitted(random_state):
        return small(random_state=random_state, n_components=3, max_memory=max_memory).fit(X, Y)

    for make in (lambda: 5, lambda: np.int64(5), lambda: np.random.default_rng(5), lambda: np.random.RandomState(5)):
        one, other = fitted(make()), fitted(make())
        np.testing.assert_array_equal(directions(one), directions(other))
        assert_equal(one, other, X)
    for one, other in ((5, 6), (None, None), (np.random.default_rng(5), np.random.default_rng(6))):
        assert not np.array_equal(directions(fitted(one)), directions(fitted(other)))
    shared = np.random.default_rng(5)
    assert not np.array_equal(directions(fitted(shared)), directions(fitted(shared)))
    model = fitted(None)
    assert not np.array_equal(directions(model), directions(copy.deepcopy(model).fit(X, Y)))
    model = fitted(5)
    np.testing.assert_array_equal(directions(model), directions(copy.deepcopy(model).fit(X, Y)))


def test_a_generator_that_has_no_children():
    legacy = np.random.Generator(np.random.RandomState(0)._bit_generator)
    assert np.isfinite(small(random_state=legacy).fit(*rows(0)).decision_function(rows(0)[0])).all()


@pytest.mark.parametrize("random_state", [None, 3, np.random.default_rng(0)])
def test_a_loaded_model_draws_the_same(random_state, tmp_path):
    """For labels and features that come later, and while the first rows are learned again."""
    X, Y = rows(0, n_labels=12)
    model = small(random_state=random_state, n_components=4, max_memory=4 * 6 * 5).partial_fit(
        sparse.csr_array(X[:40, :4]), Y[:40, :6]
    )
    model.save(tmp_path / "model")
    twin = labelrace.load(tmp_path / "model")
    for one in (model, twin):
        one.partial_fit(sparse.csr_array(X[40:80, :5]), Y[40:80, :7])
        one.partial_fit(sparse.csr_array(X[80:]), Y[80:])
    np.testing.assert_array_equal(directions(twin), directions(model))
    assert directions(model).shape == (6, 10)
    assert (twin.encoder_ != model.encoder_).nnz == 0
    assert model.n_components_ == 4
    assert_equal(twin, model, X)


# Probabilities.


@pytest.mark.parametrize("optimise", ["cardinality", "macro_f1", "example_f1"])
@pytest.mark.parametrize("max_memory", ["1GB", 1])
def test_probabilities_rise_with_the_score(optimise, max_memory):
    X, Y = rows(0)
    model = small(optimise=optimise, n_components=3, max_memory=max_memory).partial_fit(X, Y).partial_fit(*rows(1))
    queries = np.vstack([rows(2)[0], 100 * rows(3)[0]])
    likely, scores = model.predict_proba(queries), model.decision_function(queries)
    assert likely.shape == (600, 8)
    assert likely.min() >= 0
    assert likely.max() <= 1
    order = np.argsort(scores, axis=None)
    assert (np.diff(likely.ravel()[order]) >= -1e-12).all()
    assert np.ptp(likely) > 0.5


@pytest.mark.parametrize("cardinality", [2, 8])
def test_probabilities_are_what_they_say(cardinality):
    stream = SyntheticStream(n_rows=4000, n_features=20, n_labels=40, cardinality=cardinality, noise=0.3, seed=1)
    model, errors = small(), []
    for number, (X, Y) in enumerate(stream.batches(250)):
        if number >= 4:
            scores = model.decision_function(X)
            mapped = np.clip((scores + 1) / 2, 0, 1), np.clip(scores + model.threshold_, 0, 1)
            errors.append([expected_calibration_error(Y, P) for P in (model.predict_proba(X), *mapped)])
        model.partial_fit(X, Y)
    calibrated, by_sign, as_they_are = np.mean(errors, axis=0)
    assert calibrated < 0.015
    assert calibrated < by_sign / 10
    assert calibrated < as_they_are


# Files.


def in_phase(phase):
    """Make a model that is in the midst of something, and batches to go on with."""
    kind = {"sparse_rows": True} if phase == "features" else {}
    batches = [rows(seed, 60, 12, **kind) for seed in range(6)]
    later = batches[3:]
    if phase == "one row":
        return small().partial_fit(batches[0][0][:1], batches[0][1][:1]), later
    if phase == "first rows":
        X, Y = batches[0]
        return small().partial_fit(X[:20], Y[:20]).partial_fit(X[20:30], Y[20:30]), later
    if phase == "young":
        model = small()
        for number in range(12):
            X, Y = rows(number, 100, 12)
            model.partial_fit(X, Y * (np.arange(12) < number + 1))
        assert model._fitted.state.learners.is_recent_label.any()
        return model, later
    if phase == "drift":
        model = small()
        for number in range(20):
            model.partial_fit(*rows(number, 100, 12, turned=number >= 12))
        assert model.n_alarms_ == 1
        assert model._fitted.state.fork
        return model, later
    changes = {
        "macro": {"optimise": "macro_f1"},
        "compressed": {"n_components": 3, "max_memory": 1},
        "across": {"n_components": 3, "optimise": "macro_f1", "max_memory": 4 * 16 * 10},
    }
    model = small(**changes.get(phase, {}))
    for number, (X, Y) in enumerate(batches[:3]):
        if phase in ("labels", "across"):
            Y = Y[:, : 4 * (number + 1)]
        if phase == "features":
            X = X[:, : 2 * (number + 1)]
        if phase == "unknown":
            Y = np.where(np.random.default_rng(number).random(Y.shape) < 0.2, np.nan, Y)
        model.partial_fit(X, Y)
    if phase == "features":
        later = [(sparse.hstack([X, X[:, :2]], format="csr"), Y) for X, Y in later]
    return model, later


PHASES = ["one row", "first rows", "after", "unknown", "drift", "young", "macro", "compressed", "labels", "across"]


@pytest.mark.parametrize("phase", [*PHASES, "features"])
def test_what_is_read_goes_on_like_what_was_written(phase, tmp_path):
    model, later = in_phase(phase)
    queries = later[0][0][:, : model.n_features_in_]
    before = model.decision_function(queries)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(model.decision_function(queries), before)
    twin = labelrace.load(tmp_path / "model")
    assert twin.n_drifts_ == model.n_drifts_
    for X, Y in later:
        assert_equal(twin, model, queries)
        Y = np.hstack([Y, Y[:, :1]])
        for one in (model, twin):
            one.partial_fit(X, Y)
        queries = X
    assert_equal(twin, model, queries)
    assert directions(model).shape[1] == (0 if phase == "features" else 10)


@pytest.mark.parametrize("learner", ["rls", RLS(alpha=0.3, half_life=100.0, n_random_features=4, seed=2)])
@pytest.mark.parametrize("n_first", [20, 200])
@pytest.mark.parametrize("sparse_rows", [False, True])
def test_the_learners_in_other_models(learner, n_first, sparse_rows, tmp_path):
    X, Y = rows(0, sparse_rows=sparse_rows)
    for model in (
        RACEClassifier(method="regression", learner=learner, n_components=5, random_state=1),
        RACEClassifier(method="regression", encoding="adaptive", learner=learner, random_state=1),
        BinaryRelevanceClassifier(learner=learner),
    ):
        model.partial_fit(X[:n_first], Y[:n_first, :6])
        model.save(tmp_path / "model")
        twin = labelrace.load(tmp_path / "model")
        np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))
        assert twin.get_params() == model.get_params()
        for one in (model, twin):
            one.partial_fit(X[n_first:], Y[n_first:])
        np.testing.assert_array_equal(twin.decision_function(X), model.decision_function(X))
        f1 = evaluate(Y, model.predict(X), measures="micro_f1")["micro_f1"]
        if not sparse_rows:
            assert f1 > (0.5 if isinstance(model, BinaryRelevanceClassifier) else 0.2)


def test_the_learners_are_for_regression():
    X, Y = rows(0, 50)
    with pytest.raises(
        ValueError, match="learner must be made for classification, got 'rls', which is for method='regression'"
    ):
        RACEClassifier(learner="rls").fit(X, Y)
    one, same, other = (
        RACEClassifier(method="regression", learner="rls", random_state=seed).fit(X, Y) for seed in (0, np.int64(0), 1)
    )
    np.testing.assert_array_equal(directions(one), directions(same))
    assert not np.array_equal(directions(one), directions(other))


def test_settings_of_the_learners():
    assert RLS(half_life=5) == RLS(half_life=np.float32(5.0))
    assert hash(RLS(half_life=5)) == hash(RLS(half_life=5.0))
    for half_life in (0, -1.0, "long", (None, 5.0)):
        with pytest.raises(ValueError, match=r"half_life must be a number above 0"):
            RLS(half_life=half_life)
    with pytest.raises(ValueError, match=r"seed must be .*, got -1"):
        RLS(seed=-1)
