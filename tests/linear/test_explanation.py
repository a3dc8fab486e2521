"""Why a label got its score: parts that add up to it, named as features, labels and pseudo labels are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.linear_models import ROUNDED, M, rows, small

from labelrace import LabelRaceClassifier


def decisions_of(model, x):
    """Compute what label sets are chosen by: positive where a label is predicted."""
    fitted, X = model._rows(x)
    return fitted.algorithm.decisions(fitted.derived, X)[0]


def assert_adds_up(model, explanation, x):
    parts = explanation.intercept + sum(amount for _, amount in explanation.features)
    assert parts + explanation.other_features + explanation.random_features == pytest.approx(
        explanation.score, abs=ROUNDED
    )
    index = explanation.label if model.label_names_ is None else list(model.label_names_).index(explanation.label)
    decision = explanation.score + explanation.adjustment
    assert decision == pytest.approx(decisions_of(model, x)[index], abs=ROUNDED)


def test_what_is_added_for_the_decision():
    """A tenth of the row's best score, the label's offset and the threshold are taken away."""
    X, Y = rows(0)
    model = small().partial_fit(X, Y).partial_fit(*rows(1))
    explained = model.explain(X[0], range(8))
    best = max(each.score for each in explained)
    expected = -0.1 * max(best, 0.0) - model.offsets_ - model.threshold_
    np.testing.assert_allclose([each.adjustment for each in explained], expected, atol=ROUNDED)
    assert np.ptp(model.offsets_) > 0


@pytest.mark.parametrize("max_memory", ["1GB", 1])
@pytest.mark.parametrize("sparse_rows", [False, True])
def test_parts_add_up(sparse_rows, max_memory):
    X, Y = rows(0, sparse_rows=sparse_rows)
    model = small(n_components=3, max_memory=max_memory).partial_fit(X, Y).partial_fit(X, Y)
    for n_features in (1, 3, 99):
        for explanation in model.explain(X[:1], range(8), n_features=n_features):
            assert_adds_up(model, explanation, X[:1])
            sizes = [abs(amount) for _, amount in explanation.features]
            assert len(sizes) <= n_features
            assert sizes == sorted(sizes, reverse=True)
            assert (explanation.random_features == 0) == sparse_rows
            carried = [abs(amount) for _, amount in explanation.pseudo_labels]
            assert carried == sorted(carried, reverse=True)
            if n_features == 99:
                assert explanation.other_features == pytest.approx(0, abs=ROUNDED)
                together = sum(amount for _, amount in explanation.pseudo_labels)
                # Compressed labels have a constant and the table beside them.
                assert max_memory == 1 or together == pytest.approx(explanation.score, abs=ROUNDED)
                assert {index for index, _ in explanation.pseudo_labels} <= set(range(model.encoder_.shape[1]))


def test_features_carry_what_they_change():
    """Without random features, a feature that is moved moves the score by as much as its part changes."""
    X, Y = rows(0)
    model = small(n_random_features=0).fit(X, Y)
    x = X[0].copy()
    before = model.explain(x, [3], n_features=M)[0]
    x[2] += 0.5
    after = model.explain(x, [3], n_features=M)[0]
    moved, other = dict(after.features), dict(before.features)
    change = moved[2] - other[2]
    assert abs(change) > 1e-3
    assert change == pytest.approx(after.score - before.score, abs=ROUNDED)
    assert {name: moved[name] for name in moved if name != 2} == pytest.approx(
        {name: other[name] for name in other if name != 2}, abs=ROUNDED
    )


def test_names_of_features_and_labels():
    X, Y = rows(0)
    names, labels = [f"x{i}" for i in range(M)], [f"label {i}" for i in range(8)]
    frame = pd.DataFrame(X, columns=names)
    model = small().fit(frame, pd.DataFrame(Y, columns=labels))
    unnamed = small().fit(X, Y)
    for by in (["label 3", "label 0"], [3, 0], np.array([3, 0])):
        found = model.explain(frame[:1], by, n_features=M)
        assert [each.label for each in found] == ["label 3", "label 0"]
        for explanation, plain in zip(found, unnamed.explain(X[0], [3, 0], n_features=M), strict=True):
            expected = {f"x{name}": amount for name, amount in plain.features}
            assert dict(explanation.features) == pytest.approx(expected, abs=ROUNDED)
            assert_adds_up(model, explanation, frame[:1])
    with pytest.raises(ValueError, match="labels must be names or columns of the model's labels, got 'label 9'"):
        model.explain(frame[:1], ["label 9"])


def test_dicts_and_nominal_features():
    X, Y = rows(0)
    dicts = [{f"x{i}": value for i, value in enumerate(row)} for row in X]
    model = small().fit(dicts, Y)
    for explanation in model.explain(dicts[0], [1, 2], n_features=2):
        assert len(explanation.features) == 2
        assert {name for name, _ in explanation.features} <= {f"x{i}" for i in range(M)}
        assert_adds_up(model, explanation, dicts[:1])
    X = X.copy()
    X[:, 0], X[:, 3] = np.arange(300) % 3, np.arange(300) // 3 % 2
    model = small(categorical_features=[0, 3]).fit(X, Y)
    [explanation] = model.explain(X[5], [1], n_features=99)
    assert {name for name, _ in explanation.features} == {1, 2, 3, 4, 5, "0=1", "0=2"}
    assert_adds_up(model, explanation, X[5:6])


def test_what_is_predicted_is_explained():
    X, Y = rows(0)
    model = small().fit(X, Y)
    row = int(np.argmax(model.predict(X).sum(axis=1)))
    explained = [each.label for each in model.explain(X[row])]
    assert len(explained) > 1
    assert explained == np.flatnonzero(model.predict(X[row : row + 1])[0]).tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda X: (X[:2],), "x must be one row, got 2"),
        (lambda X: (X[0], [8]), "labels must be names or columns of the model's labels, got 8"),
        (lambda X: (X[0], [-1]), "labels must be names or columns of the model's labels, got -1"),
        (lambda X: (X[0], ["a"]), "labels must be names or columns of the model's labels, got 'a'"),
        (lambda X: (X[0], [1.0]), r"labels must be names or columns of the model's labels, got 1\.0"),
        (lambda X: (X[0], None, 0), "n_features must be a whole number of at least 1.*, got 0"),
        (lambda X: (X[0, :3],), "3 features"),
    ],
)
def test_explanations_nobody_can_give(arguments, message):
    X, Y = rows(0)
    with pytest.raises(ValueError, match=message):
        small().fit(X, Y).explain(*arguments(X))


def test_a_row_of_a_data_frame_is_explained_by_its_names():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    model = LabelRaceClassifier(random_state=0).fit(frame, (frame.to_numpy() > 0).astype(int))
    decisions = [part.score + part.adjustment for part in model.explain(frame.iloc[7], labels=[0, 1, 2])]
    np.testing.assert_allclose(decisions, decisions_of(model, frame.iloc[[7]]), atol=1e-5)
