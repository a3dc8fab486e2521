"""What a tagger knows is one value: refused and interrupted calls leave it as it was, and threads may share it."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from helpers import interrupts

from labelrace import Tagger, load
from labelrace.exceptions import MergeError

WORDS = ["oven", "toaster", "kettle", "grill", "fridge"]
ROWS = [{"body": f"the {WORDS[i % 5]} is {i % 3}", "price": float(i % 7), "tags": WORDS[i % 5]} for i in range(40)]
NEW = [{"body": f"a new {word} {i}", "price": 1.0, "tags": ["new", word]} for i, word in enumerate(WORDS)]


def tagger_of(rows=ROWS, model="obr", **parameters):
    return Tagger("tags", model=model, min_rows=1, random_state=0, **parameters).partial_fit(rows)


def seen_of(tagger):
    """List what anybody can see of a tagger."""
    return tagger.n_rows_, sorted(tagger.tags_), tagger.predict_proba(ROWS[:3]), tagger.predict(NEW)


@pytest.fixture
def short_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


CALLS = {
    "partial_fit": lambda tagger: tagger.partial_fit(NEW),
    "fit": lambda tagger: tagger.fit(NEW),
    "rename_labels": lambda tagger: tagger.rename_labels({"oven": "stove"}),
    "merge_labels": lambda tagger: tagger.merge_labels(["oven", "grill"], "hot"),
}


@pytest.mark.parametrize("name", CALLS)
def test_interrupts(name):
    tagger, call = tagger_of(), CALLS[name]
    start, before = tagger._known, seen_of(tagger)
    after = seen_of(call(tagger))
    assert before != after

    def again():
        tagger._known = start
        return tagger

    def check(tagger):
        assert seen_of(tagger) == (before if tagger._known is start else after)

    # Not at each of some 2,000 lines, which would take minutes.
    line = 1
    while interrupts.interrupted_at(line, lambda: call(again())):
        check(tagger)
        line += 1 + line // 6
    assert line > 20


def test_refused_after_columns_were_taken_from_other_words():
    """Their weights are forgotten before the model learns the batch, and it must have them if it does not."""
    tagger = tagger_of(model="arow", max_features=8)
    before = seen_of(tagger)
    tagger.model_.set_params(r=77.0)
    with pytest.raises(ValueError, match="Parameters were changed after fitting"):
        tagger.partial_fit([{"body": "quite other words here", "price": 1.0, "tags": "oven"}] * 30)
    assert seen_of(tagger) == before


def test_a_refused_fit_and_merge():
    tagger = tagger_of()
    before = seen_of(tagger)
    with pytest.raises(ValueError, match="X must have rows with tags"):
        tagger.fit([], [])
    with pytest.raises(MergeError):
        tagger.merge(tagger_of([{"body": 3.5, "tags": "oven"}] * 30))
    assert seen_of(tagger) == before


def test_names_of_tags_that_are_no_text():
    tagger = tagger_of()
    before = seen_of(tagger)
    for tags in (5, None, [[]], [5], "oven"):
        with pytest.raises(ValueError, match="tags must be a list of tags"):
            tagger.drop_labels(tags)
    for names in (None, {"oven": 5}, {"oven": None}):
        with pytest.raises(ValueError, match="names must be a dict"):
            tagger.rename_labels(names)
    with pytest.raises(ValueError, match="into must be the name of a tag"):
        tagger.merge_labels(["oven", "grill"], 5)
    assert seen_of(tagger) == before


def test_threads(short_turns):
    """Two threads predict while two learn: every prediction is of one moment, and no row is lost."""
    tagger, errors, learning = tagger_of().set_params(skip_known=False), [], [True, True]

    def predict():
        try:
            while any(learning):
                [row] = tagger.predict_proba(ROWS[:1])
                assert row.keys() in (set(WORDS), {*WORDS, "new"})
                assert tagger.predict(ROWS[:2]) is not None

        except Exception as error:
            errors.append(error)

    def learn(number):
        try:
            for _ in range(8):
                tagger.partial_fit(NEW)
        except Exception as error:
            errors.append(error)
        finally:
            learning[number] = False

    threads = [threading.Thread(target=predict) for _ in range(2)]
    threads += [threading.Thread(target=learn, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert tagger.n_rows_ == 40 + 2 * 8 * 5


def test_parameters_of_numpy_can_be_saved(tmp_path):
    tagger = Tagger("tags", batch_size=np.int64(100), encoders_only=np.False_, random_state=0)
    tagger.fit([{"text": "one two three", "tags": "a"}, {"text": "four five six", "tags": "b"}] * 5)
    tagger.save(tmp_path / "tagger")
    assert load(tmp_path / "tagger").batch_size == 100
