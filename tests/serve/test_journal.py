"""The journal, the rows beside it and its snapshots, on the database alone; and what a commit makes of requests."""

from __future__ import annotations

import contextlib
import threading

import pytest
from helpers.serving import TICKETS, feedback, predict, serving, teach

from labelrace.serve import journal as module
from labelrace.serve import snapshots, start
from labelrace.serve.database import ENTRIES, PARTS, Database, checked_url, url_of
from labelrace.serve.fold import fold
from labelrace.serve.journal import Compacted, Entry, Journal, NewEntry, OtherEntries
from labelrace.serve.lessons import Lesson
from labelrace.serve.problems import Problem
from labelrace.serve.service import open_service

NEW = {"tags": "tags"}


@pytest.fixture
def database(tmp_path):
    opened = start.open_database(tmp_path, None, is_new=True)
    start.begin(opened, new=NEW)
    yield opened
    opened.close()


def lesson(at, key=None):
    row = {"id": None, "cells": {"body": f"text {at}"}, "tags": ["t"], "was": None, "again": False}
    return NewEntry("learn", "Ann", key, "digest", 1, {"rows": [row]})


def append(database, *sizes):
    """Append batches of some sizes."""
    with database.writing() as connection:
        return [Journal(database).append(connection, [lesson(at) for at in range(size)]) for size in sizes]


# --- The journal ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_at_once", [5, 6, 7, 16, 100])
def test_batches_are_read_whole_however_many_are_read_at_once(database, monkeypatch, n_at_once):
    made = append(database, 3, 1, 4, 2, 4, 1, 1)
    assert [batch[0].position for batch in made] == [1, 4, 5, 9, 11, 15, 16]
    monkeypatch.setattr(module, "N_AT_ONCE", n_at_once)
    journal = Journal(database)
    assert list(journal.walk(0)) == made
    assert list(journal.walk(10)) == made[4:]
    assert list(journal.walk(16)) == []
    with database.reading() as connection:
        assert journal.head(connection) == 16


@pytest.mark.parametrize(("n_characters", "sizes"), [(0, [3, 1, 4, 2]), (350, [8, 2]), (10_000, [10])])
def test_of_large_entries_few_are_read_at_once(database, monkeypatch, n_characters, sizes):
    made = append(database, 3, 1, 4, 2)
    monkeypatch.setattr(module, "MAX_CHARACTERS", n_characters)
    journal, after = Journal(database), 0
    with database.reading() as connection:
        for size in sizes:
            batches = journal.batches(connection, after)
            assert sum(map(len, batches)) == size
            after += size
        assert journal.batches(connection, after) == []
    assert list(journal.walk(0)) == made


def test_entries_that_were_compacted_or_are_not_there_are_no_batches(database):
    append(database, 2, 2)
    journal = Journal(database)
    with database.writing() as connection:
        assert journal.compacted(connection) == 0
        connection.execute(ENTRIES.update().where(ENTRIES.c.position <= 2).values(body=None))
        assert journal.compacted(connection) == 2
        with pytest.raises(Compacted):
            journal.batches(connection, 0)
        assert len(journal.batches(connection, 2)) == 1
        connection.execute(ENTRIES.delete().where(ENTRIES.c.position == 3))
        with pytest.raises(Compacted):
            journal.batches(connection, 2)


def test_keys_and_facts(database):
    journal = Journal(database)
    with database.writing() as connection:
        journal.append(connection, [lesson(0, "one"), lesson(1), lesson(2, "two")])
        assert journal.answered(connection, ["two", "one", "three"]) == {
            "one": module.Answered(1, "digest", 1),
            "two": module.Answered(3, "digest", 1),
        }
        assert journal.answered(connection, []) == {}
        journal.state(connection, "fact", {"a": [1, None]})
        journal.state(connection, "fact", [2])
        assert journal.fact(connection, "fact") == [2]
        assert journal.fact(connection, "other") is None


def test_a_journal_that_is_ahead_of_the_clock_says_so_once(database, monkeypatch, caplog):
    monkeypatch.setattr(module.time, "time", lambda: 10_000_000.0)
    append(database, 1)
    monkeypatch.undo()
    monkeypatch.setattr(module.time, "time", lambda: 9_000_000.0)
    journal = Journal(database)
    for _ in range(2):
        with database.writing() as connection:
            assert journal.append(connection, [lesson(1)])[0].time == 10_000_000.0
    assert caplog.text.count("278 hours ahead") == 1


def test_what_fails_is_not_written(database):
    with contextlib.suppress(RuntimeError), database.writing() as connection:
        Journal(database).append(connection, [lesson(0)])
        raise RuntimeError
    assert list(Journal(database).walk(0)) == []


