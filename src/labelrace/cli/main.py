"""The command ``labelrace``, and how it ends: one sentence for an error, valid files after Ctrl-C."""

from __future__ import annotations

import os
import select
import sys
import warnings
from typing import Annotated

import typer
from rich.console import Console

from labelrace import __version__
from labelrace.base import registry
from labelrace.cli import compare, data, inspect, models, predict, report, run, serve, tags, test, train, watch
from labelrace.cli.messages import Interrupted, as_line, sentence
from labelrace.exceptions import LabelraceError

app = typer.Typer(
    name="labelrace",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
# In the order of the help: the work of a user, then that of a researcher.
app.command()(train.train)
app.command()(train.update)
app.command()(predict.predict)
app.command("test")(test.measure)
app.command()(compare.compare)
app.command()(inspect.explain)
app.command()(inspect.inspect)
app.add_typer(tags.app, name="tags")
app.add_typer(serve.app, name="serve")
app.command()(watch.watch)
app.command()(run.run)
app.command()(report.report)
app.command("models")(models.list_models)
app.add_typer(data.app, name="data")

# Raised for a wrong file, a wrong parameter or a full disk. Anything else is a defect, and shows a traceback.
_EXPECTED = (LabelraceError, ValueError, OSError, NotImplementedError, FloatingPointError, ImportError, MemoryError)

_INTERRUPTED = 130
# The numbers of standard output and standard error.
_OUTPUTS = (1, 2)


def _version(show: bool) -> None:
    if show:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _global(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", help="A class of your own, module:Class, that model files may hold. Repeatable."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Learn from streams of rows to predict their labels: online multi-label classification.

    [bold]labelrace train[/bold] and [bold]labelrace predict[/bold] are for tables with tags and for data files.

    [bold]labelrace run[/bold] compares models; without arguments it is a demonstration on generated tickets.
    """
    for name in models or []:
        registry.allow(name)


def main() -> None:
    """Run the command; its status is 0, 1 for an error, 2 for a wrong call, 3 if a model failed, 130 after Ctrl-C."""
    try:
        _run()
    except KeyboardInterrupt:
        # A second Ctrl-C, while the first one was being dealt with.
        sys.exit(_INTERRUPTED)


def _run() -> None:
    """Run the command, and exit with its status."""
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal cannot show is replaced; it must not end the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    warnings.showwarning = lambda message, *_, **__: _complain(f"Warning: {message}")
    saved, discards = "", _discards_output()
    try:
        status = app(prog_name="labelrace", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        status = _INTERRUPTED
    except Interrupted as error:
        saved, status = str(error), _INTERRUPTED
    except (BrokenPipeError, SystemExit) as error:
        # typer makes an exit with status 1 of a broken pipe.
        broken = error if isinstance(error, BrokenPipeError) else error.__context__
        if not isinstance(broken, BrokenPipeError):
            raise
        if not _has_lost_its_reader(discards):
            sys.exit(_report(broken))
        # The reader of the output has ended, as in `labelrace predict … | head`: this is no error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if "--debug" in sys.argv[1:]:
            raise
        sys.exit(_report(error))
    if sys.stdout is None and not status:
        _complain("Standard output is closed: the output is lost.")
    # Some versions of typer return this status, others raise.
    if status == _INTERRUPTED:
        _complain(f"Interrupted. {saved}".rstrip())
    sys.exit(status if isinstance(status, int) else 0)


def _has_lost_its_reader(discards: bool) -> bool:
    """Return whether the reader of the output has ended; another pipe that breaks, one to a worker, is an error.

    If so, rich may have led the output to the null device; ``discards`` tells whether it went there from the start.
    """
    if not hasattr(select, "poll") or (_discards_output() and not discards):
        return True
    outputs = select.poll()
    for number in _OUTPUTS:
        outputs.register(number, select.POLLERR)
    return any(event & select.POLLERR for _, event in outputs.poll(0))


def _discards_output() -> bool:
    """Return whether standard output is closed or the null device."""
    try:
        return os.path.samestat(os.fstat(_OUTPUTS[0]), os.stat(os.devnull))
    except OSError:
        return True


def _report(error: Exception) -> int:
    """Print an error in one sentence and return the exit status; a defect shows its traceback."""
    # A wrong call: typer knows how to show it. Its exceptions have no public base.
    if hasattr(error, "show") and hasattr(error, "exit_code"):
        error.show()
        return int(error.exit_code)
    if not isinstance(error, _EXPECTED):
        raise error
    _complain(f"Error: {sentence(error)}")
    return 1


def _complain(text: str) -> None:
    Console(stderr=True, soft_wrap=True, highlight=False).print(as_line(text), style="red", markup=False)
