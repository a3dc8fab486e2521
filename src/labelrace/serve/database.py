"""Where a journal is kept: SQLite in a folder, or PostgreSQL by URL, through SQLAlchemy Core.

Any number of processes may use one database. One of them writes at a time (`Database.writing`), so that entries have
one order; all others read committed entries without waiting. SQLite writes ahead and waits for the disk at every commit
(``journal_mode=WAL``, ``synchronous=FULL``): a commit outlives a kill and a loss of power.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from labelrace.serve.problems import busy

FILE = "journal.sqlite"
"""The name of SQLite's file in the folder of a service."""

# The lock that the processes of one PostgreSQL database share; any number that is ours.
_LOCK = 0x1ABE_17AC
# Seconds to wait for another process that writes.
_PATIENCE = 20
# Seconds after which PostgreSQL ends an idle connection that writes: its process may be cut off.
_SILENCE = 120

TABLES = sql.MetaData()

ENTRIES = sql.Table(
    "entries",
    TABLES,
    sql.Column("position", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("batch", sql.BigInteger, nullable=False),  # the position of the first entry of its commit
    sql.Column("time", sql.Float, nullable=False),  # seconds since 1970; never less than that of the entry before
    sql.Column("kind", sql.String(20), nullable=False),
    sql.Column("who", sql.String(200), nullable=False),
    sql.Column("key", sql.String(200), unique=True),  # of a request that is to count once
    sql.Column("digest", sql.String(64), nullable=False),  # of that request, so that a key stands for one only
    sql.Column("learned", sql.Integer, nullable=False),  # rows, for the answer
    sql.Column("body", sql.Text),  # JSON; NULL once the journal was compacted
)
"""The journal: what people said, in order."""

ROWS = sql.Table(
    "rows",
    TABLES,
    sql.Column("id", sql.String(200), primary_key=True),
    sql.Column("arrived", sql.BigInteger, nullable=False),  # counts up
    sql.Column("time", sql.Float, nullable=False),  # when it arrived, or was tagged
    sql.Column("cells", sql.Text, nullable=False),
    sql.Column("words", sql.Text, nullable=False),  # the text that is searched
    sql.Column("suggested", sql.Text),  # tags, probabilities and position of the last prediction
    sql.Column("review", sql.Boolean, nullable=False),
    sql.Column("useful", sql.Float, nullable=False),
    sql.Column("state", sql.String(10), nullable=False),  # waiting, tagged
    sql.Column("tags", sql.Text),
    sql.Column("who", sql.String(200), nullable=False),
    sql.Column("history", sql.Text, nullable=False),  # the last entries about it
    sql.Column("open_by", sql.String(200)),
    sql.Column("open_until", sql.Float, nullable=False),
    sql.Index("rows_newest", "state", "arrived"),
    sql.Index("rows_review", "state", "review", "arrived"),
    sql.Index("rows_useful", "state", "useful", "arrived"),
)
"""Rows with ids, and their last tags."""

SNAPSHOTS = sql.Table(
    "snapshots",
    TABLES,
    sql.Column("position", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("maker", sql.String(32), nullable=False),  # of its parts
    sql.Column("time", sql.Float, nullable=False),
    sql.Column("size", sql.BigInteger, nullable=False),
    sql.Column("digest", sql.String(64), nullable=False),
)
"""Models at a position, whose parts are all there."""

PARTS = sql.Table(
    "parts",
    TABLES,
    sql.Column("position", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("maker", sql.String(32), primary_key=True),  # several may write one snapshot
    sql.Column("number", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("body", sql.LargeBinary, nullable=False),
)
"""The bytes of snapshots, in parts that do not keep others from writing for long."""

FACTS = sql.Table(
    "facts",
    TABLES,
    sql.Column("name", sql.String(40), primary_key=True),
    sql.Column("value", sql.Text, nullable=False),
)
"""Facts about the whole journal, by name, as JSON."""


class Database:
    """A database and its connections.

    Parameters
    ----------
    url : str
        The URL for SQLAlchemy; `url_of` makes it from a folder.
    """

    def __init__(self, url: str) -> None:
        self.url = sql.make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite:
            self.engine = sql.create_engine(self.url, connect_args={"timeout": _PATIENCE, "check_same_thread": False})
            sql.event.listen(self.engine, "connect", _prepare)
            sql.event.listen(self.engine, "begin", _begin)
        else:
            # Whoever writes must see what was committed until it got the lock, whatever the database's default is.
            self.engine = sql.create_engine(
                self.url,
                isolation_level="READ COMMITTED",
                pool_pre_ping=True,
                connect_args={"connect_timeout": 5},
            )
            sql.event.listen(self.engine, "connect", _prepare_postgresql)
        # Within the process writers wait for one another here: SQLite's own waiting is by trying again.
        self._writing = threading.Lock()

    def create(self) -> None:
        """Make the missing tables."""
        with self.writing() as connection:
            TABLES.create_all(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that reads one committed state."""
        with self._available("read"), self._connect(writes=False) as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield the only connection that writes until its end, which commits; an error rolls back."""
        with self._writing, self._available("written"), self._connect(writes=True) as connection, connection.begin():
            if not self.is_sqlite:
                settings = f"SET LOCAL lock_timeout = '{_PATIENCE}s'; "
                connection.exec_driver_sql(f"{settings}SET LOCAL idle_in_transaction_session_timeout = '{_SILENCE}s'")
                connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_LOCK)))
            yield connection

    def _connect(self, *, writes: bool) -> Connection:
        connection = self.engine.connect().execution_options(writes=writes)
        if self.is_sqlite or writes:
            return connection
        # One state for all that a reader asks.
        return connection.execution_options(isolation_level="REPEATABLE READ")

    def insert(self, table: sql.Table) -> Any:
        """Begin a statement that inserts rows, and may say what happens to existing ones."""
        return (sqlite if self.is_sqlite else postgresql).insert(table)

    @contextmanager
    def _available(self, how: str) -> Iterator[None]:
        """Turn the errors of a database that is gone, full or locked into a problem."""
        try:
            yield
        except sql.exc.TimeoutError:
            raise busy(f"The journal cannot be {how} now (all connections are in use).") from None
        except sql.exc.DBAPIError as error:
            if isinstance(error, sql.exc.IntegrityError | sql.exc.ProgrammingError):
                raise
            detail = f"The journal cannot be {how} now ({reason(error)})."
            if how == "written" and error.connection_invalidated:
                # The commit itself may have got through, and only its answer not.
                detail += " It may have been written nevertheless: send it again with the same Idempotency-Key."
            raise busy(detail) from error

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def reason(error: BaseException) -> str:
    """Return the message of a database error, without the statement."""
    original = getattr(error, "orig", None) or error
    return str(original).strip().partition("\n")[0]


def url_of(data: Path) -> str:
    """Return the URL of SQLite's file in a folder."""
    return sql.URL.create("sqlite", database=str(data / FILE)).render_as_string()


def checked_url(url: str) -> str:
    """Return the URL of a PostgreSQL or SQLite database with the driver that is used; refuse others.

    Examples
    --------
    >>> checked_url("postgresql://me@host/tickets")
    'postgresql+psycopg://me@host/tickets'
    """
    try:
        made = sql.make_url(url)
    except sql.exc.ArgumentError:
        raise ValueError(f"database must be a URL, such as postgresql://user@host/name, got {url!r}.") from None
    if made.drivername in ("postgres", "postgresql"):
        made = made.set(drivername="postgresql+psycopg")
    if made.get_backend_name() not in ("postgresql", "sqlite"):
        raise ValueError(f"database must be one of PostgreSQL or SQLite, got {made.get_backend_name()!r}.")
    return made.render_as_string(hide_password=False)


def _prepare(connection: Any, _: Any) -> None:
    """Set up a new connection to SQLite."""
    # Transactions begin where we say, and not at the first statement that writes.
    connection.isolation_level = None
    cursor = connection.cursor()
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            # Of several that are first at a new file SQLite refuses some at once, whatever their time-out is.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _prepare_postgresql(connection: Any, _: Any) -> None:
    """Set up a new connection to PostgreSQL: what is committed is on disk, even where a commit need not wait for it."""
    with connection.cursor() as cursor:
        setting = "set_config('synchronous_commit', 'on', false)"
        cursor.execute(f"SELECT {setting} WHERE current_setting('synchronous_commit') = 'off'")
    connection.commit()


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
