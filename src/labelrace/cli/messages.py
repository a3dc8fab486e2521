"""Messages of the command beside its results, and its end when it is stopped."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn, TextIO

import typer

from labelrace.exceptions import DataFormatError


class Interrupted(Exception):  # noqa: N818
    """Ctrl-C, with a sentence on what is saved. A KeyboardInterrupt would lose it: typer turns that into a status."""


def as_line(text: str) -> str:
    """Return text as a line that cannot control the terminal: with a space for each unprintable character."""
    return "".join(char if char.isprintable() else " " for char in text)


def say(line: str, *, err: bool = False) -> None:
    """Print a line that may hold names from files."""
    typer.echo(as_line(line), err=err)


def number_of(n: int, thing: str) -> str:
    """Return a number of things in words.

    >>> number_of(1, "row"), number_of(1662, "row")
    ('1 row', '1,662 rows')
    """
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def standard_input() -> TextIO:
    """Return standard input, from which rows are to be read."""
    if sys.stdin is None:
        raise ValueError("Standard input must be open to read '-', but it is closed: name a file, or pipe rows to it.")
    return sys.stdin


def standard_output() -> TextIO:
    """Return standard output, to which results are to be written."""
    if sys.stdout is None:
        raise ValueError("Standard output must be open to print predictions, but it is closed: give a file by --out.")
    return sys.stdout


def sentence(error: BaseException) -> str:
    """Return an error as one sentence."""
    # Other libraries explain themselves on further lines; --debug shows them.
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    if isinstance(error, MemoryError):
        text = f"not enough memory ({text})"
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return text if text.endswith((".", "!", "?")) else f"{text}."


def end_early(stopped: BaseException, n_rows: int, saved: Path, *more: str) -> NoReturn:
    """End a command that was stopped while it learned, after the model is saved, and say how much it has learned."""
    rows = "1 row was" if n_rows == 1 else f"{n_rows:,} rows were"
    learned = f"{rows} learned and" if n_rows else "Nothing new was learned;"
    message = " ".join([f"{learned} saved to {saved}.", *more])
    if isinstance(stopped, KeyboardInterrupt):
        raise Interrupted(message) from None
    raise DataFormatError(f"{sentence(stopped)} {message}") from stopped
