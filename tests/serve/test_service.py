"""The service: what it answers, what it remembers, and that those who ask do not wait for those who teach."""

from __future__ import annotations

import threading
import time

import pytest
from helpers.serving import TICKETS, feedback, predict, serving, teach, without_tags

import labelrace
from labelrace.serve import export, snapshots, views
from labelrace.serve.lessons import Lesson, Limits, Prediction
from labelrace.serve.problems import Problem
from labelrace.serve.service import open_service
from labelrace.tables import Tagger


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """Yield a service that has learned 300 rows, for tests that change nothing of them."""
    with serving(tmp_path_factory.mktemp("journal")) as service:
        teach(service, TICKETS[:300], 50)
        yield service


def test_it_predicts_what_the_tagger_predicts(taught):
    tagger = labelrace.Tagger("tags", id="id", untagged="none", random_state=0)
    for start in range(0, 300, 50):
        tagger.prequential_fit(TICKETS[start : start + 50])
    rows = [{name: row[name] for name in ("subject", "body")} for row in TICKETS[300:350]]
    answer = predict(taught, rows)
    suggested, top = tagger.suggest(rows), tagger.predict_top(rows, views.N_LIKELY)
    assert [row["tags"] for row in answer["rows"]] == [list(one.tags) for one in suggested]
    assert [row["review"] for row in answer["rows"]] == [one.review for one in suggested]
    assert [row["probabilities"] for row in answer["rows"]] == [{tag: round(p, 6) for tag, p in one} for one in top]
    assert all("id" not in row for row in answer["rows"])
    alone = [predict(taught, [row])["rows"][0] for row in rows[:5]]
    assert [row["tags"] for row in alone] == [row["tags"] for row in answer["rows"][:5]]


def test_a_wrong_request_does_not_spoil_others(taught):
    good, wrong, also = taught.predict(
        [Prediction([{"body": "invoice"}]), Prediction([{"body": {}}]), Prediction([{"body": "x"}, {"body": "y"}])]
    )
    assert len(good["rows"]) == 1
    assert isinstance(wrong, Problem)
    assert len(also["rows"]) == 2


LISTS = [{"title": f"The oven is hot {i}", "parts": ["ab"[i % 2], f"x{i % 5}"], "tags": ["oven"]} for i in range(30)]


def test_a_row_that_the_model_cannot_read_is_a_problem_of_its_own_request(tmp_path):
    with serving(tmp_path) as service:
        teach(service, LISTS, 30)
        good, wrong, also = service.predict(
            [
                Prediction([{"id": "G", "title": "A hot oven"}]),
                Prediction([{"id": "B-0", "title": "oven"}, {"id": "B-1", "title": "oven", "parts": "1,2,3"}]),
                Prediction([{"title": "cold", "parts": ["a"]}]),
            ]
        )
        assert good["rows"][0]["tags"] == ["oven"]
        assert len(also["rows"]) == 1
        assert (wrong.status, wrong.errors[0]["row"], wrong.errors[0]["field"]) == (422, 1, "parts")
        assert len(wrong.errors) == 1
        assert [row["id"] for row in service.rows()["rows"]] == ["G"], "nothing of a refused request waits"


def test_a_stored_row_that_the_model_cannot_read_is_listed_with_the_reason(tmp_path):
    with serving(tmp_path) as service:
        predict(service, [{"id": "B", "title": "oven", "parts": "1,2,3"}, {"id": "G", "title": "A hot oven"}])
        teach(service, LISTS, 30)
        for order in ("newest", "review", "useful"):
            listed = {row["id"]: row["suggested"] for row in service.rows(order=order)["rows"]}
            assert listed["G"]["tags"] == ["oven"]
            assert (listed["B"]["tags"], listed["B"]["probabilities"], listed["B"]["review"]) == ([], {}, True)
            assert "'parts'" in listed["B"]["reason"]
        assert "'parts'" in service.row("B")["suggested"]["reason"]
        assert service.row("B")["explanation"] == {}


