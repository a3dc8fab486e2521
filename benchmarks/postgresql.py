"""A PostgreSQL cluster of its own for tests and benchmarks, from the programs that are installed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pwd

# What is measured is what people have: all that is committed is on disk.
_SETTINGS = "listen_addresses = ''\nfsync = on\nsynchronous_commit = on\nmax_connections = 100\nshared_buffers = 32MB\n"
_SECONDS = 60


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs, of the newest version; None if there are none."""
    if named := os.environ.get("POSTGRESQL"):
        return Path(named)
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


def why_not() -> str | None:
    """Return why there can be no cluster here; None if there can be one."""
    if programs() is None:
        return "there is no PostgreSQL: install it, or name the folder of its programs in POSTGRESQL"
    if _is_root() and _user() is None:
        return "PostgreSQL does not run as root, and there is no user postgres or nobody, or no setpriv"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "there is no psycopg: pip install 'labelrace[postgresql]'"
    return None


class Cluster:
    """A cluster in a folder, which is reached by a socket there.

    Parameters
    ----------
    folder : Path
        It is made, for the user of the cluster.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        found = programs()
        if found is None:
            raise ValueError(str(why_not()))
        self._programs = found
        self._count = 0
        folder.mkdir()
        if _is_root() and (user := _user()):
            os.chown(folder, user.pw_uid, user.pw_gid)
        self._run("initdb", "-D", f"{folder}/data", "-U", "labelrace", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        with open(folder / "data" / "postgresql.conf", "a", encoding="utf-8") as file:
            file.write(f"{_SETTINGS}unix_socket_directories = '{folder}'\n")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._run("pg_ctl", "start", "-w", "-t", str(_SECONDS), "-D", f"{self.folder}/data", "-l", f"{self.folder}/log")

    def stop(self, how: str = "fast") -> None:
        """Stop it: ``"immediate"`` is as if it was killed."""
        self._run("pg_ctl", "stop", "-w", "-t", str(_SECONDS), "-m", how, "-D", f"{self.folder}/data")

    def crash(self) -> None:
        """Kill it, and start it again."""
        self.stop("immediate")
        self.start()

    def new_database(self) -> str:
        """Make an empty database, and return its URL."""
        self._count += 1
        name = f"journal{self._count}"
        self._run("createdb", "-h", str(self.folder), "-U", "labelrace", name)
        return f"postgresql://labelrace@/{name}?host={self.folder}"

    def _run(self, program: str, *arguments: str) -> None:
        command = [*_as_user(), str(self._programs / program), *arguments]
        # Not by a pipe: the server would keep it open.
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=120)
            said.seek(0)
            if done.returncode:
                raise OSError(f"{program}: {said.read().decode(errors='replace').strip()}")


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Yield a cluster that runs, in a folder that is removed at the end."""
    # Not below a folder that only its owner may enter; and the path of a socket is short.
    folder = Path(tempfile.mkdtemp(prefix="labelrace-"))
    folder.chmod(0o755)
    try:
        cluster = Cluster(folder / "pg")
        cluster.start()
        try:
            yield cluster
        finally:
            with contextlib.suppress(OSError):
                cluster.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_root() -> bool:
    return os.geteuid() == 0


def _user() -> pwd.struct_passwd | None:
    """Return a user without rights that is there, if one can become it."""
    import pwd  # not on every system

    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name) if shutil.which("setpriv") else None
    return None


def _as_user() -> Sequence[str]:
    """Return the beginning of a command that is run by a user without rights."""
    if not _is_root() or (user := _user()) is None:
        return ()
    return ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
