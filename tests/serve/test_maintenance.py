"""Journals that are exported, imported, backed up and compacted: what was learned is the same, and what follows."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing

import pytest
from helpers.serving import TICKETS, feedback, predict, serving, teach
from typer.testing import CliRunner

from benchmarks.kills import digest_of
from labelrace.cli.serve import app
from labelrace.exceptions import DataFormatError
from labelrace.serve import export, maintenance, start
from labelrace.serve import journal as journal_module
from labelrace.serve.database import FILE
from labelrace.serve.fold import fold_all
from labelrace.serve.journal import Journal
from labelrace.serve.lessons import Lesson
from labelrace.serve.problems import Problem
from labelrace.serve.service import open_service
from labelrace.tables import Tagger

NEW = {"tags": "tags"}


def learned(service, rows, key=None):
    [answer] = service.teach([Lesson("learn", {"rows": rows}, key)])
    assert not isinstance(answer, Problem), answer.detail
    return answer


@pytest.fixture(params=["from nothing", "from a tagger", "compacted"])
def journal(request, tmp_path):
    """Return the folder of a journal that began or was treated in some way, and what is known at its end."""
    folder, beginning = tmp_path / "journal", {"new": NEW}
    if request.param == "from a tagger":
        Tagger("tags", id="id", random_state=0).partial_fit(TICKETS[200:260]).save(tmp_path / "tagger.labelrace")
        beginning = {"tagger": tmp_path / "tagger.labelrace"}
    service = open_service(folder, **beginning)
    teach(service, TICKETS[:40], 5, key="k")
    if request.param == "compacted":
        maintenance.compact(service.database)
    teach(service, TICKETS[40:60], 10)
    feedback(service, {"id": TICKETS[0]["id"], "add": ["zoo"]}, who="Ann")
    if request.param == "compacted":
        assert maintenance.compact(service.database).position == 8
    folded = service.folded
    service.close()
    return folder, folded


def test_an_imported_journal_goes_on_as_the_one_it_was_exported_from(journal, database_url):
    folder, folded = journal
    original = open_service(folder)
    imported = start.open_database(None, database_url)
    lines = list(original.export())
    assert maintenance.import_journal(imported, lines) == folded.position
    imported.close()
    service = open_service(database=database_url)
    try:
        for one in (original, service):
            assert learned(one, TICKETS[60:80])["position"] == folded.position + 1
            assert one.wait_for(folded.position + 1, 10)
        assert [one._replace(time=0.0) for one in service.folded.quality.new_tags] == [
            one._replace(time=0.0) for one in original.folded.quality.new_tags
        ]
        assert service.folded.tagger.tags_ == original.folded.tagger.tags_
        asked = [{"body": row["body"]} for row in TICKETS[100:110]]
        assert predict(service, asked) == predict(original, asked)
        # It can be exported and imported again.
        again = list(service.export())
        assert digest_of(export.fold_export(again)) == digest_of(service.folded)
        assert again[1 : len(lines)] == lines[1:]
        assert json.loads(again[0])["position"] == json.loads(lines[0])["position"]
    finally:
        service.close()
        original.close()


def test_rows_are_imported_with_what_was_said_of_them(tmp_path):
    with serving(tmp_path / "a") as service:
        teach(service, TICKETS[:10])
        feedback(service, {"id": TICKETS[0]["id"], "tags": None})
        feedback(service, {"id": TICKETS[1]["id"], "tags": ["x"]}, who="Ann")
        expected = [service.row(row["id"]) for row in TICKETS[:10]]
        lines = list(service.export())
    imported = start.open_database(tmp_path / "b", None, is_new=True)
    maintenance.import_journal(imported, lines)
    imported.close()
    with open_and_close(tmp_path / "b") as service:
        assert service.wait_for(3, 10)
        assert [service.row(row["id"]) for row in TICKETS[:10]] == expected


def open_and_close(folder):
    return closing(open_service(folder))


def test_only_an_empty_database_takes_an_import(tmp_path):
    with serving(tmp_path) as service:
        teach(service, TICKETS[:10])
        lines = list(service.export())
        with pytest.raises(ValueError, match="must be empty"):
            maintenance.import_journal(service.database, lines)
    for wrong in ([b"{}"], [b"no"], [], [lines[0], b"[]"], [lines[0], lines[1], lines[1]], [lines[0], lines[1][:-9]]):
        folder = tmp_path / "new"
        database = start.open_database(folder, None, is_new=True)
        with pytest.raises(ValueError):
            maintenance.import_journal(database, wrong)
        # Nothing has begun: the right one is taken.
        assert maintenance.import_journal(database, lines) == 1
        database.close()
        for path in folder.iterdir():
            path.unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "later"}, "its kind is 'later'"),
        ({"kind": ["learn"]}, "its kind is"),
        ({"body": None}, "its body has no rows"),
        ({"body": {"rows": [{"id": "a"}]}}, "a row lacks"),
        ({"body": {"rows": []}}, "a row lacks"),
        ({"kind": "merge", "body": {"tags": ["a"]}}, "its body has no tags and into"),
        ({"who": None}, "who is no text"),
    ],
)
def test_an_entry_that_is_none_is_told_and_nothing_is_imported(tmp_path, change, said):
    with serving(tmp_path / "one") as service:
        learned(service, TICKETS[:3])
        learned(service, TICKETS[3:6])
        first, one, two = (json.loads(line) for line in service.export())
    lines = [json.dumps(line) for line in (first, one, {**two, **change})]
    database = start.open_database(tmp_path / "two", None, is_new=True)
    with pytest.raises(DataFormatError, match=f"Line 3 .*{said}"):
        maintenance.import_journal(database, lines)
    assert maintenance.import_journal(database, lines[:2]) == 1
    database.close()


def test_an_export_is_of_when_it_began_and_holds_nothing_of_the_database(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "N_AT_ONCE", 5)
    with serving(tmp_path) as service:
        for at in range(0, 40, 2):
            learned(service, TICKETS[at : at + 2])
        lines = service.export()
        found = [next(lines) for _ in range(7)]
        learned(service, TICKETS[40:50])
        # A reader in between would keep the log from being written back.
        with closing(sqlite3.connect(tmp_path / FILE)) as connection:
            assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        found += lines
        assert [json.loads(line)["position"] for line in found[1:]] == list(range(1, 21))
        lines = service.export()
        next(lines)
        for at in (50, 51):
            maintenance.compact(service.database)
            learned(service, TICKETS[at : at + 1])
        maintenance.compact(service.database)
        with pytest.raises(Problem, match="export it again"):
            list(lines)


def test_a_backup_of_a_service_at_work_is_a_journal(tmp_path):
    with serving(tmp_path / "a") as service:
        teach(service, TICKETS[:20], 5)
        teacher = threading.Thread(target=teach, args=(service, TICKETS[20:120], 2))
        teacher.start()
        (tmp_path / "b").mkdir()
        maintenance.backup(service.database, tmp_path / "b" / FILE)
        teacher.join()
        with open_and_close(tmp_path / "b") as copy:
            assert copy.wait_for(4, 10)
            found = list(copy.export())
            assert found == list(service.export())[: len(found)]
            assert len(found) >= 5
            copy.wait_for(len(found) - 1, 10)
            assert digest_of(copy.folded) == digest_of(export.fold_export(found))


def test_a_backup_does_not_replace_the_journal(tmp_path):
    with serving(tmp_path) as service:
        teach(service, TICKETS[:10])
        with pytest.raises(ValueError, match=FILE):
            maintenance.backup(service.database, tmp_path / FILE)
        assert learned(service, TICKETS[10:20])["position"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE]


def test_compaction_forgets_what_was_said_and_nothing_that_was_learned(tmp_path):
    with serving(tmp_path) as service:
        teach(service, TICKETS[:40], 5, key="k")
        answer = learned(service, TICKETS[40:50], "key")
        feedback(service, {"id": TICKETS[0]["id"], "tags": ["x"]}, who="Ann")
        status, row = service.status(), service.row(TICKETS[0]["id"])
        folded = service.folded
        assert maintenance.compact(service.database) == (0, 0), "there is one snapshot only"
        teach(service, TICKETS[50:52], 1)
        assert maintenance.compact(service.database) == (10, 10)
        with closing(sqlite3.connect(tmp_path / FILE)) as connection:
            assert connection.execute("SELECT count(*), count(body), count(key) FROM entries").fetchone() == (12, 2, 9)
        assert maintenance.compact(service.database) == (10, 0), "there is nothing more to forget"
        # A key counts once, also if its request is forgotten.
        assert learned(service, TICKETS[40:50], "key") == answer
        assert service.row(TICKETS[0]["id"])["history"] == row["history"]
        assert service.status()["rows"] == status["rows"] + 2
        # Of two snapshots the older one says what may be forgotten.
        teach(service, TICKETS[60:70], 5)
        assert maintenance.compact(service.database) == (12, 2)
        assert len(list(service.export())) == 3
        assert digest_of(export.fold_export(service.export())) == digest_of(service.folded)
        assert fold_all(folded._replace(position=12), Journal(service.database).walk(12)).position == 14
    with serving(tmp_path) as service:
        assert service.folded.position == 14


def test_compaction_of_a_journal_without_lessons_forgets_nothing(tmp_path):
    with serving(tmp_path) as service:
        assert maintenance.compact(service.database) == (0, 0)
        assert learned(service, TICKETS[:5])["position"] == 1


def test_the_command(tmp_path):
    """Export, import, back up, compact, each of which the next one goes on from."""
    with serving(tmp_path / "a") as service:
        teach(service, TICKETS[:40], 10)
        folded, lines = service.folded, b"".join(service.export())

    def run(*arguments, **options):
        done = CliRunner().invoke(app, [*map(str, arguments)], **options)
        assert done.exit_code == 0, done.output
        return done

    exported = tmp_path / "journal.jsonl"
    run("export", "--data", tmp_path / "a", "-o", exported)
    assert exported.read_bytes() == lines
    assert run("export", "--data", tmp_path / "a").stdout_bytes == lines
    run("import", exported, "--data", tmp_path / "b")
    run("import", "-", "--data", tmp_path / "c", input=lines)
    (tmp_path / "d").mkdir()
    run("backup", tmp_path / "d" / FILE, "--data", tmp_path / "c")
    done = json.loads(run("compact", "--data", tmp_path / "d", "--json").stdout)
    assert (done["position"], done["entries"]) == (0, 0)
    assert "two snapshots" in run("compact", "--data", tmp_path / "d").output
    for name in "abcd":
        with open_and_close(tmp_path / name) as service:
            assert service.wait_for(4, 10)
            assert digest_of(service.folded) == digest_of(folded)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["export"], "neither"),
        (["export", "--data", "absent"], "no journal"),
        (["compact", "--data", "absent"], "no journal"),
        (["backup", "x", "--data", "absent"], "no journal"),
        (["import", "absent.jsonl", "--data", "new"], "absent.jsonl"),
    ],
)
def test_wrong_calls(tmp_path, monkeypatch, arguments, error):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code != 0
    assert error in str(done.exception)
