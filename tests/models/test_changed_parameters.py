"""What happens to a model whose parameters are changed after it has learned, and to one that meets huge numbers."""

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from labelrace import BinaryRelevanceClassifier, RACEClassifier
from labelrace.exceptions import DivergenceError
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 4)), (RNG.random((60, 6)) < 0.3).astype(int)


@pytest.mark.parametrize(
    "change", [{"ridge": 5.0}, {"zero_score": "present"}, {"method": "regression", "learner": "ridge"}]
)
def test_changed_parameters_need_a_new_start(change, tmp_path):
    model = RACEClassifier(random_state=0).fit(X, Y)
    before = model.decision_function(X)
    model.set_params(**change)
    for call in (lambda: model.partial_fit(X, Y), lambda: model.save(tmp_path / "model")):
        with pytest.raises(ValueError, match="must be those that learning began with"):
            call()
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert not list(tmp_path.iterdir())
    assert model.fit(X, Y).decision_function(X).shape == before.shape


@pytest.mark.parametrize(
    "parameters", [{}, {"method": "regression", "learner": "ridge"}, {"method": "regression", "learner": SGD()}]
)
def test_values_whose_squares_overflow(parameters):
    model = RACEClassifier(random_state=0, **parameters).fit(X, Y)
    before = model.decision_function(X)
    huge = X.copy()
    huge[3, 2] = 1e200
    with pytest.raises(DivergenceError, match="Scale the features"):
        model.partial_fit(huge, Y)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_seed_reaches_any_learner():
    def scores(seed):
        model = RACEClassifier(random_state=seed, projection=(np.eye(6)[:, :3], np.zeros(3)), learner=SGDClassifier())
        return model.fit(X, Y).decision_function(X)

    np.testing.assert_array_equal(scores(0), scores(0))
    assert (scores(0) != scores(1)).any()


def test_a_learner_must_predict():
    with pytest.raises(ValueError, match="partial_fit and predict"):
        BinaryRelevanceClassifier(learner=StandardScaler()).fit(X, Y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NaiveBayes(numeric="bogus"), "numeric must be one of .*, got 'bogus'"),
        (lambda: NaiveBayes(smoothing=0), "smoothing must be .*, got 0"),
        (lambda: Ridge(alpha=-1), "alpha must be .*, got -1"),
        (lambda: SGD(rate=0), "rate must be .*, got 0"),
        (lambda: SGD(penalty=-1), "penalty must be .*, got -1"),
        (lambda: SGD(first_epochs=0), "first_epochs must be .*, got 0"),
    ],
)
def test_settings_of_learners(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_iterations_are_whole():
    with pytest.raises(ValueError, match=r"iterations must be .*, got 2\.7"):
        RACEClassifier(iterations=2.7).fit(X, Y)
