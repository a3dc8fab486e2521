"""Models that met other labels and features, in other orders, become the model that saw all rows."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import models
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import labelrace
from labelrace.decisions import monitoring
from labelrace.exceptions import MergeError
from labelrace.learners.ridge import Ridge
from labelrace.measures import evaluate
from labelrace.merging import add, gain, join, start
from labelrace.streams.synthetic import SyntheticStream

LABELS = [f"label {i}" for i in range(7)]
WORDS = [f"word {i}" for i in range(6)]
# These depend on the order of labels: chains put late ones last, codes are drawn for columns, and of columns that are
# equally good one is chosen.
ORDERED = ("chains", "occ", "oecc", "cs", "cssp")
# These must have their labels in the same order: what they draw belongs to columns.
PLACED = ("kcca", "cl")
# Its second level learns from the predictions that each share made.
NOT_EXACT = ("mbr",)


def made(name, **parameters):
    """Make a model by its name, small, and settled where it can be."""
    known = labelrace.make_model(name).get_params()
    settled = {"n_components": 3, "penalty": 1.0} if "penalty" in known else {}
    settled |= {"random_state": 0, "decoder": "pinv"} if name == "cs" else {"random_state": 0}
    chosen = {parameter: value for parameter, value in settled.items() if parameter in known}
    return labelrace.make_model(name, **chosen, **parameters)


def is_exact(name):
    """Return whether a model says of itself that it merges exactly."""
    rows, sets = rows_of(0)
    try:
        made(name).fit(rows[:10], sets[:10]).emptied()
    except MergeError:
        return False
    return name not in NOT_EXACT


def rows_of(seed, n=60):
    """Make rows as dicts, and their labels as sets; the later a word or a label is, the later it occurs first."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, 6)) < 0.6) * rng.normal(1.0, 1.0, (n, 6))
    Y = X @ rng.normal(size=(6, 7)) + rng.normal(size=(n, 7)) > 0.5
    late = np.arange(n)[:, None] < 8 * np.arange(7) - 16
    X[late[:, :6]], Y[late] = 0.0, False
    X[0, :3], Y[0, :3], Y[1, :3] = 1.0, True, False
    rows = [{WORDS[j]: float(row[j]) for j in rng.permutation(np.flatnonzero(row))} for row in X]
    return rows, [{LABELS[j] for j in np.flatnonzero(row)} for row in Y]


EXACT = [name for name in models.ONLINE_MODELS if is_exact(name)]
MODELS = {
    **{name: partial(made, name) for name in EXACT},
    "RACE": partial(labelrace.RACEClassifier, random_state=0),
    "RACE with ridge": partial(labelrace.RACEClassifier, method="regression", learner=Ridge(), random_state=0),
    "relevance": labelrace.BinaryRelevanceClassifier,
    "chains": partial(labelrace.ClassifierChainsClassifier, n_chains=3, random_state=0),
}


def scores_by_name(model, rows):
    scores = pd.DataFrame(model.decision_function(rows), columns=list(model.label_names_))
    return scores[sorted(scores.columns)].to_numpy()


def merged_in_a_tree(models, rng, adjacent):
    """Merge models in any tree, neighbours only or any two."""
    while len(models) > 1:
        i = int(rng.integers(len(models) - 1))
        j = i + 1 if adjacent else int(rng.choice([other for other in range(len(models)) if other != i]))
        models[i].merge(models[j])
        del models[j]
    return models[0]


def test_all_models_that_merge_exactly_are_here():
    """Those of docs/in-depth/scale.md."""
    expected = (
        "race-cls-fixed obr occ oecc ridge plst plst-meka cplst faie cssp moplms cca kcca cs cl majority negative"
    )
    assert [name for name in expected.split() if name in models.ONLINE_MODELS] == EXACT


