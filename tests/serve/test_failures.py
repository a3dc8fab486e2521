"""What fails around a service: disk, files, clock, database. Nothing is lost, and what fails is said."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("resource", reason="there are no limits of processes")

import resource

from helpers.serving import TICKETS, feedback, predict, serving, teach, without_tags

from benchmarks.kills import digest_of
from labelrace.serve import export, journal, maintenance, snapshots, start
from labelrace.serve.database import ENTRIES, FILE, Database, url_of
from labelrace.serve.follower import Follower, Options
from labelrace.serve.journal import OtherEntries
from labelrace.serve.lessons import Lesson, Prediction
from labelrace.serve.problems import Problem
from labelrace.serve.service import open_service
from labelrace.tables import Tagger

NEW = {"tags": "tags"}
ASKED = without_tags(TICKETS[500:505])
WITHOUT_IDS = [{name: cell for name, cell in row.items() if name != "id"} for row in ASKED]


def learn(service, rows, key=None):
    """Teach rows in one request; return the answer or the problem."""
    [answer] = service.teach([Lesson("learn", {"rows": rows}, key)])
    return answer


def is_folded_from_its_export(service):
    """Return whether a service knows what one fold over its exported journal gives."""
    return digest_of(export.fold_export(service.export())) == digest_of(service.folded)


def until(condition, seconds=20.0):
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- The disk ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def mounted(folder, *options):
    """Mount a file system in memory on a folder."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("a file system can be mounted by root only, where there are rights to")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def small_disk(tmp_path):
    """Yield a folder on a disk of 4 MB, and a context in which it is full."""
    with mounted(tmp_path / "disk", "-o", "size=4m") as folder:

        @contextlib.contextmanager
        def full():
            with open(folder / "filler", "wb", buffering=0) as file, contextlib.suppress(OSError):
                for size in (4096, 1):
                    while True:
                        try:
                            file.write(bytes(size))
                        except OSError:
                            break
            yield
            (folder / "filler").unlink()

        yield folder, full


