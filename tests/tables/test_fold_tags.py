"""Tags that differ in spelling only are one, through every door by which tags come."""

from __future__ import annotations

import warnings

from labelrace import DelayedLabels, Tagger
from labelrace.streams.demo import demo_tickets
from labelrace.tables.tag_details import TagDetails
from labelrace.tables.tag_doubts import fold_details

ROWS = demo_tickets(1400)


def tagger(**parameters):
    return Tagger("tags", fold_tags=True, random_state=0, **parameters)


def ovens(tag="oven"):
    return [{"body": f"hot oven {number}", "tags": [tag]} for number in range(50)]


def test_merged_taggers():
    loud = [{**row, "tags": [tag.upper() for tag in row["tags"]]} for row in ROWS[:700]]
    merged = tagger().partial_fit(loud).merge(tagger().partial_fit(ROWS[700:]))
    assert sorted(map(str.lower, merged.tags_)) == sorted({tag for row in ROWS for tag in row["tags"]})
    known = [tag.upper() for tag in merged.tags_ if tag.isupper()]
    assert len(known) > 3
    assert merged.n_rows_ == 1400
    assert set().union(*merged.predict(ROWS)) <= set(merged.tags_)
    # The other's spelling is known from then on.
    assert set(merged.partial_fit(ROWS[:50]).tags_) == set(merged.tags_)


def test_a_vocabulary():
    learned = tagger(vocabulary={"Oven": {"parent": "kitchen"}, "OVEN": {}, "Kitchen": {}}).partial_fit(ovens())
    assert {tag: one.rows for tag, one in learned.tags_.items()} == {"Oven": 50, "Kitchen": 0}
    assert learned.state.details["Oven"].parent == "Kitchen"


def test_tags_that_are_added():
    learned = tagger().partial_fit(ovens()).add_labels({"OVEN": {"synonyms": ["stove"]}, "Door": {}})
    assert list(learned.tags_) == ["oven", "Door"]
    assert learned.state.details["oven"].synonyms == ("stove",)


def test_rows_that_wait():
    delayed = DelayedLabels(tagger(batch_size=50).partial_fit(ROWS[:200]))
    delayed.predict([{**row, "tags": None} for row in ROWS[200:400]], ids=range(200))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        delayed.learn(range(200), [{"Brandnew"} if number < 60 else {"brandNEW"} for number in range(200)])
    assert [tag for tag in delayed.model.tags_ if tag.lower() == "brandnew"] == ["Brandnew"]


def test_details_of_two_spellings_are_put_together():
    folded = fold_details({"Oven": TagDetails(), "oven": TagDetails(("stove",), "hot", "OVEN")}, [])
    assert folded == {"Oven": TagDetails(("stove",), "hot", None)}
