"""Suggested tags: what names add, and what a precision that is asked for leads to."""

import numpy as np
import pytest

import labelrace
from labelrace.streams.demo import demo_tickets
from labelrace.tables import Tagger
from labelrace.tables.known import Wanted
from labelrace.tables.name_matches import Matches
from labelrace.tables.suggestions import Candidates, Suggestions, least_confidence, observe, rule, with_names

THINGS = [
    f"{first}{second}" for first in ("lam", "ove", "doo", "fri", "toa", "ket") for second in ("pen", "vit", "dor")
]


def tickets(n, seed=0, name=str):
    """Return tickets whose titles hold the name of the tag, half of the time, among other words."""
    rng, rows = np.random.default_rng(seed), []
    for number in range(n):
        tag = int(rng.integers(len(THINGS)))
        words = [f"word{rng.integers(300)}" for _ in range(5)] + [f"sign{tag}x{rng.integers(20)}"]
        words += [THINGS[tag] if rng.random() < 0.5 else "thing"]
        title = " ".join(rng.permutation(words))
        rows.append({"id": f"T-{seed}-{number}", "title": title, "tags": [name(THINGS[tag])]})
    return rows


def own_top(tagger, rows):
    """Return the most likely tag of rows by the model alone."""
    features = tagger.new_features().restore(tagger.state.features)
    X = features.transform([{"id": row["id"], "title": row["title"]} for row in rows])
    return [top[0][0] for top in tagger.model_.predict_top(X, 1)]


def share_right(tagger, rows):
    return np.mean([row["tags"][0] == top[0][0] for row, top in zip(rows, tagger.predict_top(rows, 1), strict=True)])


def test_what_names_add_is_least_squares():
    rng = np.random.default_rng(0)
    n, tag_rows = 40, np.array([0.0, 3.0, 50.0])
    likely = Candidates(np.tile([0, 1], (n, 1)), rng.random((n, 2)))
    matches = Matches(np.arange(n), rng.integers(3, size=n), rng.random((n, 3)))
    true = [{int(tag)} if right else set() for tag, right in zip(matches.tags, rng.random(n) < 0.5, strict=True)]
    state = observe(
        Suggestions(),
        likely,
        np.zeros(n),
        matches,
        true,
        tag_rows,
        "abc",
        rule(Suggestions(), "cardinality"),
        np.full(n, 9),
    )
    designs, errors = [], []
    for row in range(n):
        tag, found = int(matches.tags[row]), matches.found[row]
        p = likely.scores[row, tag] if tag < 2 else 0.0
        designs.append((1 - p) * np.append(found, found * np.log1p(tag_rows[tag])))
        errors.append(float(tag in true[row]) - p)
    first = Suggestions().weights
    prior = np.sqrt(5.0) * np.eye(6)
    expected = np.linalg.lstsq(np.vstack([*designs, prior]), np.append(errors, prior @ first), rcond=None)[0]
    np.testing.assert_allclose(state.weights, expected, rtol=1e-9)
    found = with_names(state, likely, matches, tag_rows)
    for row in range(n):
        added = {int(tag): score for tag, score in zip(found.tags[row], found.scores[row], strict=True) if tag >= 0}
        tag = int(matches.tags[row])
        p = likely.scores[row, tag] if tag < 2 else 0.0
        assert added[tag] == pytest.approx(max(p + designs[row] @ expected, -np.inf if tag < 2 else 0.0))


def test_names_help_at_once_and_codes_do_no_harm():
    rows = tickets(1400)
    named = Tagger("tags", batch_size=20, random_state=0).partial_fit(rows[:60])
    codes = {thing: f"Q{number:02d}" for number, thing in enumerate(THINGS)}
    coded_rows = tickets(1400, name=codes.get)
    coded = Tagger("tags", batch_size=20, random_state=0).partial_fit(coded_rows[:60])
    assert share_right(named, rows[400:]) > share_right(coded, coded_rows[400:]) + 0.05
    # Nothing in the rows is the name of a tag: what the model says is what the tagger says.
    assert own_top(coded, coded_rows[400:]) == [top[0][0] for top in coded.predict_top(coded_rows[400:], 1)]