@pytest.fixture
def limited_files(tmp_path):
    """Yield a folder, and a context in which no file can grow."""

    @contextlib.contextmanager
    def full():
        largest = max(path.stat().st_size for path in tmp_path.iterdir())
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        # No page more fits anywhere.
        resource.setrlimit(resource.RLIMIT_FSIZE, (min(4096, largest), before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return tmp_path, full


@pytest.mark.parametrize("disk", ["small_disk", "limited_files"])
def test_a_full_disk_refuses_lessons_and_goes_on_when_there_is_room(request, disk):
    folder, full = request.getfixturevalue(disk)
    with serving(folder) as service:
        teach(service, TICKETS[:50], 10)
        before, asked = service.folded, predict(service, WITHOUT_IDS)
        with full():
            refused = None
            # What is left of the file is used up first.
            for at in range(60, 200):
                refused = learn(service, TICKETS[at : at + 20], key=f"k{at}")
                if isinstance(refused, Problem):
                    break
            assert isinstance(refused, Problem), "the disk is not full"
            assert (refused.status, refused.retry_after) == (503, 1.0)
            assert "cannot be written now" in refused.detail
            n_learned = service.folded.position
            assert n_learned >= before.position
            if n_learned == before.position:
                assert predict(service, WITHOUT_IDS) == asked
            assert len(predict(service, WITHOUT_IDS)["rows"]) == 5
        # The same request is taken as soon as there is room, and nothing has to be started again.
        assert learn(service, TICKETS[at : at + 20], key=f"k{at}")["position"] == n_learned + 1
        assert is_folded_from_its_export(service)
        folded = service.folded
    with serving(folder) as service:
        assert digest_of(service.folded) == digest_of(folded)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    with mounted(tmp_path / "disk") as folder:
        with serving(folder) as service:
            teach(service, TICKETS[:20])
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        with pytest.raises(PermissionError, match="not writable"):
            open_service(folder)
        with pytest.raises(OSError, match="Read-only"):
            open_service(folder / "new", new=NEW)
        environment = {**os.environ, "COLUMNS": "300"}
        command = [sys.executable, "-m", "labelrace", "serve", "--data", str(folder), "--port", "0"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 1
        assert f"Error: The folder {folder} of the journal is not writable" in done.stderr
        assert "Traceback" not in done.stderr


# --- Files ------------------------------------------------------------------------------------------------------------


def crashed(folder, target):
    """Copy the files of a service that runs, as they are: what a loss of power leaves."""
    target.mkdir()
    for name in (FILE, f"{FILE}-wal"):
        shutil.copy(folder / name, target / name)
    return target


@pytest.mark.parametrize("kind", ["cut", "garbled", "half a frame of zeros"])
def test_a_torn_tail_of_the_files_costs_what_was_not_answered(tmp_path, kind):
    """The last commit is torn at some place: all that were before are whole."""
    (tmp_path / "a").mkdir()
    with serving(tmp_path / "a") as service:
        teach(service, TICKETS[:30], 10)
        wal = tmp_path / "a" / f"{FILE}-wal"
        answered, size = service.folded, wal.stat().st_size
        learn(service, TICKETS[30:60])
        after = service.folded
        files = crashed(tmp_path / "a", tmp_path / "b")
        whole = (files / wal.name).read_bytes()
        assert len(whole) > size + 4096, "the last commit is at the end of the file"
        n_cases = 7
        for case in range(n_cases):
            at = size + (len(whole) - size) * case // n_cases + (11 if case else 0)
            torn = {
                "cut": whole[:at],
                "garbled": whole[:at] + bytes(byte ^ 0x5A for byte in whole[at : at + 100]) + whole[at + 100 :],
                "half a frame of zeros": whole[:at] + bytes(2000),
            }[kind]
            copy = tmp_path / f"c{case}"
            shutil.copytree(files, copy)
            (copy / wal.name).write_bytes(torn)
            with serving(copy) as found:
                until(lambda found=found: found.lag == 0 and found.is_ready() is None)
                assert digest_of(found.folded) == digest_of(answered)
                assert len(found.rows(state="all", limit=100)["rows"]) == 30
                # Sent again, it is learned.
                assert learn(found, TICKETS[30:60])["position"] == after.position
                assert is_folded_from_its_export(found)


@pytest.fixture
def with_snapshots(tmp_path):
    """Return the folder of a journal with snapshots at 2, 4 and 6, which goes on to 7, and what is known then."""
    (tmp_path / "a").mkdir()
    with serving(tmp_path / "a") as service:
        for at in range(0, 60, 20):
            teach(service, TICKETS[at : at + 20], 10)
            assert snapshots.save(service.database, service.folded)
        teach(service, TICKETS[60:70], 10)
        return crashed(tmp_path / "a", tmp_path / "b"), service.folded


def change_byte(folder, position):
    """Change a byte in a part of a snapshot, as the database has it."""
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection, connection:
        [(body,)] = connection.execute("SELECT body FROM parts WHERE position = ? AND number = 0", (position,))
        at = len(body) // 2
        changed = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        connection.execute("UPDATE parts SET body = ? WHERE position = ? AND number = 0", (changed, position))


def change_page(folder, position):
    """Change a byte of the file, in a page that has bytes of a snapshot and of nothing else."""
    query = "SELECT body FROM parts WHERE position = ? AND number = 0"
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [(body,)] = connection.execute(query, (position,))
    content = bytearray((folder / FILE).read_bytes())
    pieces = (body[at : at + 64] for at in range(0, len(body), 1024))
    content[content.index(next(piece for piece in pieces if content.count(piece) == 1)) + 32] ^= 1
    (folder / FILE).write_bytes(content)
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
        [(changed,)] = connection.execute(query, (position,))
    assert len(changed) == len(body)
    assert changed != body


def remove_part(folder, position):
    """Remove what a snapshot consists of."""
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection, connection:
        connection.execute("DELETE FROM parts WHERE position = ?", (position,))


def other_model(folder, position):
    """Have a snapshot whose bytes are those that were written, and are no model."""
    body = b"no model"
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection, connection:
        connection.execute("UPDATE parts SET body = ? WHERE position = ?", (body, position))
        digest = hashlib.sha256(body).hexdigest()
        connection.execute(
            "UPDATE snapshots SET size = ?, digest = ? WHERE position = ?", (len(body), digest, position)
        )


@pytest.mark.parametrize("damage", [change_byte, change_page, remove_part, other_model])
def test_of_a_damaged_snapshot_the_older_one_is_used_and_that_is_said(with_snapshots, caplog, damage):
    folder, folded = with_snapshots
    damage(folder, 6)
    with caplog.at_level(logging.WARNING, "labelrace.serve"):
        opened = start.open_database(folder, None)
        assert start.newest(opened).position == 4
        opened.close()
    assert "The snapshot at position 6 is damaged, an older one is used" in caplog.text
    with serving(folder) as service:
        until(lambda: service.lag == 0 and service.is_ready() is None)
        assert digest_of(service.folded) == digest_of(folded)
        assert is_folded_from_its_export(service)


def test_without_a_whole_snapshot_the_journal_is_learned_from_its_beginning(with_snapshots, caplog):
    folder, folded = with_snapshots
    for position in (2, 4, 6):
        change_byte(folder, position)
    with serving(folder) as service:
        until(lambda: service.folded.position == 7)
        assert digest_of(service.folded) == digest_of(folded)
    for position in (2, 4, 6):
        assert f"The snapshot at position {position} is damaged" in caplog.text


def test_without_a_whole_snapshot_a_compacted_journal_is_refused(with_snapshots):
    folder, folded = with_snapshots
    opened = start.open_database(folder, None)
    assert maintenance.compact(opened).position == 6
    # Of the two that are left the older one will do.
    change_byte(folder, 7)
    assert digest_of(start.newest(opened)) != digest_of(folded)
    assert digest_of(export.fold_export(export.lines(opened))) == digest_of(folded)
    opened.close()
    change_byte(folder, 6)
    with pytest.raises(ValueError, match=r"no intact snapshot.*restore a backup"):
        open_service(folder)


def test_without_the_tagger_that_a_journal_began_with_it_is_refused(tmp_path):
    Tagger("tags", id="id", random_state=0).partial_fit(TICKETS[:50]).save(tmp_path / "tagger.labelrace")
    open_service(tmp_path / "data", tagger=tmp_path / "tagger.labelrace").close()
    change_byte(tmp_path / "data", 0)
    with pytest.raises(ValueError, match="no intact snapshot"):
        open_service(tmp_path / "data")


# --- Time, versions, others -------------------------------------------------------------------------------------------


def test_a_clock_that_is_set_back_does_not_turn_the_journal_round(tmp_path, monkeypatch):
    with serving(tmp_path) as service:
        teach(service, TICKETS[:10])
        predict(service, ASKED)
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now - 10 * 86_400)
        teach(service, TICKETS[10:30])
        feedback(service, {"id": ASKED[0]["id"], "tags": ["late"]})
        predict(service, without_tags(TICKETS[600:601]))
        assert service.rows(limit=1)["rows"][0]["id"] == TICKETS[600]["id"], "the newest is the one that came last"
        monkeypatch.undo()
        teach(service, TICKETS[30:40])
        with service.database.reading() as connection:
            times = [entry.time for batch in service.journal.batches(connection, 0) for entry in batch]
        assert times == sorted(times)
        assert len(times) == 5
        assert len(service.folded.quality.days) == 1
        assert is_folded_from_its_export(service)


def test_a_newer_format_is_refused_by_whatever_opens_it(tmp_path):
    with serving(tmp_path) as service:
        teach(service, TICKETS[:10])
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        connection.execute("UPDATE facts SET value = '2' WHERE name = 'format'")
    for opening in (lambda: open_service(tmp_path), lambda: start.open_database(tmp_path, None)):
        with pytest.raises(ValueError, match="newer version of labelrace: upgrade"):
            opening()


def test_services_that_begin_one_journal_at_the_same_time_agree(tmp_path):
    for case in range(2):
        folder, n = tmp_path / str(case), 4
        folder.mkdir()
        barrier, opened, errors = threading.Barrier(n), [], []

        def begin(folder=folder, barrier=barrier, opened=opened, errors=errors):
            barrier.wait()
            try:
                opened.append(open_service(folder, new=NEW, options=Options(poll_seconds=0.01)))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=begin) for _ in range(n)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not errors, errors[0]
        try:
            for number, service in enumerate(opened):
                teach(service, TICKETS[10 * number : 10 * number + 10], 5)
            until(lambda opened=opened: {one.folded.position for one in opened} == {2 * len(opened)})
            assert len({digest_of(one.folded) for one in opened}) == 1
        finally:
            for service in opened:
                service.close()


def test_two_services_on_one_folder_learn_what_either_is_told(tmp_path):
    with serving(tmp_path, poll_seconds=0.01) as one, serving(tmp_path, poll_seconds=0.01) as two:
        threads = [
            threading.Thread(target=teach, args=(service, TICKETS[100 * number : 100 * number + 60], 3))
            for number, service in enumerate((one, two))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        until(lambda: one.folded.position == two.folded.position == 40)
        assert digest_of(one.folded) == digest_of(two.folded)
        assert is_folded_from_its_export(two)
        # A row that one of them was asked for is told to the other.
        predict(one, ASKED)
        assert feedback(two, {"id": ASKED[0]["id"], "tags": ["x"]})["learned"] == 1


def test_a_follower_that_lags_tells_others_to_come_again_and_catches_up(tmp_path, monkeypatch):
    slow = {"max_lag": 3, "patience_seconds": 0.2}
    with serving(tmp_path, poll_seconds=0.01) as ahead, serving(tmp_path, poll_seconds=0.01, **slow) as behind:
        gate, step = threading.Event(), behind._step
        monkeypatch.setattr(behind, "_step", lambda: gate.wait(60) and step())
        until(lambda: behind.is_ready() is None or behind.folded.position == 0)
        teach(ahead, TICKETS[:50], 5)
        answers = [learn(behind, [row]) for row in TICKETS[50:60]]
        # It is on disk, also if it is not learned here yet.
        assert answers[0] == {"learned": 1, "position": 11, "pending": True}
        assert isinstance(answers[-1], Problem)
        assert "wait to be learned" in answers[-1].detail
        assert answers[-1].retry_after == 5.0
        n_taken = sum(not isinstance(answer, Problem) for answer in answers)
        gate.set()
        until(lambda: behind.folded.position == ahead.folded.position == 10 + n_taken)
        assert digest_of(behind.folded) == digest_of(ahead.folded)
        assert learn(behind, TICKETS[60:61])["position"] == 11 + n_taken


def test_a_service_is_ready_when_it_has_learned_what_is_there(tmp_path, monkeypatch):
    """Before that it tells how far behind it is, and refuses changes of tags without keeping others from writing."""
    with serving(tmp_path) as ahead:
        teach(ahead, TICKETS[:50], 5)
        gate, learn_batch = threading.Event(), Follower._learn
        monkeypatch.setattr(journal, "N_AT_ONCE", 4)
        monkeypatch.setattr(Follower, "_learn", lambda self, batch: gate.wait(60) and learn_batch(self, batch))
        with serving(tmp_path, patience_seconds=0.2) as behind:
            until(lambda: behind.lag == 10)
            assert behind.status()["journal_position"] == 10
            assert behind.is_ready() == "The journal is being read."
            monkeypatch.setattr(behind, "exact", None)
            [answer] = behind.teach([Lesson("describe", {"tags": {"zoo": {}}})])
            assert (answer.status, answer.detail) == (503, "10 requests wait to be learned.")
            assert behind.folded.position == 0
            monkeypatch.undo()
            gate.set()
            until(lambda: behind.is_ready() is None)
            assert behind.folded.position == 10
            [answer] = behind.teach([Lesson("describe", {"tags": {"zoo": {}}})])
            assert answer["position"] == 11


def test_a_snapshot_that_fails_does_not_end_the_writing_of_snapshots(tmp_path, monkeypatch, caplog):
    save, failures = snapshots.save, [RuntimeError("a bug"), OSError("no room")]

    def failing(*given):
        if failures:
            raise failures.pop()
        return save(*given)

    monkeypatch.setattr(snapshots, "save", failing)
    with serving(tmp_path, snapshot_every=0.0) as service:
        rows = iter(TICKETS)
        until(lambda: teach(service, [next(rows)]) and service.snapshot_at)
    assert caplog.text.count("No snapshot could be written") == 2


def test_a_follower_goes_on_from_a_snapshot_where_entries_were_compacted(tmp_path, monkeypatch):
    with serving(tmp_path, poll_seconds=0.01) as ahead, serving(tmp_path, poll_seconds=0.01) as behind:
        teach(ahead, TICKETS[:20], 5)
        teach(behind, TICKETS[20:25])
        gate, is_held, step = threading.Event(), threading.Event(), behind._step
        monkeypatch.setattr(behind, "_step", lambda: is_held.set() or (gate.wait(60) and step()))
        assert is_held.wait(60)
        known = behind.folded.position
        for at in (25, 45):
            teach(ahead, TICKETS[at : at + 20], 5)
            snapshots.save(ahead.database, ahead.folded)
        teach(ahead, TICKETS[65:70], 5)
        assert maintenance.compact(ahead.database).position > known
        assert behind.folded.position == known
        gate.set()
        assert learn(behind, TICKETS[70:75])["position"] == 15
        until(lambda: ahead.folded.position == behind.folded.position == 15)
        assert digest_of(ahead.folded) == digest_of(behind.folded)
        assert is_folded_from_its_export(behind)


def test_lessons_that_a_restored_journal_lost_are_forgotten_here_too(tmp_path, caplog):
    """As after a failover to a replica that lacks the end."""
    with serving(tmp_path, poll_seconds=0.02, snapshot_every=1e9) as service:
        teach(service, TICKETS[:10], 1)
        snapshots.save(service.database, service.folded)
        teach(service, TICKETS[10:20], 1)
        lost = {**TICKETS[20], "tags": ["lost"]}
        learn(service, [lost])
        with service.database.writing() as connection:
            connection.execute(ENTRIES.delete().where(ENTRIES.c.position > 15))
        until(lambda: service.folded.position == 15)
        assert "lost" not in service.folded.tagger.tags_
        assert "learned again" in caplog.text
        assert learn(service, TICKETS[30:31]) == {"learned": 1, "position": 16}
        assert is_folded_from_its_export(service)


def test_nothing_is_appended_by_who_has_learned_what_the_journal_lost(tmp_path, monkeypatch):
    options = {"poll_seconds": 0.02, "snapshot_every": 1e9}
    with serving(tmp_path, **options) as ahead, serving(tmp_path, **options) as behind:
        gate, step = threading.Event(), behind._step
        teach(behind, TICKETS[:20], 1)
        monkeypatch.setattr(behind, "_step", lambda: gate.wait(60) and step())
        time.sleep(0.1)
        with ahead.database.writing() as connection:
            connection.execute(ENTRIES.delete().where(ENTRIES.c.position > 15))
        until(lambda: ahead.folded.position == 15)
        problem = learn(behind, TICKETS[20:21])
        assert (problem.status, problem.retry_after is not None) == (503, True)
        # Others went on, further than it had been.
        teach(ahead, TICKETS[30:40], 1)
        assert learn(behind, TICKETS[20:21]).status == 503
        with pytest.raises(OtherEntries):
            snapshots.save(behind.database, behind.folded)
        gate.set()
        until(lambda: behind.folded.position == ahead.folded.position == 25)
        assert digest_of(behind.folded) == digest_of(ahead.folded)
        assert learn(behind, TICKETS[20:21])["position"] == 26
        assert is_folded_from_its_export(behind)


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


def test_a_database_that_goes_away_and_comes_back(postgresql):
    """What teaches is refused meanwhile, predictions go on, and nothing needs to be started again."""
    url = postgresql.new_database()
    options = Options(poll_seconds=0.02)
    service = open_service(database=url, new=NEW, options=options)
    other = open_service(database=url, options=options)
    try:
        teach(service, TICKETS[:50], 10)
        asked = predict(service, WITHOUT_IDS)
        postgresql.stop("immediate")
        try:
            refused = learn(service, TICKETS[50:60], key="k")
            assert (refused.status, refused.retry_after) == (503, 1.0)
            assert predict(service, WITHOUT_IDS) == asked
            [answer] = service.predict([Prediction(ASKED)])
            assert isinstance(answer, Problem)
            until(lambda: service.is_ready() is not None)
            with pytest.raises(Problem, match="cannot be read now"):
                service.rows()
        finally:
            postgresql.start()
        until(lambda: service.is_ready() is None)
        assert learn(service, TICKETS[50:60], key="k") == {"learned": 10, "position": 6}
        assert learn(service, TICKETS[50:60], key="k") == {"learned": 10, "position": 6}
        until(lambda: other.folded.position == 6)
        assert digest_of(other.folded) == digest_of(service.folded)
        assert is_folded_from_its_export(other)
    finally:
        service.close()
        other.close()


def test_what_is_committed_is_on_disk(tmp_path, postgresql):
    """The settings by which a commit waits for the disk, as the database itself tells them."""
    sqlite = Database(url_of(tmp_path))
    with sqlite.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    sqlite.close()
    url = postgresql.new_database()
    for given, wanted in (("off", "on"), ("on", "on"), ("remote_write", "remote_write")):
        database = start.open_database(None, f"{url}&options=-csynchronous_commit%3D{given}")
        with database.writing() as connection:
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == wanted
        database.close()
