"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest

import labelrace
from labelrace import RACEClassifier
from labelrace.files import whole_file, write_whole


def test_new_files_and_replaced_ones(tmp_path):
    path = tmp_path / "file"
    for content in (b"first", b"", bytes(range(256)) * 1000):
        write_whole(path, content)
        assert path.read_bytes() == content
    write_whole(str(path), b"by name")
    assert path.read_bytes() == b"by name"
    assert list(tmp_path.iterdir()) == [path]


def test_files_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_whole("file", b"here")
    assert (tmp_path / "file").read_bytes() == b"here"


@pytest.mark.parametrize("failing", ["fsync", "replace", "chmod"])
def test_a_failure_midway_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failing):
    def fail(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    for before in ([], [path]):
        with monkeypatch.context() as patch:
            patch.setattr(os, failing, fail)
            with pytest.raises(OSError, match="No space left"):
                write_whole(path, b"new")
        assert list(tmp_path.iterdir()) == before
        path.write_bytes(b"old")
    assert path.read_bytes() == b"old"


def test_a_writer_that_fails_or_is_interrupted(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half(error):
        with whole_file(path) as file:
            file.write(b"half of the n")
            raise error

    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            write_half(error)
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]


def test_models_are_saved_whole_or_not_at_all(tmp_path, monkeypatch):
    def fail(*_args, **_kwargs):
        raise OSError("the cable came out")

    path = tmp_path / "model"
    X, Y = np.eye(6), np.eye(6)[:, :4]
    model = RACEClassifier(random_state=0).fit(X, Y)
    model.save(path)
    expected = model.decision_function(X)
    model.partial_fit(X, 1 - Y)
    for name in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(OSError, match="the cable came out"):
                model.save(path)
        assert list(tmp_path.iterdir()) == [path]
        np.testing.assert_array_equal(labelrace.load(path).decision_function(X), expected)


@pytest.mark.skipif(os.name != "posix", reason="rights of files are POSIX's")
@pytest.mark.parametrize(("umask", "rights"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664), (0o027, 0o640)])
def test_rights_follow_the_umask(tmp_path, umask, rights):
    path = tmp_path / "file"
    before = os.umask(umask)
    try:
        write_whole(path, b"content")
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == rights


def test_folders_that_are_missing_or_in_the_way(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*missing to write file into: make it first"):
        write_whole(tmp_path / "missing" / "file", b"content")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_whole(tmp_path / "folder", b"content")
    (tmp_path / "plain").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        write_whole(tmp_path / "plain" / "file", b"content")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "plain"]
