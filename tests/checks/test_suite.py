"""How the suite is run: copies, seeds, skips, messages and the permutation of what is drawn."""

from __future__ import annotations

import inspect
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Perceptron, SGDClassifier

import labelrace
from labelrace import BinaryRelevanceClassifier, PLSTClassifier, RACEClassifier, checks
from labelrace.checks.model_under_test import ModelUnderTest, sample


def run(name, model, **options):
    dict(checks.iter_checks(model, **options))[name]()


class Noisy(BinaryRelevanceClassifier):
    """Draws a weight for each label; with ``weights`` they are given."""

    def __init__(self, random_state=None, weights=None):
        super().__init__()
        self.random_state = random_state
        self.weights = weights

    def decision_function(self, X):
        drawn = np.random.default_rng(self.random_state).random(len(self.classes_))
        return super().decision_function(X) * (drawn if self.weights is None else self.weights)


def test_the_data_fit_their_purpose():
    first, second, rows = sample()
    for _, Y in (first, second, (None, np.vstack([first[1], second[1]]))):
        counts = Y.sum(axis=0)
        # No ties of labels, and both classes of every label in every batch.
        assert len(set(counts)) == 6
        assert counts.min() > 0
        assert counts.max() < len(Y)
        # Rows without labels occur, too.
        assert not Y.any(axis=1).all()
    # Sparse data are worth the name, but have no row of zeros: that is a check of its own.
    assert (first[0] == 0).mean() > 0.2
    assert rows.any(axis=1).all()


def test_each_check_says_what_it_checks_and_why():
    names = [check.__name__ for check in checks.CHECKS]
    assert len(set(names)) == len(names)
    for check in checks.CHECKS:
        what, _, reason = inspect.getdoc(check).partition("\n\n")
        assert what.startswith("Check ")
        assert reason


def test_the_model_given_is_not_taught():
    model = RACEClassifier()
    checks.check_model(model)
    assert model.random_state is None
    with pytest.raises(NotFittedError):
        model.predict([[0.0]])


def test_copies_are_seeded_in_their_parts_too():
    copy = ModelUnderTest(RACEClassifier(learner=SGDClassifier()), checks.permute_known).fresh(7)
    assert (copy.random_state, copy.learner.random_state) == (7, 7)


def test_a_failure_names_check_and_model_and_keeps_its_cause():
    class Faulty(BaseEstimator):
        """Cannot learn."""

        def partial_fit(self, X, Y):
            raise OSError("the disk is full")

    with pytest.raises(AssertionError, match=r"check_outputs: Faulty\(\): raised OSError: the disk is full") as failure:
        run("check_outputs", Faulty())
    assert isinstance(failure.value.__cause__, OSError)
    # It has no predict, which is an AttributeError: so far it is in order.
    with pytest.raises(AssertionError, match=r"^check_outputs: "):
        checks.check_model(Faulty())


def test_a_floating_point_warning_is_a_failure():
    class Warns(BinaryRelevanceClassifier):
        """Returns numbers that are in order, but computes others on the way."""

        def decision_function(self, X):
            np.log(np.zeros(1))
            return super().decision_function(X)

    with pytest.raises(AssertionError, match=r"check_outputs: .* raised RuntimeWarning: divide by zero"):
        run("check_outputs", Warns())


def test_a_model_that_draws_globally_is_not_deterministic():
    class Gambles(BinaryRelevanceClassifier):
        """Has no random_state, and draws all the same."""

        def decision_function(self, X):
            return super().decision_function(X) + np.random.random()  # noqa: NPY002

    with pytest.raises(AssertionError, match=r"check_determinism: .* when learning twice.* scores differ by up to"):
        run("check_determinism", Gambles())


def test_models_without_partial_fit_are_offline():
    class Fitted:
        """Learns by fit alone, and does not say so."""

        def fit(self, X, Y):
            self.model = PLSTClassifier().fit(X, Y)

        def predict(self, X):
            return self.model.predict(X)

        def decision_function(self, X):
            return self.model.decision_function(X)

    skipped = checks.check_model(Fitted())
    online = {"check_batches_of_one", "check_new_features", "check_new_labels", "check_refused_batches"}
    named = {"check_predict_labels", "check_predict_top"}
    assert set(skipped) == {*online, *named, "check_save_and_load", "check_merging"}
    assert skipped["check_save_and_load"] == "it has no save"


def test_a_model_may_refuse_to_be_saved():
    with pytest.raises(SkipTest, match=r"it refuses to be saved: .*only arrays are written"):
        run("check_save_and_load", RACEClassifier(learner=Perceptron()))


def test_what_is_drawn_for_each_label_has_to_be_permuted_too():
    with pytest.raises(SkipTest, match="permute="):
        run("check_permuted_labels", Noisy())
    weights = np.linspace(1, 2, 6)
    run("check_permuted_labels", Noisy(), permute=lambda model, order: model.set_params(weights=weights[order]))
    with pytest.raises(AssertionError, match="when the labels came in another order, scores differ"):
        run("check_permuted_labels", Noisy(), permute=lambda model, order: model.set_params(weights=weights))


@pytest.mark.parametrize("name", ["race-cls-fixed", "race-cls-adaptive", "race-offline", "occ", "oecc"])
def test_with_what_was_drawn_left_as_it_is_the_order_of_labels_matters(name):
    with pytest.raises(AssertionError, match="when the labels came in another order"):
        run("check_permuted_labels", labelrace.make_model(name), permute=lambda model, order: model)


def test_permuted_chains_visit_the_same_labels():
    order = np.array([2, 0, 3, 1])
    chains = [labelrace.make_model("oecc") for _ in range(2)]
    original, permuted = (
        checks.permute_known(model, each).orders for model, each in zip(chains, (np.arange(4), order), strict=True)
    )
    np.testing.assert_array_equal(order[permuted], original)