def test_names_that_mislead_are_turned_off():
    """Each title has the name of another tag."""
    other = {thing: THINGS[(number + 1) % len(THINGS)] for number, thing in enumerate(THINGS)}
    rows = tickets(3000, name=other.get)
    tagger = Tagger("tags", batch_size=100, random_state=0).partial_fit(rows[:2000])
    assert tagger.state.suggestions.weights[0] < 0.05
    own = np.mean([row["tags"][0] == tag for row, tag in zip(rows[2000:], own_top(tagger, rows[2000:]), strict=True)])
    assert share_right(tagger, rows[2000:]) > own - 0.01


def test_a_tag_that_is_added_today_is_suggested_tomorrow(tmp_path):
    tagger = Tagger("tags", random_state=0).partial_fit(tickets(1000))
    new = {"gearbox": {}, "E-17": {"synonyms": ["water leak"], "description": "The door of the cellar is wet"}}
    asked = [{"title": "gearbox word3"}, {"title": "leaks of water"}, {"title": "word3"}]
    assert not {"gearbox", "E-17"} & {tag for top in tagger.predict_top(asked, 3) for tag, _ in top}
    tagger.add_labels(new)
    tagger.save(tmp_path / "t.labelrace")
    for one in (tagger, labelrace.load(tmp_path / "t.labelrace")):
        tops = [[tag for tag, _ in top] for top in one.predict_top(asked, 3)]
        assert "gearbox" in tops[0]
        assert "E-17" in tops[1]
        assert not {"gearbox", "E-17"} & set(tops[2])
        assert "its name, in a short text" in dict(one.explain(asked[0], tags=["gearbox"])["gearbox"])
    known = Tagger("tags", vocabulary=new, random_state=0).partial_fit(tickets(1000))
    assert known.predict_top(asked, 3) == tagger.predict_top(asked, 3)
    # Of a tag that is renamed, the old name is still looked for.
    renamed = tagger.rename_labels({THINGS[0]: "quite another"})
    assert "quite another" in [tag for tag, _ in renamed.predict_top([{"title": THINGS[0]}], 3)[0]]


def test_saved_and_loaded_it_suggests_the_same(tmp_path):
    tagger = Tagger("tags", batch_size=100, precision=0.8, random_state=0).partial_fit(tickets(1000))
    tagger.save(tmp_path / "t.labelrace")
    new = tickets(200, seed=1)
    assert labelrace.load(tmp_path / "t.labelrace").suggest(new) == tagger.suggest(new)


def noisy_tickets(n, seed=0):
    """Return tickets of twenty tags, which are right with a probability of their own: .99 down to .6."""
    rng, rows = np.random.default_rng(seed), []
    for number in range(n):
        tag = int(rng.integers(20))
        is_right = rng.random() < 0.99 - 0.02 * tag
        words = [f"sign{tag}x{rng.integers(5)}" for _ in range(3)] + [f"word{rng.integers(300)}" for _ in range(4)]
        given = f"t{tag}" if is_right else f"t{rng.integers(20)}"
        rows.append({"id": f"{seed}/{number}", "title": " ".join(words), "tags": [given]})
    return rows


@pytest.mark.parametrize("precision", [0.8, 0.9])
def test_the_precision_that_is_asked_for_is_kept(precision):
    tagger = Tagger("tags", precision=precision, random_state=0).partial_fit(noisy_tickets(6000))
    new = noisy_tickets(4000, seed=1)
    suggested = tagger.suggest(new)
    given = [(tag, row["tags"][0]) for row, one in zip(new, suggested, strict=True) for tag in one.tags]
    assert precision - 0.05 < np.mean([tag == right for tag, right in given]) < precision + 0.05
    assert len(given) > 1000
    assert [one.review for one in suggested] == [not one.tags for one in suggested]
    assert tagger.predict(new) == [set(one.tags) for one in suggested]
    curve = tagger.precision_curve_
    assert (np.diff(curve.handled) <= 0).all()
    assert curve.handled[0] == pytest.approx(1.0)