def test_nothing_is_noted_of_what_cannot_be_learned(tmp_path, monkeypatch):
    learn = Tagger.after_batch

    def picky(tagger, table, *given, **named):
        if "Refuse me" in table.columns["body"] or any("refused" in tags for tags in given[0]):
            raise ValueError("It is refused.")
        return learn(tagger, table, *given, **named)

    monkeypatch.setattr(Tagger, "after_batch", picky)
    with serving(tmp_path) as service, serving(tmp_path) as other:
        teach(service, TICKETS[:20])
        predict(service, without_tags(TICKETS[20:23]))
        told, waiting, later = (row["id"] for row in TICKETS[20:23])
        feedback(service, {"id": told, "tags": ["oven"]}, who="Ann")
        answers = service.teach(
            [
                Lesson("learn", {"rows": [TICKETS[30], {"id": "new", "body": "Refuse me", "tags": ["x"]}]}),
                Lesson("feedback", {"rows": [{"id": told, "tags": ["refused"]}, {"id": waiting, "tags": ["refused"]}]}),
                Lesson("feedback", {"rows": [{"id": later, "tags": ["refused"]}]}),
                Lesson("feedback", {"rows": [{"id": later, "tags": ["door"]}]}, who="Ben"),
            ]
        )
        assert [getattr(answer, "detail", "") for answer in answers] == [*["It is refused."] * 3, ""]
        other.wait_for(answers[-1]["position"], 10)
        for one in (service, other):
            with pytest.raises(Problem, match="no row 'new'"):
                one.row("new")
            with pytest.raises(Problem, match="no row"):
                one.row(TICKETS[30]["id"])
            row = one.row(told)
            assert (row["state"], row["tags"], row["who"], len(row["history"])) == ("tagged", ["oven"], "Ann", 1)
            row = one.row(waiting)
            assert (row["state"], row["tags"], row["who"], row["history"]) == ("waiting", None, None, [])
            row = one.row(later)
            assert (row["state"], row["tags"], row["who"], len(row["history"])) == ("tagged", ["door"], "Ben", 1)
        assert service.status()["rows"] == other.status()["rows"] == 22


def test_rows_that_wait_go_on_waiting_if_they_cannot_be_learned(tmp_path, monkeypatch):
    """Also those with other cells now, and those that came before anything was learned."""

    def picky(tagger, table, *given, **named):
        raise ValueError("It is refused.")

    with serving(tmp_path) as service:
        predict(service, [{"id": "A", "body": "Before the first lesson"}])
        teach(service, TICKETS[:20])
        predict(service, [{"id": "B", "body": "One text"}])
        monkeypatch.setattr(Tagger, "after_batch", picky)
        for row in ({"id": "A", "body": "Before the first lesson"}, {"id": "B", "body": "Another text"}):
            [answer] = service.teach([Lesson("learn", {"rows": [{**row, "tags": ["x"]}]})])
            assert answer.detail == "It is refused."
            kept = service.row(row["id"])
            assert (kept["state"], kept["tags"], kept["history"]) == ("waiting", None, [])


def test_a_tag_is_removed_by_the_name_that_it_had(tmp_path):
    with serving(tmp_path) as service:
        teach(service, [{"id": "A", "body": "x", "tags": ["zoo", "ship"]}, {"id": "B", "body": "y", "tags": ["ship"]}])
        service.teach([Lesson("rename", {"names": {"zoo": "animals"}})])
        feedback(service, {"id": "A", "remove": ["zoo"]})
        assert service.row("A")["tags"] == ["ship"]
        feedback(service, {"id": "A", "add": ["zoo", "animals"]})
        assert service.row("A")["tags"] == ["ship", "animals"]


def test_what_is_on_disk_and_not_learned_in_time_is_said_to_be_pending(tmp_path, monkeypatch):
    with serving(tmp_path, patience_seconds=0.05, poll_seconds=0.02) as service:
        gate, learn = threading.Event(), service._learn
        monkeypatch.setattr(service, "_learn", lambda batch: gate.wait(60) and learn(batch))
        monkeypatch.setattr(service, "appended", lambda entries: None)
        [answer] = service.teach([Lesson("learn", {"rows": TICKETS[:2]}, "k")])
        assert answer == {"learned": 2, "position": 1, "pending": True}
        gate.set()
        assert service.wait_for(1, 10)
        assert service.teach([Lesson("learn", {"rows": TICKETS[:2]}, "k")]) == [{"learned": 2, "position": 1}]


def test_a_row_that_somebody_has_open_stays_open_when_it_is_predicted_again(tmp_path):
    with serving(tmp_path) as service:
        predict(service, [{"id": "A", "body": "x"}])
        service.open_row("A", "Ann")
        predict(service, [{"id": "A", "body": "x"}])
        assert service.row("A")["open_by"] == "Ann"
        feedback(service, {"id": "A", "tags": ["zoo"]})
        assert service.row("A")["open_by"] is None


