"""What the command prints beside results, and how it ends when it is stopped."""

from __future__ import annotations

from typing import NoReturn

import typer

from labelrace.exceptions import DataFormatError


class Interrupted(Exception):  # noqa: N818
    """Ctrl-C, with a sentence on what is saved. A KeyboardInterrupt would lose it: typer turns that into a status."""


def as_line(text: str) -> str:
    """Return text as a line that cannot control the terminal: with a space for each character that does not print."""
    return "".join(char if char.isprintable() else " " for char in text)


def say(line: str, *, err: bool = False) -> None:
    """Print a line that may hold names from files."""
    typer.echo(as_line(line), err=err)


def end_early(stopped: BaseException, message: str) -> NoReturn:
    """End a command that was stopped while it learned, after the model is saved; `message` says where."""
    if isinstance(stopped, KeyboardInterrupt):
        raise Interrupted(message) from None
    raise DataFormatError(f"{str(stopped).rstrip('.')}. What came before is saved. {message}") from stopped