@pytest.mark.parametrize(
    ("name", "in_order"),
    [(name, in_order) for name in MODELS for in_order in (False, True) if in_order or name not in PLACED],
)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), cuts=st.sets(st.integers(11, 58), min_size=1, max_size=4))
def test_any_split_merged_in_any_tree_is_learning_everything(name, in_order, seed, cuts):
    """Labels come in any order, or their names, and so their order, are given."""
    rows, sets = rows_of(seed)
    rng = np.random.default_rng(seed)
    make = partial(MODELS[name], label_names=LABELS) if in_order else MODELS[name]
    whole = make().fit(rows[:10], sets[:10])
    common = make().fit(rows[:10], sets[:10])
    bounds = [10, *sorted(cuts), 60]
    parts = [np.arange(a, b) for a, b in itertools.pairwise(bounds)]
    for part in parts:
        whole.partial_fit([rows[i] for i in part], [sets[i] for i in part])
    shares, is_ordered = [common], name in ORDERED and not in_order
    for part in parts:
        # Within a part, rows come in another order, and with them the words and labels that are new.
        order = part if is_ordered else rng.permutation(part)
        shares.append(start(common).partial_fit([rows[i] for i in order], [sets[i] for i in order]))
    merged = merged_in_a_tree(shares, rng, adjacent=is_ordered)
    assert set(merged.label_names_) == set(whole.label_names_)
    expected, found = scores_by_name(whole, rows), scores_by_name(merged, rows)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * max(1.0, np.abs(expected).max()))


def test_columns_by_number_and_by_name():
    X, Y = np.eye(4), np.eye(4, 3)
    one = labelrace.BinaryRelevanceClassifier().fit(X, Y)
    one.merge(labelrace.BinaryRelevanceClassifier().fit(np.eye(4, 6), np.eye(4)))
    assert (one.n_features_in_, len(one.classes_)) == (6, 4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = labelrace.BinaryRelevanceClassifier().fit(frame, pd.DataFrame(Y, columns=list("xyz")))
    turned = labelrace.BinaryRelevanceClassifier().fit(
        frame[list("dbca")], pd.DataFrame(Y[:, ::-1], columns=list("zyx"))
    )
    twice = labelrace.BinaryRelevanceClassifier().fit(
        pd.concat([frame, frame]), pd.DataFrame(np.vstack([Y, Y]), columns=list("xyz"))
    )
    np.testing.assert_allclose(named.merge(turned).decision_function(frame), twice.decision_function(frame))


def test_what_cannot_be_put_in_another_order():
    rows, sets = rows_of(0)
    for name in ("cl", "kcca"):
        one, other = (
            labelrace.make_model(name, n_components=3, random_state=0, penalty=1.0).fit(rows, given)
            for given in (sets, [{LABELS[-1]}, *sets[1:]])
        )
        before = one._fitted
        with pytest.raises(MergeError, match="labels in the same order"):
            one.merge(other)
        assert one._fitted is before
    adaptive = labelrace.make_model("race-cls-adaptive", random_state=0).fit(rows, sets)
    with pytest.raises(MergeError, match="adaptive"):
        adaptive.emptied()


# The default merges well, not exactly.


def f1(model, X, Y):
    return evaluate(Y, model.predict(X), measures=["example_f1"])["example_f1"]


@pytest.mark.parametrize("settings", [{}, {"half_life": None, "optimise": "macro_f1"}])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_shares_of_the_default_come_close_to_one_pass(kind, settings):
    stream = SyntheticStream(n_rows=4000, n_features=30, n_labels=24, seed=1)
    parts = list(stream.batches(500))
    if kind == "sparse":
        parts = [(csr_array(X * (X > 0.9)), Y) for X, Y in parts]
    whole, common = (labelrace.LabelRaceClassifier(random_state=0, **settings) for _ in range(2))
    for X, Y in parts[:7]:
        whole.partial_fit(X, Y)
    common.partial_fit(*parts[0])
    gains, (held_X, held_Y) = [], parts[6]
    for X, Y in parts[1:6]:
        gains.append(gain(common, start(common).partial_fit(X, Y)))
    total = add(add(gains[0], gains[1]), add(add(gains[2], gains[3]), gains[4]))
    before = f1(common, *parts[7])
    joint = join(common, total, held_X, held_Y)
    assert joint._fitted.state.learners.rows == 3500
    assert f1(joint, *parts[7]) > f1(whole, *parts[7]) - 0.04
    assert monitoring.best_share(joint._fitted.state.monitor.counts) < 2
    # Its thresholds are read off these rows and off those before: few rows are few.
    few = join(common, total, held_X[:20], held_Y[:20])
    assert few._fitted.state.monitor.counts.histograms.of(0).rows > 50
    # Without rows to search on it is half-way.
    assert join(common, total)._fitted.state.learners.rows == 3000
    # The start is what it was, and the joint model learns on.
    assert f1(common, *parts[7]) == before
    joint.partial_fit(*parts[7]).predict(parts[0][0])


def test_two_models_of_the_default_that_met_other_labels():
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(1200, 40))) * (rng.random((1200, 40)) < 0.2)
    names = np.array(list("abcdefgh"))
    sets = [set(names[np.flatnonzero(row[:8] > 0.3)]) for row in X]
    words = [f"w{i}" for i in range(40)]
    rows = [{words[j]: row[j] for j in rng.permutation(np.flatnonzero(row))} for row in X]
    whole = labelrace.LabelRaceClassifier(random_state=0).fit(rows[:1000], sets[:1000])
    one = labelrace.LabelRaceClassifier(random_state=0).fit(rows[:500], [s - {"a"} for s in sets[:500]])
    other = labelrace.LabelRaceClassifier(random_state=0).fit(rows[500:1000], [s - {"h"} for s in sets[500:1000]])
    assert set(one.merge(other).label_names_) == set(names)
    found = [len(p & s) for p, s in zip(one.predict_labels(rows[1000:]), sets[1000:], strict=True)]
    best = [len(p & s) for p, s in zip(whole.predict_labels(rows[1000:]), sets[1000:], strict=True)]
    assert sum(found) > 0.8 * sum(best)