def test_rows_unlike_anything_seen_are_left_to_people():
    tagger = Tagger("tags", random_state=0).partial_fit(tickets(1000))
    nothing, something = tagger.suggest([{"title": "asdf qwer"}, {"title": THINGS[0]}])
    assert nothing == ({}, True)
    assert something.tags
    assert not something.review
    assert tagger.predict([{"title": "asdf qwer"}]) == [set()]


def test_a_value_that_decides_is_enough_beside_unknown_words():
    rows = [
        {"body": f"word{i % 50} text{i % 7} here", "shop": f"c{i % 4}", "price": float(i % 9), "tags": [f"t{i % 4}"]}
        for i in range(800)
    ]
    tagger = Tagger("tags", text="body", category="shop", random_state=0).partial_fit(rows)
    asked = [
        {"body": "zzz", "shop": "c1"},
        {"body": "zzz", "shop": "new"},
        {"body": "zzz"},
        {"body": "zzz", "price": 3.0},
    ]
    assert tagger.predict(asked) == [{"t1"}, set(), set(), set()]


def test_tags_below_the_least_probability_are_not_given():
    tagger = Tagger("tags", random_state=0).partial_fit(noisy_tickets(2000))
    every = tagger.suggest(noisy_tickets(200, seed=1))
    tagger.set_params(min_probability=0.7)
    for one, other in zip(every, tagger.suggest(noisy_tickets(200, seed=1)), strict=True):
        assert other.tags == {tag: likely for tag, likely in one.tags.items() if likely >= 0.7}
        assert other.review == (not other.tags)


@pytest.mark.parametrize("wrong", [{"precision": 1.5}, {"precision": "high"}, {"min_probability": -1}])
def test_wrong_shares_are_refused(wrong):
    tagger = Tagger("tags", random_state=0).partial_fit(tickets(200)).set_params(**wrong)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        tagger.predict(tickets(5))


@pytest.mark.parametrize(
    ("wanted", "optimise"),
    [
        (Wanted(), "cardinality"),
        (Wanted(), "macro_f1"),
        (Wanted(precision=0.9), "cardinality"),
        (Wanted(min_probability=0.4), "cardinality"),
        (Wanted(single=True), "cardinality"),
    ],
)
@pytest.mark.parametrize("k", [1, 5, 40])
def test_ranked_rows_have_the_suggested_tags_and_the_most_likely(wanted, optimise, k):
    rows, model = demo_tickets(700), labelrace.make_model("race", optimise=optimise)
    known = labelrace.Tagger("tags", model=model, random_state=0).partial_fit(rows[:640])._known
    unknown = {"ticket": "T-0", "subject": "qwertz", "body": ""}
    read = known.features.read([*({name: row[name] for name in unknown} for row in rows[640:]), unknown])
    ranked, tops = known.ranked(read, wanted, k), known.predict_top(read, k)
    assert [(one.tags, one.review) for one in ranked] == known.suggest(read, wanted)
    for one, top in zip(ranked, tops, strict=True):
        assert one.likely[:k] == top
        assert dict(one.likely).items() >= one.tags.items()
        assert {tag for tag, _ in one.likely[k:]} <= one.tags.keys()


def test_a_precision_gives_no_tag_that_is_less_sure_than_all_that_were_right():
    confidences = np.zeros((3, 100))
    confidences[:, 95] = 200, 198, 190  # given, right, sum of confidences
    confidences[:, 19] = 5, 0, 0.95
    state = Suggestions(confidences=confidences)
    assert least_confidence(state, 0.9) == 0.95


def test_one_tag_a_row_is_chosen_first_and_then_limited():
    rows = tickets(1200)
    tagger = Tagger("tags", random_state=0, single=True).partial_fit(rows[:1000])
    alone = tagger.predict(rows[1000:])
    tagger.set_params(precision=0.9)
    limited = tagger.predict(rows[1000:])
    assert any(limited)
    assert all(not few or few == one for few, one in zip(limited, alone, strict=True))
    assert max(map(len, limited)) == 1