def test_explanations_name_words(taught):
    [row] = predict(taught, [{"body": "My printer has no paper"}], explain=True)["rows"]
    assert "printing" in row["explanation"]
    assert row["explanation"]["printing"][0][0].startswith("body: p")


def test_nothing_is_suggested_before_the_first_lesson(tmp_path):
    with serving(tmp_path) as service:
        [row] = predict(service, [{"id": "Q", "body": "Hello"}])["rows"]
        assert row == {"id": "Q", "tags": [], "probabilities": {}, "review": True}
        assert service.quality()["tested"] == 0
        assert service.tags() == {"tags": [], "position": 0}
        assert feedback(service, {"id": "Q", "tags": ["greeting"]}) == {"learned": 1, "position": 1}
        assert service.status()["tags"] == 1


def test_feedback(tmp_path):
    with serving(tmp_path) as service:
        teach(service, TICKETS[:100], 50)
        given = predict(service, without_tags(TICKETS[100:103]))["rows"]
        one, two, three = (row["id"] for row in given)
        start = service.row(two)["suggested"]["tags"]
        answer = feedback(service, {"id": one, "tags": []}, {"id": two, "add": ["zoo"], "remove": start[:1]}, who="Ann")
        assert answer == {"learned": 2, "position": 3}
        assert service.row(one)["tags"] == []
        assert service.row(two)["tags"] == [*start[1:], "zoo"]
        assert service.row(two)["who"] == "Ann"
        assert service.row(three)["state"] == "waiting"
        assert service.status()["rows"] == 102
        feedback(service, {"id": two, "add": ["new"], "remove": ["zoo"]}, who="Bob")
        assert [said["who"] for said in service.row(two)["history"]] == ["Ann", "Bob"]
        assert service.row(two)["tags"] == [*start[1:], "new"]
        assert service.quality()["days"][0]["corrections"] == 1
        assert feedback(service, {"id": two, "tags": None}) == {"learned": 0, "position": 5}
        assert service.row(two)["state"] == "waiting"


def test_feedback_on_rows_that_are_not_known_changes_nothing(tmp_path):
    with serving(tmp_path) as service:
        teach(service, TICKETS[:20])
        problem = feedback(service, {"id": TICKETS[0]["id"], "tags": ["x"]}, {"id": "none", "tags": ["y"]})
        assert (problem.status, problem.errors[0]["row"], problem.errors[0]["field"]) == (404, 1, "id")
        assert service.status()["position"] == 2
        assert "x" not in service.row(TICKETS[0]["id"])["tags"]


def test_columns_that_are_learned_are_limited(tmp_path):
    """Names that are ids in truth must not make every later prediction slow."""
    with serving(tmp_path, limits=Limits(max_columns=10)) as service:
        teach(service, [{"title": "oven", **{f"c{n}": "x" for n in range(5)}, "tags": ["hot"]}])
        few, many = ([{f"d{n}": "x" for n in range(size)} | {"tags": ["hot"]}] for size in (3, 4))
        [problem, answer, again] = service.teach([Lesson("learn", {"rows": rows}) for rows in (many, few, many)])
        assert answer["learned"] == 1
        for refused in (problem, again):
            assert (refused.status, refused.errors[0]["row"], refused.errors[0]["field"]) == (422, 0, "d3")
        predict(service, [{"id": "P-1", "title": "oven", "e": "x"}, {"id": "P-2", "title": "oven", "c1": "y"}])
        assert feedback(service, {"id": "P-2", "tags": ["hot"]})["learned"] == 1
        assert feedback(service, {"id": "P-2", "tags": ["hot"]}, {"id": "P-1", "tags": []}).errors[0]["row"] == 1
        # What is withdrawn is not learned.
        assert feedback(service, {"id": "P-1", "tags": None})["learned"] == 0
        assert len({column.name for column in service.folded.tagger.columns_}) == 10


