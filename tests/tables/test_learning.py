"""What a batch has led to: which of its rows were new, known or corrected."""

from labelrace import Tagger
from labelrace.streams.demo import demo_tickets
from labelrace.tables.learning import learn
from labelrace.tables.tags import tagged_batches

ROWS = demo_tickets(300)


def lesson_of(tagger, known, rows):
    [batch] = tagged_batches(rows, None, "tags", None, 500)
    return learn(tagger, known, *batch)


def test_a_lesson_tells_which_rows_are_new_known_and_corrected():
    tagger = Tagger("tags", random_state=0)
    first = lesson_of(tagger, None, ROWS[:200])
    assert first.rows == list(range(200))
    assert first.met.to_test(first.rows, first.rows)[0] == first.rows
    again = [ROWS[5], {**ROWS[6], "tags": ["printer"]}, {**ROWS[250], "tags": None}, ROWS[251]]
    second = lesson_of(tagger, first.known, again)
    assert second.rows == [0, 1, 3]
    assert second.met.is_known.tolist() == [True, False, False]
    assert second.met.is_correction.tolist() == [False, True, False]
    assert second.known.state.n_rows == 202
    assert second.predicted == [set()] * 4


def test_a_batch_that_teaches_nothing_meets_nothing():
    tagger = Tagger("tags", random_state=0)
    assert lesson_of(tagger, None, [{**row, "tags": None} for row in ROWS[:9]]) == (None, [set()] * 9, [], None)


def test_the_first_rows_are_learned_in_parts_which_are_tested():
    """A table learned at once is learned as if it came 100 rows at a time, and what was predicted is kept in order."""
    whole, parts = (Tagger("tags", batch_size=size, random_state=0) for size in (500, 100))
    rows = demo_tickets(2300)
    assert whole.prequential_fit(rows[:2000]) == parts.prequential_fit(rows[:2000])
    assert whole.quality_ == parts.quality_
    assert whole.quality_["rows"] == 1900
    assert whole.predict_proba(rows[2000:]) == parts.predict_proba(rows[2000:])
    # Later batches are whole.
    assert whole.prequential_fit(rows[2000:]) == parts.predict(rows[2000:])


def test_all_rows_of_the_first_batch_tell_the_kinds_of_columns():
    """A column whose first hundred cells are numbers."""
    rows = [
        {"body": f"some words {i}", "code": str(i) if i < 100 else f"red{i % 3}", "tags": ["a", "b"][i % 2]}
        for i in range(400)
    ]
    assert [column.kind for column in Tagger("tags", random_state=0).partial_fit(rows).columns_] == ["text", "category"]


def test_parts_of_a_batch_are_told_apart():
    tagger = Tagger("tags", random_state=0)
    untagged = [{**row, "tags": None} for row in ROWS[:120]]
    lesson = lesson_of(tagger, None, [*untagged, *ROWS[120:250], ROWS[130], {**ROWS[131], "tags": ["printer"]}])
    assert lesson.rows == list(range(120, 252))
    assert lesson.met.is_known.tolist() == [False] * 130 + [True, False]
    assert lesson.met.is_correction.tolist() == [False] * 131 + [True]
    assert lesson.known.state.n_rows == 131
    assert (lesson.known.state.n_known, lesson.known.state.n_corrections) == (1, 1)
    assert len(lesson.predicted) == 252
