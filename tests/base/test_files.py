"""Files are written whole or not at all."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from labelrace import RACEClassifier
from labelrace.base.files import atomic_file, write_atomic

posix = pytest.mark.skipif(os.name != "posix", reason="rights, links and pipes are POSIX's")


def test_new_files_and_replaced_ones(tmp_path):
    path = tmp_path / "file"
    for content in (b"first", b"", bytes(range(256)) * 1000):
        write_atomic(path, content)
        assert path.read_bytes() == content
    write_atomic(str(path), b"by name")
    assert path.read_bytes() == b"by name"
    assert list(tmp_path.iterdir()) == [path]


def test_files_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_atomic("file", b"here")
    assert (tmp_path / "file").read_bytes() == b"here"


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failure_midway_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failing):
    def fail(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    for before in ([], [path]):
        with monkeypatch.context() as patch:
            patch.setattr(os, failing, fail)
            with pytest.raises(OSError, match="No space left"):
                write_atomic(path, b"new")
        assert list(tmp_path.iterdir()) == before
        path.write_bytes(b"old")
    assert path.read_bytes() == b"old"


@posix
def test_a_failure_to_copy_rights_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_args):
        raise PermissionError("no such right")

    monkeypatch.setattr(os, "chmod", fail)
    with pytest.raises(PermissionError, match="no such right"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_that_fails_or_is_interrupted(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half(error):
        with atomic_file(path) as file:
            file.write(b"half of the n")
            raise error

    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            write_half(error)
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]


@posix
@pytest.mark.parametrize(("umask", "rights"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664), (0o027, 0o640)])
def test_rights_follow_the_umask(tmp_path, umask, rights):
    path = tmp_path / "file"
    before = os.umask(umask)
    try:
        write_atomic(path, b"content")
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == rights


def test_folders_that_are_missing_or_in_the_way(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*missing to write file into: make it first"):
        write_atomic(tmp_path / "missing" / "file", b"content")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_atomic(tmp_path / "folder", b"content")
    (tmp_path / "plain").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        write_atomic(tmp_path / "plain" / "file", b"content")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "plain"]


@posix
@pytest.mark.parametrize("rights", [0o600, 0o640, 0o666, 0o755])
def test_a_file_that_is_there_keeps_its_rights(tmp_path, rights):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(rights)
    with atomic_file(path) as file:
        file.write(b"new")
        # Nobody else may read what is being written, whatever becomes of it.
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077 == 0
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == rights


@posix
def test_a_link_stays_one(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    real, link, dangling = tmp_path / "elsewhere" / "real", tmp_path / "link", tmp_path / "dangling"
    real.write_bytes(b"old")
    link.symlink_to(real)
    dangling.symlink_to(Path("elsewhere", "new"))
    for path, target in ((link, real), (dangling, tmp_path / "elsewhere" / "new")):
        write_atomic(path, b"content")
        assert path.is_symlink()
        assert target.read_bytes() == b"content"
        assert not target.is_symlink()
    assert len(list((tmp_path / "elsewhere").iterdir())) == 2


@posix
def test_devices_and_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    model = RACEClassifier(random_state=0).fit(np.eye(6), np.eye(6)[:, :4])
    for path in (tmp_path / "pipe", tmp_path / "link", "/dev/null"):
        with pytest.raises(OSError, match="must be a plain file, got a device, pipe or socket"):
            model.save(path)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write anywhere")
def test_files_and_folders_without_the_right_to_write(tmp_path):
    path, folder = tmp_path / "file", tmp_path / "folder"
    path.write_bytes(b"old")
    path.chmod(0o444)
    folder.mkdir(mode=0o555)
    for target in (path, folder / "file"):
        with pytest.raises(PermissionError, match="that you may write"):
            write_atomic(target, b"new")
    assert path.read_bytes() == b"old"


@posix
def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    code = f"""
import os, signal
from labelrace.base.files import atomic_file
with atomic_file({str(path)!r}) as file:
    file.write(b"half of the n")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"


def test_files_that_are_being_written_at_the_same_time(tmp_path):
    with atomic_file(tmp_path / "one") as one, atomic_file(tmp_path / "other") as other:
        write_atomic(tmp_path / "one", b"third")
        one.write(b"first")
        other.write(b"second")
    assert (tmp_path / "one").read_bytes() == b"first"
    assert (tmp_path / "other").read_bytes() == b"second"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["one", "other"]


def test_long_names(tmp_path):
    for name in ("x" * 255, "ä" * 127, "🂡" * 63):
        write_atomic(tmp_path / name, b"content")
        assert (tmp_path / name).read_bytes() == b"content"