def test_columns_that_nobody_has_taught_are_not_read(taught):
    row = {"subject": "Invoice", "body": "a wrong charge"}
    wide = [row | {f"c{150 * at + n}": "invoice" for n in range(150)} for at in range(6)]
    one = predict(taught, [row])["rows"][0]
    begun = time.process_time()
    [answer] = taught.predict([Prediction(wide)])
    assert answer["rows"] == [one] * 6
    answers = taught.predict([Prediction([row | {f"c{200 * at + n}": "x" for n in range(190)}]) for at in range(250)])
    assert [answer["rows"] for answer in answers] == [[one]] * 250
    assert time.process_time() - begun < 5


def test_a_key_counts_once(tmp_path):
    with serving(tmp_path) as service:
        lesson = Lesson("learn", {"rows": TICKETS[:5]}, "k")
        first, second, third = service.teach([lesson, lesson, Lesson("learn", {"rows": TICKETS[5:8]}, "other")])
        assert first == second == {"learned": 5, "position": 1}
        assert third["position"] == 2
        assert service.teach([lesson]) == [first]
        [problem] = service.teach([Lesson("learn", {"rows": TICKETS[5:7]}, "k")])
        assert problem.status == 422
        assert service.status()["rows"] == 8
    with serving(tmp_path) as service:
        assert service.teach([lesson]) == [first]
        assert service.status()["rows"] == 8


def test_requests_of_one_call_are_one_batch_and_changes_of_tags_are_alone(tmp_path):
    with serving(tmp_path) as service:
        requests = [Lesson("learn", {"rows": [row]}) for row in TICKETS[:6]]
        rename = Lesson("rename", {"names": {TICKETS[0]["tags"][0]: "other"}})
        answers = service.teach([*requests[:3], rename, *requests[3:]])
        assert [answer["position"] for answer in answers] == [1, 2, 3, 4, 5, 6, 7]
        with service.database.reading() as connection:
            batches = service.journal.batches(connection, 0)
        assert [[entry.position for entry in batch] for batch in batches] == [[1, 2, 3], [4], [5, 6, 7]]
        assert service.status()["rows"] == 6


def test_what_is_wrong_in_a_call_leaves_the_others(tmp_path):
    with serving(tmp_path) as service:
        good, wrong, also = service.teach(
            [Lesson("learn", {"rows": [row]}) for row in (TICKETS[0], {"body": "x"}, TICKETS[1])]
        )
        assert (good["position"], also["position"], wrong.status) == (1, 2, 422)
        assert service.status()["rows"] == 2


def test_rows_in_order(tmp_path):
    with serving(tmp_path) as service:
        teach(service, TICKETS[:200], 100)
        predict(service, [*without_tags(TICKETS[300:330]), {"id": "odd", "subject": "Qqq", "body": "Xyzzy!"}])
        listed = service.rows(limit=100)
        assert listed["waiting"] == 31
        assert [row["id"] for row in listed["rows"]] == ["odd", *(row["id"] for row in reversed(TICKETS[300:330]))]
        assert service.rows(order="review", limit=1)["rows"][0]["id"] == "odd"
        assert [row["id"] for row in service.rows(order="oldest", limit=2)["rows"]] == [
            row["id"] for row in TICKETS[300:302]
        ]
        assert service.rows(search="XYZZY")["rows"][0]["id"] == "odd"
        assert service.rows(search="100%_")["rows"] == []
        assert len(service.rows(state="tagged", limit=500)["rows"]) == 200
        assert len(service.rows(state="all", limit=500)["rows"]) == 231
        tag = TICKETS[0]["tags"][0]
        assert all(tag in row["tags"] for row in service.rows(state="tagged", tag=tag, limit=500)["rows"])
        pages, cursor = [], ""
        while cursor is not None:
            page = service.rows(limit=7, after=cursor)
            pages += page["rows"]
            cursor = page["next"]
        assert [row["id"] for row in pages] == [row["id"] for row in listed["rows"]]


@pytest.mark.parametrize("query", [{"state": "x"}, {"order": "x"}, {"after": "-1"}, {"after": "x"}])
def test_wrong_queries(taught, query):
    with pytest.raises(Problem):
        taught.rows(**query)


def test_a_row_that_comes_again(tmp_path):
    with serving(tmp_path) as service:
        teach(service, TICKETS[:100], 50)
        row = {"id": "A", "subject": "invoice", "body": "refund"}
        predict(service, [row])
        feedback(service, {"id": "A", "tags": ["billing"]})
        predict(service, [row])
        assert service.row("A")["tags"] == ["billing"], "the same row was told already"
        predict(service, [{**row, "body": "other"}])
        assert service.row("A")["state"] == "waiting"
        assert service.row("A")["cells"]["body"] == "other"