def test_writers_wait_for_one_another(database_url):
    """Several threads and connections read a number and write the next one: none is written twice."""
    databases = [start.open_database(None, database_url) for _ in range(3)]
    start.begin(databases[0], new=NEW)
    errors = []

    def count(database):
        try:
            for _ in range(10):
                append(database, 1)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=count, args=(database,)) for database in databases for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors, errors[0]
    assert [batch[0].position for batch in Journal(databases[0]).walk(0)] == list(range(1, 61))
    for database in databases:
        database.close()


def test_those_that_are_first_at_a_new_file_wait_for_one_another(tmp_path):
    errors = []

    def create(folder, barrier):
        database = Database(url_of(folder))
        try:
            barrier.wait()
            database.create()
        except BaseException as error:
            errors.append(error)
        finally:
            database.close()

    for case in range(20):
        (folder := tmp_path / str(case)).mkdir()
        barrier = threading.Barrier(6)
        threads = [threading.Thread(target=create, args=(folder, barrier)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not errors, errors[0]


def test_writers_see_what_was_committed_whatever_the_default_is(postgresql):
    url = checked_url(postgresql.new_database())
    first = Database(url)
    with first.writing() as connection:
        name = connection.exec_driver_sql("SELECT current_database()").scalar()
        connection.exec_driver_sql(f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'repeatable read'")
    first.close()
    database = Database(url)
    with database.writing() as connection:
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"
    with database.reading() as connection:
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "repeatable read"
    with database.writing() as connection:
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"
    with pytest.raises(Problem, match="same Idempotency-Key"), database.writing() as connection:
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
    database.close()


def test_a_reader_sees_one_state(database_url):
    database = start.open_database(None, database_url)
    start.begin(database, new=NEW)
    journal = Journal(database)
    with database.reading() as connection:
        before = journal.head(connection)
        append(database, 2)
        assert journal.head(connection) == before
    with database.reading() as connection:
        assert journal.head(connection) == before + 2
    database.close()


def test_a_database_that_cannot_be_reached_is_told():
    database = Database("postgresql+psycopg://nobody@127.0.0.1:1/nothing")
    with pytest.raises(Problem, match="cannot be read now") as raised, database.reading():
        pass
    assert raised.value.status == 503


# --- Commits ----------------------------------------------------------------------------------------------------------


def test_later_requests_of_a_commit_see_what_earlier_ones_say(tmp_path):
    with serving(tmp_path) as service:
        row = {"id": "A", "body": "Oven too hot", "tags": ["oven"]}
        answers = service.teach(
            [
                Lesson("learn", {"rows": [row]}, who="Ann"),
                Lesson("feedback", {"rows": [{"id": "A", "add": ["heat"]}]}, who="Ben"),
                Lesson("feedback", {"rows": [{"id": "A", "tags": None}]}),
                Lesson("feedback", {"rows": [{"id": "A", "tags": ["door"]}]}),
                Lesson("learn", {"rows": [{**row, "body": "Other"}]}),
            ]
        )
        assert [answer["learned"] for answer in answers] == [1, 1, 0, 1, 1]
        [batch] = service.journal.walk(0)
        said = [(entry.body["rows"][0]["tags"], entry.body["rows"][0]["again"]) for entry in batch]
        # What was taken back, or has other cells, is said for the first time.
        assert said == [(["oven"], False), (["oven", "heat"], True), (None, True), (["door"], False), (["oven"], False)]
        assert [one["who"] for one in service.row("A")["history"]] == ["Ann", "Ben", None, None, None]


def test_an_entry_has_what_was_suggested(tmp_path):
    with serving(tmp_path) as service:
        teach(service, TICKETS[:100], 50)
        [given] = predict(service, [{"id": "A", "body": "invoice"}])["rows"]
        feedback(service, {"id": "A", "tags": ["billing"]})
        # Another row with this id: what was suggested was not for it.
        service.teach([Lesson("learn", {"rows": [{"id": "A", "body": "printer", "tags": ["printing"]}]})])
        [told], [other] = (batch[0].body["rows"] for batch in service.journal.walk(2))
        assert told["was"] == {name: given[name] for name in ("tags", "probabilities")}
        assert other["was"] is None


def test_texts_that_databases_do_not_keep(database_url):
    """NUL is a character of JSON; PostgreSQL keeps none."""
    service = open_service(database=database_url, new=NEW)
    try:
        row = {"id": "A", "body": "nul \0 and 🦄 and \x7f", "tags": ["a\0b", "🦄"]}
        assert service.teach([Lesson("learn", {"rows": [row]}, who="🦄")])[0] == {"learned": 1, "position": 1}
        assert service.row("A")["cells"]["body"] == row["body"]
        assert service.rows(state="tagged", search="🦄")["rows"][0]["id"] == "A"
        assert service.rows(state="tagged", search="a\0b")["rows"] == []
        wrong, good = service.teach(
            [
                Lesson("feedback", {"rows": [{"id": "A\0", "tags": ["x"]}]}),
                Lesson("feedback", {"rows": [{"id": "A", "tags": ["x"]}]}),
            ]
        )
        assert wrong.status == 422
        assert good == {"learned": 1, "position": 2}
    finally:
        service.close()


# --- Snapshots --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models():
    """Return what is known after 1, 2, … batches."""
    folded, found = start.empty(NEW), []
    for at in range(0, 120, 20):
        rows = [{"id": one["id"], "cells": {"body": one["body"]}, "tags": one["tags"]} for one in TICKETS[at : at + 20]]
        body = {"rows": [{**row, "was": None, "again": False} for row in rows]}
        folded = fold(folded, [Entry(at + 20, at + 20, 0.0, "learn", "", body)])
        found.append(folded)
    return found


@pytest.fixture
def told(database):
    """Return a database with the entries that the models have learned."""
    append(database, 120)
    return database


def positions(database):
    with database.reading() as connection:
        return snapshots.positions(connection)


def parts(database):
    """Return who made a part, for each."""
    with database.reading() as connection:
        return [part.maker for part in connection.execute(PARTS.select())]


def test_a_snapshot_of_many_parts_is_one(told, models, monkeypatch):
    monkeypatch.setattr(snapshots, "_PART", 10_000)
    assert snapshots.save(told, models[0])
    assert snapshots.pack(snapshots.newest(told)) == snapshots.pack(models[0])
    assert not snapshots.save(told, models[0]), "there is one"
    assert len(parts(told)) == len(range(0, len(snapshots.pack(models[0])), 10_000)) > 5


def test_the_newest_snapshots_are_kept(told, models):
    for folded in models:
        snapshots.save(told, folded)
    assert positions(told) == [120, 100, 80]
    # One that is older than those is of no use.
    assert snapshots.newest(told, before=99).position == 80
    snapshots.save(told, models[0])
    assert positions(told) == [120, 100, 80]
    assert snapshots.newest(told, before=79) is None


def test_of_two_that_write_one_snapshot_one_does(told, models):
    one, two = (snapshots.draft(told, models[0]) for _ in range(2))
    with told.writing() as connection:
        assert snapshots.finish(connection, two)
        assert not snapshots.finish(connection, one)
    assert set(parts(told)) == {two.maker}
    assert snapshots.pack(snapshots.newest(told)) == snapshots.pack(models[0])


def test_what_nobody_finished_does_not_count_and_is_removed(told, models):
    snapshots.draft(told, models[0])
    assert snapshots.newest(told) is None
    for folded in models[1:4]:
        snapshots.save(told, folded)
    assert len(set(parts(told))) == 3
    late = snapshots.draft(told, models[0])
    snapshots.save(told, models[4])
    with told.writing() as connection:
        assert not snapshots.finish(connection, late), "its parts were removed as those of nobody"


def test_a_damaged_snapshot_is_written_again(told, models):
    snapshots.save(told, models[0])
    with told.writing() as connection:
        connection.execute(PARTS.update().values(body=b"other"))
    assert snapshots.save(told, models[0])
    assert len(set(parts(told))) == 1
    assert snapshots.pack(snapshots.newest(told)) == snapshots.pack(models[0])


def test_a_snapshot_of_other_kernels_is_used_and_that_is_said(told, models, monkeypatch, caplog):
    monkeypatch.setattr(snapshots, "kernels", lambda: "openblas 0.3 SkylakeX")
    snapshots.save(told, models[0])
    snapshots.newest(told)
    assert not caplog.text
    monkeypatch.setattr(snapshots, "kernels", lambda: "openblas 0.3 Haswell")
    assert snapshots.newest(told).position == 20
    assert "openblas 0.3 SkylakeX and not openblas 0.3 Haswell" in caplog.text


def test_a_snapshot_of_entries_that_were_lost_is_left_aside(told, models, caplog):
    with told.reading() as connection:
        time = connection.execute(ENTRIES.select()).first().time
    assert snapshots.save(told, models[1]._replace(time=time))
    assert snapshots.save(told, models[2]._replace(time=time))
    with pytest.raises(OtherEntries):
        snapshots.save(told, models[3]._replace(time=time - 1))
    with told.writing() as connection:
        connection.execute(ENTRIES.delete().where(ENTRIES.c.position > 50))
    append(told, 30)
    assert snapshots.newest(told).position == 40
    assert "60 is damaged" in caplog.text
    with pytest.raises(OtherEntries):
        snapshots.save(told, models[-1])
