"""What new users stumbled on."""

import numpy as np
import pandas as pd
import pytest

import labelrace
from labelrace.measures import evaluate, register_measure
from labelrace.tables import Tagger
from labelrace.tables.features import TableFeatures

THINGS = ("oven", "lamp", "door")


def tickets(n, seed=0):
    rng, rows = np.random.default_rng(seed), []
    for i in range(n):
        thing = THINGS[rng.integers(3)]
        body = f"the {thing} of w{rng.integers(50)} and w{rng.integers(50)}"
        rows.append({"id": f"T-{seed}-{i}", "body": body, "product": f"p{rng.integers(3)}", "tags": thing})
    return rows


@pytest.fixture(scope="module")
def tagger():
    return Tagger("tags", batch_size=50, random_state=0).partial_fit(tickets(300))


def test_a_precision_never_adds_tags(tagger):
    """Sure tags do not make up for others."""
    new = tickets(100, 1)
    given = tagger.predict(new)
    for precision in (0.3, 0.6, 0.9, 0.99):
        asked = Tagger(**tagger.get_params()).set_params(precision=precision).exchanged(tagger.state, tagger.model_)
        assert all(one <= other for one, other in zip(asked.predict(new), given, strict=True))


def test_texts_of_unknown_words_are_left_to_people_whatever_the_category_says(tagger):
    unknown, known, nothing = tagger.suggest(
        [{"body": "xyzzy plugh", "product": "p1"}, {"body": "xyzzy oven", "product": "p1"}, {"product": "p1"}]
    )
    assert unknown == ({}, True)
    assert known.tags
    # Without a text, the category is all there is.
    assert nothing.tags


def test_dates_that_another_program_writes_are_read():
    days = [f"2024-0{1 + i % 9}-1{i % 9}" for i in range(30)]
    features = TableFeatures(date="day").fit([{"day": day} for day in days])
    dotted = [{"day": f"{day[8:]}.{day[5:7]}.{day[:4]}"} for day in days]
    np.testing.assert_array_equal(
        features.transform(dotted).toarray(), features.transform([{"day": day} for day in days]).toarray()
    )


def test_tags_have_names(tagger):
    with pytest.raises(ValueError, match="at least one letter"):
        tagger.rename_labels({"oven": " "})
    with pytest.raises(ValueError, match="into must be"):
        tagger.merge_labels(["oven"], into="")
    with pytest.raises(ValueError, match="give \\['oven'\\]"):
        tagger.explain({"body": "oven", "product": "p1"}, tags="oven")


def test_tags_without_rows_are_tags_like_others():
    tagger = Tagger("tags", vocabulary=["kettle", "fuse"], random_state=0).partial_fit(tickets(100))
    assert tagger.tags_["kettle"].rows == 0
    assert tagger.predict_proba([{"body": "the oven", "product": "p1"}])[0].keys() == {*THINGS, "kettle", "fuse"}
    with pytest.raises(ValueError, match="names must be new"):
        tagger.rename_labels({"oven": "kettle"})
    tagger.rename_labels({"kettle": "boiler"}).drop_labels(["fuse"])
    assert tagger.tags_.keys() == {*THINGS, "boiler"}
    assert "boiler" in dict(tagger.predict_top([{"body": "a boiler", "product": "p1"}], 4)[0])


@pytest.mark.parametrize("wrong", [{"skip_known": "no"}, {"fold_tags": 1}, {"tags": []}])
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Tagger(**{"tags": "tags", **wrong}).partial_fit(tickets(20))


def test_rows_cannot_wait_under_an_id_that_is_not_equal_to_itself(tagger):
    with pytest.raises(ValueError, match="NaN"):
        labelrace.DelayedLabels(tagger).predict([{"body": "oven", "product": "p1"}], ids=[float("nan")])


def test_another_lambda_does_not_take_a_name():
    register_measure("edges_share", lambda truth, predicted: 0.0)
    with pytest.raises(ValueError, match="must be free"):
        register_measure("edges_share", lambda truth, predicted: 1.0)


def test_labels_of_frames_are_compared_by_name():
    true = pd.DataFrame({"a": [1, 0], "b": [0, 1]})
    other = true[["b", "a"]]
    assert evaluate(true, other, measures="micro_f1") == {"micro_f1": 1.0}
    assert evaluate(true, scores=other, measures="precision_at_1") == {"precision_at_1": 1.0}
    with pytest.raises(ValueError, match="Y_pred must have the columns of Y_true"):
        evaluate(true, other.rename(columns={"a": "z"}), measures="micro_f1")
