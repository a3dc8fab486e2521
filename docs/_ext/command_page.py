"""The page of the command, from what ``--help`` says of each part."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer
from markdown_table import table

from labelrace.cli.main import app


def commands() -> str:
    """Return the page."""
    parts = _parts(typer.main.get_command(app), ["labelrace"])
    return "\n".join(["<!-- made by docs/_ext/command_page.py -->\n", "# The command\n", *parts])


def _parts(command: Any, words: list[str]) -> Iterator[str]:
    if len(words) > 1:
        yield f"{'#' * min(len(words), 4)} {' '.join(words)}\n"
    about, *examples = _EXAMPLES.split(inspect.cleandoc(command.help or "").replace("\x08", ""), maxsplit=1)
    yield _marked(about.strip()) + "\n"
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    below = getattr(command, "commands", {})
    if not below:
        named = [f"[{_name(one)}]" if not one.required else _name(one) for one in arguments]
        yield f"```text\n{' '.join([*words, *named, '[OPTIONS]'])}\n```\n"
    lines = [_plain(line.strip()) for line in "".join(examples).splitlines() if line.strip()]
    if lines:
        yield "\n".join(["```sh", *lines, "```\n"])
    if not below:
        yield table(("argument", ""), ((f"`{_name(one)}`", _marked(one.help or "")) for one in arguments))
        yield table(("option", ""), ((_option(one), f"{_marked(one.help or '')}{_default(one)}") for one in options))
    for name, one in below.items():
        yield from _parts(one, [*words, name])


def _name(argument: Any) -> str:
    return (argument.metavar or argument.name).upper()


def _option(option: Any) -> str:
    return ", ".join(f"`{text}`" for text in (*option.opts, *option.secondary_opts))


def _default(option: Any) -> str:
    """Say the default, where it is a value that one could type."""
    is_value = isinstance(option.default, int | float | str) and not isinstance(option.default, bool)
    return f" Default: `{option.default}`." if is_value and option.default != "" else ""


_EXAMPLES = re.compile(r"^(?:\[dim\])?Examples?:(?:\[/dim\])? *", re.MULTILINE)


def _marked(text: str) -> str:
    """Write what one types as code: bold or quoted words, and names of options."""
    text = re.sub(r"\[bold\](.*?)\[/bold\]|(?<!\w)'([^']+)'(?!\w)", lambda found: f"`{found[1] or found[2]}`", text)
    parts = re.split(r"(`[^`]*`)", _plain(text))
    return "".join(one if one[:1] == "`" else re.sub(r"(?<![\w-])--?[a-z][\w-]*", r"`\g<0>`", one) for one in parts)


def _plain(text: str) -> str:
    """Return a text without rich's marks."""
    return re.sub(r"\[/?(?:bold|dim|italic)\]|\x08", "", text)