def test_models_of_the_default_that_make_no_sense_together():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 5)), rng.integers(2, size=(300, 3))
    dense = labelrace.LabelRaceClassifier(random_state=0).fit(X, Y)
    other_seed = labelrace.LabelRaceClassifier(random_state=1).fit(X, Y)
    sparse = labelrace.LabelRaceClassifier(random_state=0).fit(X * (rng.random(X.shape) < 0.1), Y)
    young = labelrace.LabelRaceClassifier(random_state=0).fit(X[:100], Y[:100])
    for other, reason in ((other_seed, "parameters differ"), (sparse, "sparse"), (young, "too few rows")):
        with pytest.raises(MergeError, match=reason):
            dense.merge(other)


@pytest.mark.parametrize("name", models.ONLINE_MODELS)
def test_models_that_do_not_merge_say_so_whatever_their_columns_are(name):
    """Columns are put in order only for models that merge: others are refused before."""
    rows, labels = rows_of(0, 8)
    one, other = (labelrace.make_model(name).fit(rows, each) for each in (labels, labels[::-1]))
    before = one._fitted
    try:
        one.merge(other)
    except MergeError:
        assert one._fitted is before


def test_models_of_the_default_that_would_outgrow_their_memory_together():
    """Each has labels of its own that fit; all of them do not."""
    rng = np.random.default_rng(0)
    groups = [["a", "b"], ["c", "d", "e", "f", "g", "h"]]
    X = rng.normal(size=(300, 2))
    one, other = (
        labelrace.make_model("race", random_state=0, max_memory=3200).fit(
            X, [{name for name in names if rng.random() < 0.4} for _ in X]
        )
        for names in groups
    )
    before = one._fitted
    with pytest.raises(MergeError, match="compressed in one of them only; give both a max_memory"):
        one.merge(other)
    assert one._fitted is before


@pytest.mark.parametrize("columns", [[0, 1], [0, 0, 1], [-1, 0, 1], [0.0, 1.0, 2.0], "abc"])
def test_columns_that_are_no_columns(columns):
    X, Y = np.eye(3), np.eye(3)
    one, other = (labelrace.make_model("ridge").partial_fit(X, Y) for _ in range(2))
    with pytest.raises(MergeError, match="columns must be 3 different whole numbers"):
        one.merge(other, columns=columns)
