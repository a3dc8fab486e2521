"""scikit-learn's own checks of an estimator, and why some of them are not for a multi-label classifier."""

from __future__ import annotations

import pytest
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from labelrace import RACEClassifier

# Some checks set no random_state of their own, so each estimator has one: what fails, fails always.
ESTIMATORS = [
    RACEClassifier(random_state=0),
    RACEClassifier(method="regression", random_state=0),
    RACEClassifier(method="regression", learner="ridge", random_state=0),
    RACEClassifier(encoding="adaptive", random_state=0),
    RACEClassifier(learner=Perceptron(), random_state=0),
    RACEClassifier(learner=SGDClassifier(random_state=0), random_state=0),
]

NOT_FOR_MULTI_LABEL = {
    # The check's labels are {1, 2}, two classes of a single-label problem; here a label is absent, 0, or present, 1.
    "check_estimators_dtypes": "labels {1, 2}",
    "check_classifier_data_not_an_array": "labels {1, 2}",
    "check_fit2d_1feature": "labels {1, 2}: refused before the check's one feature is",
    # The check's labels are a vector; here they are a matrix of 0 and 1, and a vector is refused with that hint.
    "check_classifiers_one_label": "a vector of labels",
    "check_classifiers_classes": "a vector of labels, of text too",
    "check_classifiers_regression_target": "a vector of labels: refused before its continuous values are",
    "check_decision_proba_consistency": "a vector of labels",
    "check_classifier_not_supporting_multiclass": "a vector of labels: refused before its three classes are",
    # The check gives a matrix of one label and wants back what a single-label classifier returns.
    "check_classifiers_train": "predictions of one label have the shape (n, 1), not (n,)",
    "check_estimator_sparse_array": "probabilities of one label have the shape (n, 1): there are not two classes",
    "check_estimator_sparse_matrix": "probabilities of one label have the shape (n, 1), as above",
    # What is returned for several labels is chosen on purpose.
    "check_classifiers_multilabel_output_format_predict": "one byte a cell: int64 would take 8 times the memory",
}
HARD_AND_SOFT = {
    "check_classifier_multioutput": "predict decodes hard pseudo labels and decision_function soft ones, as in the "
    "paper: their signs may differ"
}
CUT_OFF = {
    "check_classifiers_multilabel_output_format_predict_proba": "probabilities are cut off: they can be exactly 0 or 1",
}
TIES = {"check_classifier_multioutput": "probabilities that are cut off tie, the scores they come from do not"}


def expected_failures(estimator):
    if estimator.method == "regression":
        return NOT_FOR_MULTI_LABEL | CUT_OFF | TIES
    if estimator.learner == "auto":
        return NOT_FOR_MULTI_LABEL | HARD_AND_SOFT
    return NOT_FOR_MULTI_LABEL | HARD_AND_SOFT | CUT_OFF


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check, request):
    try:
        check(estimator)
    except Exception as error:
        if request.node.get_closest_marker("xfail") is None:
            raise
        # Nobody reads the traceback of an expected failure, and formatting it takes longer than all the checks.
        raise error.with_traceback(None) from None


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_tags_say_what_it_is(estimator):
    tags = estimator.__sklearn_tags__()
    assert tags.classifier_tags.multi_label
    assert not tags.classifier_tags.multi_class
    assert tags.target_tags.multi_output
    assert not tags.target_tags.single_output
    assert tags.target_tags.required
    assert tags.input_tags.sparse
    assert tags.input_tags.allow_nan == (estimator.learner == "auto" and estimator.method == "classification")
