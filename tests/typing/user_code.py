"""What a user's type checker knows; `test_types.py` has mypy check it, nothing runs it."""

from typing import Any, assert_type

import labelrace
from labelrace import DelayedLabels, LabelRaceClassifier, RACEClassifier, Tagger
from labelrace.base.estimator import OnlineClassifier
from labelrace.tables.known import Suggestion


def use() -> None:
    """Use models and taggers."""
    model = labelrace.load("model.safetensors")
    assert_type(model, OnlineClassifier | Tagger | DelayedLabels)
    model.predict([[1.0]])
    model.predict_top([[1.0]])
    model.save("again.safetensors")
    if isinstance(model, Tagger):
        assert_type(model.predict("rows.csv"), list[set[str]])

    tagger = labelrace.load("tagger.labelrace", Tagger)
    assert_type(tagger, Tagger)
    assert_type(tagger.predict([{"title": "oven"}]), list[set[str]])
    assert_type(tagger.predict_top([{"title": "oven"}], 3), list[list[tuple[str, float]]])
    assert_type(tagger.predict_top([{"title": "oven"}], as_frame=True), Any)
    assert_type(tagger.suggest([{"title": "oven"}]), list[Suggestion])
    assert_type(tagger.explain({"title": "oven"}), dict[str, list[tuple[str, float]]])

    race = labelrace.load("model.safetensors", RACEClassifier)
    assert_type(race, RACEClassifier)
    assert_type(race.predict_labels([[1.0]]), list[set[Any]])
    assert_type(labelrace.make_model("race"), LabelRaceClassifier)

    model.predict_tag([[1.0]])  # type: ignore[union-attr]