def test_the_oldest_of_too_many_rows_are_dropped(tmp_path):
    with serving(tmp_path, max_waiting=10) as service:
        for start in range(0, 600, 100):
            predict(service, without_tags(TICKETS[start : start + 100]))
        listed = service.rows(limit=500)["rows"]
        assert listed[0]["id"] == TICKETS[599]["id"]
        assert len(listed) <= 110


def test_a_row_is_open_for_a_while(tmp_path, monkeypatch):
    with serving(tmp_path) as service:
        predict(service, [{"id": "A", "body": "x"}])
        heard = []
        end = service.listen(lambda event, data: heard.append((event, data)))
        assert service.open_row("A", "Ann") == {"id": "A", "open_by": "Ann"}
        end()
        assert heard == [("open", {"id": "A", "open_by": "Ann"})]
        assert service.row("A")["open_by"] == "Ann"
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 61)
        assert service.row("A")["open_by"] is None
        with pytest.raises(Problem):
            service.open_row("B", "Ann")


def test_tags(taught):
    listed = taught.tags()["tags"]
    assert [tag["rows"] for tag in listed] == sorted((tag["rows"] for tag in listed), reverse=True)
    assert sum(tag["rows"] for tag in listed) == sum(len(row["tags"]) for row in TICKETS[:300])
    assert [tag["tag"] for tag in taught.tags(search="BILL")["tags"]] == ["billing"]
    both = sum({"billing", "login"} <= set(row["tags"]) for row in TICKETS[:300])
    assert {"tag": "login", "rows": both} in taught.tag("billing")["together"]
    with pytest.raises(Problem):
        taught.tag("nothing")


def test_new_tags_are_placed_among_the_tested_rows(tmp_path):
    # Rows that a tagger had learned before were tested by nobody.
    tagger = labelrace.Tagger("tags", id="id", random_state=0).partial_fit(TICKETS[:100])
    tagger.save(tmp_path / "tagger")
    service = open_service(tmp_path / "journal", tagger=tmp_path / "tagger")
    try:
        teach(service, [*TICKETS[100:120], TICKETS[120] | {"tags": ["unheard of"]}])
        quality = service.quality()
        assert quality["new_tags"][0]["tag"] == "unheard of"
        assert quality["new_tags"][0]["row"] == quality["tested"] == 21
    finally:
        service.close()


def test_a_preview_tells_and_changes_nothing(taught):
    before = taught.status()["position"]
    found = taught.preview(Lesson("merge", {"tags": ["billing", "login"], "into": "account"}))
    either = sum(bool({"billing", "login"} & set(row["tags"])) for row in TICKETS[:300])
    assert found["becomes"] == [{"tag": "account", "rows": either}]
    with pytest.raises(Problem):
        taught.preview(Lesson("rename", {"names": {"nothing": "x"}}))
    assert taught.status()["position"] == before


def test_listeners_hear_what_happens(tmp_path):
    with serving(tmp_path) as service:
        heard = []
        service.listen(lambda event, data: heard.append((event, data)))
        predict(service, [{"id": "A", "body": "x"}])
        feedback(service, {"id": "A", "tags": ["t"]}, who="Ann")
        deadline = time.time() + 5
        while len(heard) < 3 and time.time() < deadline:
            time.sleep(0.01)
    assert heard[0] == ("row", {"id": "A", "state": "waiting", "who": None})
    assert ("row", {"id": "A", "state": "tagged", "who": "Ann"}) in heard
    assert ("position", {"position": 1, "rows": 1, "tags": 1, "waiting": 1}) in heard or heard[-1][1]["position"] == 1


