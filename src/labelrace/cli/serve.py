"""``labelrace serve``: start the service; export, import, back up and compact its journal."""

from __future__ import annotations

import copy
import inspect
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from labelrace.cli import options
from labelrace.cli.messages import number_of, say
from labelrace.exceptions import ServiceError
from labelrace.serve.problems import Problem

if TYPE_CHECKING:
    from labelrace.serve.database import Database
    from labelrace.serve.service import Service

_START = "start"


class _StartByDefault(TyperGroup):
    """A group that starts the service unless its first word is a subcommand; its help shows both."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take words that begin with no subcommand for those of ``start``."""
        if args and args[0] not in self.commands:
            wants_help = any(word in ctx.help_option_names for word in args)
            args = ["--help"] if wants_help else [_START, *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the arguments and options of ``start`` as those of the group."""
        start, shown = self.commands[_START], copy.copy(self)
        shown.params, shown.help = [*start.params, *self.params], start.help
        TyperGroup.format_help(shown, ctx, formatter)


app = typer.Typer(cls=_StartByDefault, no_args_is_help=True, help="Start a service that learns from every correction.")

_Data = Annotated[
    Path | None, options.option("--data", help="The folder of the journal; it is made if it does not exist.")
]
_Url = Annotated[
    str | None,
    options.option("--database", help="A database instead of the folder: postgresql://user@host/name."),
]


@app.command(_START, hidden=True)
def start(
    tagger: Annotated[
        Path | None,
        options.argument(
            metavar="TAGGER", help="The tagger that a new journal begins with: a file of 'labelrace train --tags'."
        ),
    ] = None,
    data: _Data = None,
    database: _Url = None,
    new: Annotated[bool, typer.Option("--new", help="Begin from nothing, unless there is a journal already.")] = False,
    tags: Annotated[str | None, options.option(help="With --new: the column of tags.")] = None,
    parameters: Annotated[
        list[str] | None,
        options.option("--set", help="With --new: a parameter of labelrace.Tagger, name=value. Repeatable."),
    ] = None,
    precision: Annotated[
        float | None,
        options.option(help="Target precision of suggestions, such as 0.9; from now on, on all processes."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; others than this machine need tokens.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="The port to listen on; 0 takes a free one.", min=0, max=65535)] = 8080,
    token_file: Annotated[
        Path | None,
        options.option(help="A file of tokens: lines of a role (predict, teach, admin), a token and a name."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, options.option(help="A further host name of the service. Repeatable.")
    ] = None,
    rate: Annotated[
        float | None, options.option(help="The largest number of requests a second of one address or token.", min=0.001)
    ] = None,
    max_body: Annotated[int, typer.Option(help="The largest size of a request, in bytes.", min=1)] = 10_000_000,
) -> None:
    """Start a service that predicts tags, learns from every correction, and has pages to correct on.

    Tags and corrections are kept in a journal, in a folder or a database. It begins with a tagger, or with --new from
    nothing; after that --data alone continues it. Several processes may serve one journal.

    [dim]Examples:[/dim]

    labelrace serve tagger.labelrace --data tickets

    labelrace serve --new --tags tags --data tickets

    labelrace serve --data tickets --host 0.0.0.0 --token-file tokens --allow-host tags.example.org
    """
    _check_beginning(tagger, new, tags, parameters)
    _check_journal(data, database)
    if precision is not None:
        from labelrace.base.parameters import check_number

        check_number("--precision", precision, 0.0, 1.0)
    with _plain_errors():
        from labelrace.serve import server
        from labelrace.serve.guards import ServerOptions
        from labelrace.serve.service import open_service
        from labelrace.serve.tokens import Tokens

        given = ServerOptions(
            host=host,
            port=port,
            tokens=Tokens() if token_file is None else Tokens.read(token_file),
            allow_hosts=tuple(allow_host or ()),
            rate=rate,
            max_body=max_body,
        )
        begins = {"tags": tags or "tags", **_parameters(parameters)} if new else None
        # First the port: nothing is begun for a service that cannot be reached.
        with server.bind(given) as listener:
            service = open_service(data, database=database, tagger=tagger, new=begins)
            try:
                if precision is not None:
                    _ask_for(service, precision)
                say(f"labelrace serves {_address(host, listener.getsockname()[1])} until Ctrl-C.")
                say(f"The journal is in {_where(data, database)}.")
            except BaseException:
                service.close()
                raise
            server.run(service, given, listener=listener)


def _parameters(texts: list[str] | None) -> dict[str, Any]:
    """Return parameters of a tagger; others are refused."""
    from labelrace.tables import Tagger

    known, chosen = inspect.signature(Tagger).parameters, options.as_parameters(texts)
    if unknown := chosen.keys() - known.keys():
        names = ", ".join(sorted(known))
        raise ValueError(f"--set must name a parameter of labelrace.Tagger, got {min(unknown)!r}: there are {names}.")
    return chosen


def _ask_for(service: Service, precision: float) -> None:
    """Set the target precision of all processes, unless it is set already."""
    from labelrace.serve.lessons import Lesson

    service.catch_up(None)
    if service.folded.tagger.precision != precision:
        [answer] = service.teach([Lesson("set", {"parameters": {"precision": precision}})])
        if isinstance(answer, Problem):
            raise answer


def _address(host: str, port: int) -> str:
    """Return the address of a service.

    Examples
    --------
    >>> _address("::1", 8080), _address("localhost", 80)
    ('http://[::1]:8080', 'http://localhost:80')
    """
    return f"http://[{host.strip('[]')}]:{port}" if ":" in host else f"http://{host}:{port}"


def _check_beginning(tagger: Path | None, new: bool, tags: str | None, parameters: list[str] | None) -> None:
    """Refuse two beginnings, and options that are only for --new."""
    if tagger is not None and new:
        raise ValueError("TAGGER and --new must not be given together: begin with a tagger, or from nothing.")
    if not new and (tags is not None or parameters):
        raise ValueError(
            f"{'--set' if parameters else '--tags'} needs --new: it is for a journal that begins from nothing."
        )


def _check_journal(data: Path | None, database: str | None) -> None:
    """Refuse a missing journal, or two."""
    if data is None and database is None:
        raise ValueError(
            "--data must be the folder of the journal, or --database the URL of its database, got neither."
        )
    if data is not None and database is not None:
        raise ValueError("--data and --database must not be given together: the journal is in one of them.")
    if data is not None and data.exists() and not data.is_dir():
        raise ValueError(f"--data must be a folder, got the file {data}: name another.")


@app.command("export")
def export_journal(
    data: _Data = None,
    database: _Url = None,
    out: Annotated[
        Path | None, options.option("--out", "-o", help="The file to write; by default standard output.")
    ] = None,
) -> None:
    """Write the journal as JSON lines: its start, then an entry a line.

    [dim]Example:[/dim] labelrace serve export --data tickets -o journal.jsonl
    """
    with _journal(data, database) as opened:
        from labelrace.serve.export import lines

        _write(lines(opened), out)


def _write(lines: Iterable[bytes], out: Path | None) -> None:
    """Write lines to a file, whole or not at all, or to standard output."""
    from labelrace.base.files import atomic_file
    from labelrace.cli.messages import standard_output

    if out is None:
        standard_output().flush()
        for line in lines:
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        return
    options.check_out(out)
    count = -1  # the first line is not an entry
    with atomic_file(out) as file:
        for line in lines:
            file.write(line)
            count += 1
    say(f"{number_of(max(count, 0), 'entry').replace('entrys', 'entries')}: {out}")


@app.command("import")
def import_journal(
    source: Annotated[str, options.argument(help="An exported journal; '-' reads standard input.")],
    data: _Data = None,
    database: _Url = None,
) -> None:
    """Begin a journal with an exported one, for instance to move it from a folder to PostgreSQL.

    [dim]Example:[/dim] labelrace serve import journal.jsonl --database postgresql://tagger@db/tickets
    """
    with _journal(data, database, is_new=True) as opened:
        from labelrace.cli.messages import standard_input
        from labelrace.serve import maintenance

        if source == "-":
            position = maintenance.import_journal(opened, standard_input())
        else:
            with open(source, "rb") as file:
                position = maintenance.import_journal(opened, file)
    say(f"Imported up to position {position:,}: {_where(data, database)}")


@app.command("backup")
def back_up(
    path: Annotated[Path, options.argument(metavar="FILE", help="The file to write the copy to.")], data: _Data = None
) -> None:
    """Copy the journal of a folder into a file, while it is in use; for PostgreSQL, use pg_dump.

    The copy is a journal, too: as journal.sqlite in a folder of its own, it can be served.

    [dim]Example:[/dim] labelrace serve backup /backups/tickets.sqlite --data tickets
    """
    with _journal(data, None) as opened:
        from labelrace.serve import maintenance

        maintenance.backup(opened, path)
    say(f"The journal is copied: {path}")


@app.command("compact")
def compact(data: _Data = None, database: _Url = None, as_json: options.AsJson = False) -> None:
    """Forget what entries say that two snapshots have, and give their space back; nothing that was learned is lost.

    It writes a snapshot, which is the second one at the earliest when it is called again after further lessons. Until
    then nothing is forgotten, and the file grows by the snapshot.

    The history of rows stays. Compacted entries can no longer be exported.

    [dim]Example:[/dim] labelrace serve compact --data tickets
    """
    with _journal(data, database) as opened:
        from labelrace.serve import maintenance

        before = maintenance.size_of(opened)
        done = maintenance.compact(opened)
        if done.entries:
            maintenance.shrink(opened)
        after = maintenance.size_of(opened)
    if as_json:
        typer.echo(json.dumps({**done._asdict(), "before": before, "after": after}))
        return
    sizes = "" if before is None or after is None else f" {before / 1e6:.1f} MB became {after / 1e6:.1f} MB."
    if not done.position:
        say(f"Nothing is forgotten before there are two snapshots: compact again when more was learned.{sizes}")
        return
    say(f"{done.entries:,} entries up to position {done.position:,} are in snapshots only.{sizes}")


@contextmanager
def _journal(data: Path | None, database: str | None, *, is_new: bool = False) -> Iterator[Database]:
    """Open the database of a journal, and close it."""
    _check_journal(data, database)
    with _plain_errors():
        from labelrace.serve.start import open_database

        opened = open_database(data, database, is_new=is_new)
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn a missing extra, and problems of the service, into errors of the command."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name == "labelrace":
            raise
        extra = "serve,postgresql" if name.startswith("psycopg") else "serve"
        raise ImportError(f"labelrace serve needs {name}: pip install 'labelrace[{extra}]'.") from None
    except Problem as problem:
        # The answer to a request, as an error of the command.
        raise ServiceError(problem.detail, problem.status) from problem


def _where(data: Path | None, database: str | None) -> str:
    """Return the folder or the URL of a journal, without a password."""
    if database is None:
        return str(data)
    from sqlalchemy import make_url

    return make_url(database).render_as_string(hide_password=True)
