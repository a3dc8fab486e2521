"""Test, then train: the order of calls, delayed and hidden labels, labels by name."""

import math

import numpy as np
import pandas as pd
import pytest

import labelrace
from labelrace import RACEClassifier
from labelrace.evaluation import averages, holdout, prequential
from labelrace.evaluation.protocol import LabelHider
from labelrace.measures import evaluate, measure_names
from labelrace.streams import load_dataset

GOLDEN = {
    "emotions": ("emotions_w100_cls-{}_seed1", 100),
    "cal500": ("CAL500_w50_cls-{}_seed1", 50),
}
# The order of the reference files.
MEASURES = {
    "Average Precision": "average_precision",
    "Coverage": "coverage",
    "Hamming Loss": "hamming_loss",
    "Subset Accuracy": "subset_accuracy",
    "Example-Based F Measure": "example_f1",
    "Example-Based Accuracy": "example_accuracy",
    "Micro-averaged F-Measure": "micro_f1",
    "Macro-averaged F-Measure": "macro_f1",
    "Micro-averaged AUC": "micro_auc",
    "Macro-averaged AUC": "macro_auc",
}


def test_equals_a_loop_written_by_hand(data):
    model = labelrace.make_model("race-cls-adaptive", random_state=3)
    expected = []
    for start in range(0, 60, 25):
        rows = slice(start, start + 25)
        if start > 0:
            predicted, scores = model.predict(data.X[rows]), model.decision_function(data.X[rows])
            expected.append(evaluate(data.Y[rows], predicted, scores, measures="all"))
        model.partial_fit(data.X[rows], data.Y[rows])

    again = labelrace.make_model("race-cls-adaptive", random_state=3)
    points = list(prequential(again, data, batch_size=25, measures="all"))
    assert [point.measures for point in points] == expected
    assert [(point.batch, point.start, point.end) for point in points] == [(1, 25, 50), (2, 50, 60)]
    assert [point.whole for point in points] == [True, False]
    assert all(point.tested and min(point.seconds.values()) > 0 for point in points)
    np.testing.assert_array_equal(model.decoder_, again.decoder_)


@pytest.mark.parametrize("encoding", ["fixed", "adap"])
@pytest.mark.parametrize("name", GOLDEN)
def test_averages_equal_the_reference(golden, real_data, name, encoding):
    file, size = GOLDEN[name]
    reference, data = golden(file.format(encoding)), load_dataset(real_data(name))
    places = {str(measure): index for index, measure in enumerate(reference["measure_names"])}
    model = RACEClassifier.paper(
        method="classification",
        encoding={"fixed": "fixed", "adap": "adaptive"}[encoding],
        projection=(reference["A"].T, reference["bias"]),
        categorical_features=data.categorical,
    )
    points = list(prequential(model, data, size, list(MEASURES.values()), zero_division=1.0))
    expected = [reference["avg_main"][places[measure]] for measure in MEASURES]
    # Scores that are equal but for round-off move the areas under the curve by a pair or two of millions.
    np.testing.assert_allclose(list(averages(points).values()), expected, rtol=0, atol=1e-7)
    assert [[point.start, point.end] for point in points] == reference["batches"][1:].tolist()


def test_scores_only_if_needed(remembers, batches):
    list(prequential(remembers, batches([3, 3]), measures=["micro_f1"]))
    assert remembers.calls == [("learn", 0), ("predict", 1), ("learn", 1)]
    list(prequential(remembers, batches([3, 3]), measures=["micro_f1", "ranking_loss"]))
    assert ("scores", 1) in remembers.calls


def test_is_lazy(remembers, batches):
    points = prequential(remembers, iter(batches([3, 3, 3])))
    assert remembers.calls == []
    next(points)
    assert remembers.calls == [("learn", 0), ("predict", 1), ("learn", 1)]