def test_listeners_of_other_processes_hear_it_too(tmp_path):
    with serving(tmp_path, poll_seconds=0.02) as here, serving(tmp_path, poll_seconds=0.02) as there:
        heard = {here: [], there: []}
        for one in heard:
            one.listen(lambda event, data, one=one: heard[one].append((event, data)))
        deadline = time.time() + 10
        while there._news is None or here._news is None:
            assert time.time() < deadline
            time.sleep(0.01)
        arrived = ("row", {"id": "A", "state": "waiting", "who": None})
        opened, closed = ("open", {"id": "A", "open_by": "Ann"}), ("open", {"id": "A", "open_by": None})
        for act, told in (
            (lambda: predict(here, [{"id": "A", "body": "x"}]), arrived),
            (lambda: here.open_row("A", "Ann"), opened),
            (lambda: here.open_row("A", "Ben"), opened),
            (lambda: here.open_row("A", "Ann", False), closed),
        ):
            act()
            while told not in heard[there]:
                assert time.time() < deadline
                time.sleep(0.01)
        assert heard[there] == [arrived, opened, closed]
        time.sleep(0.1)
        assert heard[here].count(arrived) == heard[here].count(closed) == 1


def test_predicting_does_not_wait_for_learning(taught, monkeypatch):
    """While a lesson is being learned, predictions are answered by what was known before."""
    from labelrace.serve import follower as module

    learning, go_on = threading.Event(), threading.Event()

    def slow(folded, batch):
        learning.set()
        assert go_on.wait(10)
        return module_fold(folded, batch)

    module_fold = module.fold
    monkeypatch.setattr(module, "fold", slow)
    teacher = threading.Thread(target=feedback, args=(taught, {"id": TICKETS[0]["id"], "tags": TICKETS[0]["tags"]}))
    teacher.start()
    assert learning.wait(10)
    position = predict(taught, [{"body": "invoice"}])["position"]
    go_on.set()
    teacher.join()
    assert taught.status()["position"] == position + 1


def test_a_service_goes_on_where_it_ended(tmp_path):
    with serving(tmp_path) as service:
        teach(service, TICKETS[:100], 7)
        asked = predict(service, TICKETS[100:120])
        folded = service.folded
    with serving(tmp_path) as service:
        assert predict(service, TICKETS[100:120]) == asked
        assert snapshots.pack(service.folded) == snapshots.pack(folded)
        assert snapshots.pack(export.fold_export(service.export())) == snapshots.pack(folded)
        with service.database.reading() as connection:
            assert snapshots.positions(connection) == [15]


def test_it_begins_with_a_tagger(tmp_path):
    tagger = labelrace.Tagger("tags", id="ticket", random_state=0).partial_fit(
        [{**row, "ticket": row["id"]} for row in TICKETS[:200]]
    )
    path = tmp_path / "tagger.labelrace"
    tagger.save(path)
    service = open_service(tmp_path / "data", tagger=path)
    try:
        rows = TICKETS[200:230]
        assert [set(row["tags"]) for row in predict(service, rows)["rows"]] == tagger.predict(rows)
        teach(service, TICKETS[230:250])
        learned = export.fold_export(service.export())
        assert snapshots.pack(learned) == snapshots.pack(service.folded)
        assert service.status()["rows"] == 220
    finally:
        service.close()
    # The same command starts it again; another tagger does not.
    open_service(tmp_path / "data", tagger=path).close()
    tagger.partial_fit(TICKETS[300:310]).save(path)
    with pytest.raises(ValueError, match="another tagger"):
        open_service(tmp_path / "data", tagger=path)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, "neither"),
        ({"data": "absent"}, "no journal"),
        ({"database": "mysql://host/x"}, "PostgreSQL or SQLite"),
        ({"database": "no url"}, "must be a URL"),
        ({"data": "new", "new": {"tags": "tags"}, "tagger": "x"}, "together"),
        ({"data": "new", "tagger": "absent"}, "absent"),
        ({"data": "new", "new": {"tagz": "tags"}}, "tagz"),
    ],
)
def test_wrong_starts(tmp_path, given, error):
    paths = {name: tmp_path / given[name] for name in ("data", "tagger") if name in given}
    with pytest.raises((ValueError, OSError, TypeError), match=error):
        open_service(**{**given, **paths})


def test_another_beginning_is_refused(tmp_path):
    with serving(tmp_path) as service:
        teach(service, TICKETS[:10])
    with pytest.raises(ValueError, match="other parameters: leave out --new"):
        open_service(tmp_path, new={"tags": "labels"})


def test_settings_are_said_to_the_journal(tmp_path):
    with serving(tmp_path) as service:
        teach(service, TICKETS[:100], 50)
        service.teach([Lesson("set", {"parameters": {"precision": 0.9}})])
        assert service.quality()["precision_curve"]["target"] == 0.9
    with serving(tmp_path) as service:
        assert service.folded.tagger.precision == 0.9
