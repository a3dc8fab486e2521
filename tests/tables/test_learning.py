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
