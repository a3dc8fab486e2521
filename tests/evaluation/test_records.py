"""Run folders on the disk."""

import json
import math
from contextlib import nullcontext

import pytest

from labelrace.evaluation import read_run
from labelrace.evaluation.records import appending, locked, open_folder, rewrite_records, write_manifest
from labelrace.exceptions import DataFormatError

MANIFEST = {"format": 1, "runs": 2, "source": {"name": "toy", "rows": 5}, "created": "2020", "machine": {"cpus": 1}}


def record(number, kind="batch", model="a", run=0):
    return {"kind": kind, "model": model, "run": run, "batch": number, "text": "é\n☃"}


@pytest.fixture
def folder(tmp_path):
    write_manifest(tmp_path, MANIFEST)
    with appending(tmp_path) as append:
        for number in range(3):
            append(record(number))
    return tmp_path


def test_what_is_written_is_read(folder):
    assert read_run(folder) == (MANIFEST, [record(0), record(1), record(2)])


def test_every_cut_of_the_last_line_is_read_and_repaired(folder):
    path = folder / "records.jsonl"
    content = path.read_bytes()
    last = content.rindex(b"\n", 0, -1) + 1
    for cut in range(last, len(content)):
        path.write_bytes(content[:cut])
        with pytest.warns(UserWarning, match="cut off") if cut > last else nullcontext():
            assert read_run(folder)[1] == [record(0), record(1)]
        with appending(folder) as append:
            append(record(9))
        assert read_run(folder)[1] == [record(0), record(1), record(9)]


def test_a_run_without_records_yet(tmp_path):
    write_manifest(tmp_path, MANIFEST)
    assert read_run(tmp_path) == (MANIFEST, [])
    (tmp_path / "records.jsonl").write_bytes(b'{"kind"')
    with pytest.warns(UserWarning, match="cut off"):
        assert read_run(tmp_path) == (MANIFEST, [])


@pytest.mark.parametrize("line", [b'{"kind": "ba', b"", b"\x00\xff", b"[1]", b'{"kind": "batch"}'])
def test_other_damage_is_told(folder, line):
    path = folder / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], line + b"\n", lines[2]]))
    with pytest.raises(DataFormatError, match=r"records\.jsonl, line 2 is"):
        read_run(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": "1"}', '{"format": 2}'])
def test_damaged_manifests_are_told(folder, text):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(DataFormatError, match=r"manifest\.json"):
        read_run(folder)


def test_a_folder_of_something_else(tmp_path):
    with pytest.raises(FileNotFoundError, match="not the folder of a run"):
        read_run(tmp_path)


def test_nan_is_not_written(folder):
    with appending(folder) as append, pytest.raises(ValueError):
        append({"kind": "batch", "value": math.nan})
    assert len(read_run(folder)[1]) == 3


def test_rewriting(folder):
    rewrite_records(folder, [record(7)])
    assert read_run(folder)[1] == [record(7)]
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "records.jsonl"]


def test_two_writers_are_kept_apart(tmp_path):
    with locked(tmp_path), pytest.raises(BlockingIOError, match="another process"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_new_folder_must_be_empty(tmp_path):
    with open_folder(tmp_path / "deep" / "new", MANIFEST, resume=False) as opened:
        opened.append(record(0))
    with (
        pytest.raises(FileExistsError, match="resume=True"),
        open_folder(tmp_path / "deep" / "new", MANIFEST, resume=False),
    ):
        pass
    assert read_run(tmp_path / "deep" / "new")[1] == [record(0)]


def test_resuming_keeps_what_is_done(tmp_path):
    done = [record(0, model="a"), record(1, "done", model="a")]
    cut_off = [record(0, model="b"), record(1, model="b")]
    failed = [record(0, model="c"), record(1, "failed", model="c")]
    other_run = [record(0, model="a", run=1)]
    with open_folder(tmp_path, MANIFEST, resume=True) as opened:
        assert opened.done == frozenset()
        for one in [*cut_off, *done, *failed, *other_run]:
            opened.append(one)
    with (tmp_path / "records.jsonl").open("ab") as file:
        file.write(b'{"kind": "batch", "mod')
    again = {**MANIFEST, "created": "2021", "machine": {}}
    with open_folder(tmp_path, again, resume=True) as opened:
        assert opened.done == {("a", 0)}
        assert read_run(tmp_path) == (MANIFEST, done)


def test_resuming_another_run_is_refused_and_says_why(folder):
    other = {**MANIFEST, "runs": 3, "source": {"name": "toy", "rows": 6}, "options": {"delay": 1}}
    before = (folder / "records.jsonl").read_bytes()
    with pytest.raises(ValueError, match="other settings") as error, open_folder(folder, other, resume=True):
        pass
    message = str(error.value)
    assert "runs is 2 there and 3 now" in message
    assert "source.rows is 5 there and 6 now" in message
    assert 'options is null there and {"delay": 1} now' in message
    assert (folder / "records.jsonl").read_bytes() == before


def test_a_folder_of_other_files_is_not_resumed(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(FileExistsError, match="cannot resume"), open_folder(tmp_path, MANIFEST, resume=True):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_leftovers_of_a_kill_are_removed(tmp_path):
    (tmp_path / ".manifest.json.0123abcd.part").write_text("{")
    with open_folder(tmp_path, MANIFEST, resume=False):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "records.jsonl"]


def test_parts_of_others_are_never_touched(tmp_path):
    (tmp_path / ".thesis.part").write_text("precious")
    for resume in (False, True):
        with pytest.raises(FileExistsError), open_folder(tmp_path, MANIFEST, resume=resume):
            pass
    assert (tmp_path / ".thesis.part").read_text() == "precious"


def test_manifest_is_for_people_too(folder):
    text = (folder / "manifest.json").read_text()
    assert text.count("\n") > 5
    assert json.loads(text) == MANIFEST


def test_records_are_lines_of_json(folder):
    lines = (folder / "records.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [record(0), record(1), record(2)]