def test_first_batch_tells_what_is_whole(remembers, batches):
    points = list(prequential(remembers, batches([3, 3, 4, 2]), batch_size=500))
    assert [point.whole for point in points] == [True, True, False]


def test_delay(remembers, batches):
    points = list(prequential(remembers, batches([3, 3, 3, 3, 1]), delay=2))
    predicted = [("learn", 0), ("predict", 3), ("learn", 1), ("predict", 4), ("learn", 2)]
    at_the_end = [("learn", 3), ("learn", 4)]
    assert remembers.calls == predicted + at_the_end
    assert [point.batch for point in points] == [3, 4]


def test_delay_longer_than_the_stream(remembers, batches):
    assert list(prequential(remembers, batches([3, 3]), delay=5)) == []
    assert remembers.calls == [("learn", 0), ("learn", 1)]


def test_untested_batches_on_request(remembers, batches):
    points = list(prequential(remembers, batches([3, 3, 3]), delay=1, untested=True))
    assert [(point.batch, point.rows, point.tested) for point in points] == [
        (0, 3, False),
        (1, 3, False),
        (2, 3, True),
        (3, 0, False),
    ]
    assert points[0].measures == {}
    assert points[0].seconds["learn"] == 0 < points[3].seconds["learn"]


def test_no_batches(remembers):
    assert list(prequential(remembers, [])) == []


def test_hidden_labels_are_shown_as_absent(remembers, batches):
    given = batches([200, 200])
    tested = []
    points = prequential(remembers, given, missing=0.3, seed=5, observer=lambda Y, _: tested.append(Y))
    list(points)
    for (_, Y), lesson in zip(given, remembers.lessons, strict=True):
        assert (lesson <= Y).all()
        assert 0.6 < lesson.sum() / Y.sum() < 0.8
    assert tested[0] is given[1][1]


def test_hidden_labels_are_nan_for_models_that_know_them(remembers, batches):
    remembers.supports_missing_labels = True
    given = batches([200, 200])
    list(prequential(remembers, given, missing=0.3, seed=5))
    for (_, Y), lesson in zip(given, remembers.lessons, strict=True):
        seen = ~np.isnan(lesson)
        assert 0.6 < seen.mean() < 0.8
        np.testing.assert_array_equal(lesson[seen], Y[seen])


def test_every_form_of_labels_hides_the_same(data, dataset):
    dense = data.Y.toarray()
    frame = pd.DataFrame(dense, columns=data.label_names)
    hidden = [LabelHider(object(), 0.5, seed=1).hide(labels) for labels in (data.Y, dense, frame, dense.tolist())]
    np.testing.assert_array_equal(hidden[0].toarray(), hidden[1])
    np.testing.assert_array_equal(hidden[2].to_numpy(), hidden[1])
    np.testing.assert_array_equal(hidden[3], hidden[1])
    assert list(hidden[2].columns) == list(frame.columns)
    assert LabelHider(object(), 0.0).hide(data.Y) is data.Y
    assert LabelHider(object(), 1.0).hide(data.Y).nnz == 0


def test_missing_is_reproducible(dataset):
    data = dataset(n_rows=90)

    def decoder(seed):
        model = labelrace.make_model("race-cls-fixed", random_state=0)
        list(prequential(model, data, batch_size=30, missing=0.4, seed=seed))
        return model.decoder_

    np.testing.assert_array_equal(decoder(1), decoder(1))
    assert not np.array_equal(decoder(1), decoder(2))


def test_undefined_measures_are_nan(remembers):
    X, Y = np.zeros((3, 2)), np.zeros((3, 4), dtype=int)
    (point,) = prequential(remembers, [(X, Y), (X, Y)], measures=["macro_auc"])
    assert math.isnan(point.measures["macro_auc"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"delay": -1}, "delay must be"),
        ({"missing": 1.5}, "missing must be"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"measures": "accuracy"}, "measures must be some of"),
    ],
)
def test_mistakes_show_at_the_call(remembers, wrong, message):
    with pytest.raises(ValueError, match=message):
        prequential(remembers, [], **wrong)


def test_offline_models_are_refused(remembers):
    remembers.is_online = False
    with pytest.raises(TypeError, match="use holdout"):
        prequential(remembers, [])


class Names:
    """A model that predicts the names of the last row it learned, and scores names by how often they occurred."""

    def __init__(self):
        self.label_names_ = []
        self.counts = {}

    def partial_fit(self, X, y):
        for row in y:
            for name in sorted(row):
                self.counts[name] = self.counts.get(name, 0) + 1
        self.label_names_ = list(self.counts)
        self.last = set(y[-1])

    def predict(self, X):
        raise AssertionError("labels come by name")

    def predict_labels(self, X):
        return [set(self.last) for _ in range(len(X))]

    def decision_function(self, X):
        return np.tile([float(self.counts[name]) for name in self.label_names_], (len(X), 1))


SETS = [[{"b", "a"}, {"b"}], [{"b", "c"}, set()], [["c"], ["a", "b"]]]
SET_BATCHES = [(np.zeros((2, 1)), sets) for sets in SETS]


def test_label_sets_are_compared_by_name():
    measures = ["micro_f1", "hamming_loss", "coverage", "average_precision"]
    points = list(prequential(Names(), SET_BATCHES, measures=measures))
    # Batch 1 has a label that the model does not know: three labels, and the lowest score for the new one.
    first = [[0, 1, 1], [0, 0, 0]], [[0, 1, 0], [0, 1, 0]], [[1.0, 2.0, -np.inf]] * 2
    second = [[0, 0, 1], [1, 1, 0]], np.zeros((2, 3), dtype=int), [[1.0, 3.0, 1.0]] * 2
    assert [point.measures for point in points] == [evaluate(*batch, measures=measures) for batch in (first, second)]


def test_models_that_predict_sets_need_no_predict_labels():
    class Tags(Names):
        """Predicts sets, as a tagger does."""

        predict = Names.predict_labels
        predict_labels = property()

    expected = [point.measures for point in prequential(Names(), SET_BATCHES)]
    assert [point.measures for point in prequential(Tags(), SET_BATCHES)] == expected


def test_scores_of_label_sets_need_names():
    class Nameless(Names):
        """Does not tell the names of its columns."""

        label_names_ = property(lambda self: None, lambda self, names: None)

        def decision_function(self, X):
            return np.zeros((len(X), 2))

    list(prequential(Nameless(), SET_BATCHES))
    with pytest.raises(TypeError, match="label_names_"):
        list(prequential(Nameless(), [SET_BATCHES[0]] * 2, measures="coverage"))


def test_names_of_label_sets_are_hidden_alike():
    sets = [{f"label {number}" for number in range(100)} for _ in range(20)]
    hidden = [LabelHider(object(), 0.3, seed=4).hide(sets) for _ in range(2)]
    assert hidden[0] == hidden[1]
    assert all(shown < row for shown, row in zip(hidden[0], sets, strict=True))
    assert 0.65 < sum(map(len, hidden[0])) / 2000 < 0.75


def test_label_sets_held_out():
    points = list(holdout(Names(), SET_BATCHES, batch_size=2, test_share=0.34, seed=0))
    assert [(point.start, point.end) for point in points] == [(0, 2), (2, 4)]
    assert 0 <= points[-1].measures["micro_f1"] <= 1


def test_the_default_model_on_label_sets(data):
    model = labelrace.make_model("race", random_state=0)
    sets = [{data.label_names[label] for label in row.nonzero()[0]} for row in data.Y.toarray()]
    batches = [(data.X[start : start + 20], sets[start : start + 20]) for start in range(0, 60, 20)]
    points = list(prequential(model, batches, measures="all"))
    assert [sorted(point.measures) for point in points] == [sorted(measure_names("all"))] * 2
    assert points[-1].measures["micro_f1"] > 0.5
