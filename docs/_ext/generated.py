"""Pages that follow from the code: the methods, the commands, the HTTP API, and what benchmarks have recorded.

They are written below ``docs/`` before Sphinx reads its sources, into files that git ignores, and only if they have changed,
so that a second build reads what is new.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import typer
from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]


def write(app: Sphinx) -> None:
    """Write all pages that are generated."""
    pages = {"reference/api.rst": _reference(), "reference/command.md": _commands(), "reference/http.md": _http()}
    for name, page in (dict(_method_pages()) | dict(_root_pages()) | pages).items():
        path = DOCS / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != page:
            path.write_text(page, encoding="utf-8")


# --- Files of the root ------------------------------------------------------------------------------------------------

_ROOT_FILES = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "guide/security.md",
}


def _root_pages() -> Iterator[tuple[str, str]]:
    """Yield what stands at the root, where visitors of the repository look for it, with links as the site needs them."""
    for name, page in _ROOT_FILES.items():

        def moved(match: re.Match[str], page: str = page) -> str:
            target = _ROOT_FILES.get(match[1], match[1].removeprefix("docs/"))
            return f"]({os.path.relpath(target, Path(page).parent)}"

        text = (DOCS.parent / name).read_text(encoding="utf-8")
        yield page, re.sub(r"\]\(((?:docs/)?[\w/.-]+\.(?:md|svg|png))", moved, text)


# --- Public names -----------------------------------------------------------------------------------------------------

_PUBLIC = {
    "labelrace": "Models, taggers, data and clients.",
    "labelrace.measures": "How good predictions are.",
    "labelrace.evaluation": "Test, then train; rows held out; records and ranks.",
    "labelrace.report": "Tables, charts and pages of a run.",
    "labelrace.streams": "Files and datasets as batches of rows.",
    "labelrace.tables": "Tables and texts in, tags out.",
    "labelrace.distributed": "The same models on Dask.",
    "labelrace.river": "The same models for River.",
    "labelrace.checks": "What every model must pass; for a method of your own.",
    "labelrace.exceptions": "What is raised.",
}


def _reference() -> str:
    """Return the list of everything public, with a page for each."""
    parts = ["Public names\n============\n"]
    for name, about in _PUBLIC.items():
        module = import_module(name)
        public = getattr(module, "__all__", None) or [one for one in vars(module) if inspect.isclass(vars(module)[one])]
        names = "".join(f"   {one}\n" for one in sorted(public, key=str.lower) if not one.startswith("_"))
        parts.append(f"{name}\n{'-' * len(name)}\n\n{about}\n\n.. currentmodule:: {name}\n")
        parts.append(f".. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{names}")
    return "\n".join(parts)


# --- Methods ----------------------------------------------------------------------------------------------------------


def _method_pages() -> Iterator[tuple[str, str]]:
    """Yield a page for each module that has methods: what its docstring says, and its classes."""
    from labelrace.base import registry

    modules: dict[str, dict[str, str]] = {}
    for name in registry.model_names():
        module, _, path = registry._MODELS[name].factory.partition(":")
        modules.setdefault(module, {})[name] = path.partition(".")[0]
    listed = []
    for module, names in modules.items():
        page = module.removeprefix("labelrace.").replace(".", "-")
        classes = dict.fromkeys(names.values())
        title = " ".join(f"``{name}``" for name in names)
        text = f"{title}\n{'=' * len(title)}\n\n.. automodule:: {module}\n   :no-members:\n\n"
        public = [one for one in classes if one in registry.PUBLIC_HOMES]
        text += "".join(f".. autoclass:: labelrace.{one}\n   :noindex:\n   :no-members:\n\n" for one in public)
        about = [f"   * - :doc:`{name} <{page}>`\n     - {registry._MODELS[name].about}\n" for name in names]
        listed += about
        yield f"methods/{page}.rst", text
    rows = "".join(listed)
    table = f".. list-table::\n   :header-rows: 1\n\n   * - name\n     - what it is\n{rows}"
    pages = "".join(f"   {module.removeprefix('labelrace.').replace('.', '-')}\n" for module in modules)
    title = "All methods, by name\n====================\n\n"
    yield "methods/by-name.rst", f"{title}{table}\n.. toctree::\n   :hidden:\n\n{pages}"


# --- The command ------------------------------------------------------------------------------------------------------


def _commands() -> str:
    """Return the pages of the command: what ``--help`` says, for each."""
    from labelrace.cli.main import app

    parts = ["# The command\n\nWhat `--help` says of each command.\n"]
    _add_command(parts, typer.main.get_command(app), ["labelrace"])
    return "\n".join(parts)


def _add_command(parts: list[str], command: click.Command, words: list[str]) -> None:
    context = click.Context(command, info_name=" ".join(words))
    if len(words) > 1:
        parts.append(f"{'#' * min(len(words), 4)} {' '.join(words)}\n")
    parts.append(_plain(inspect.cleandoc(command.help or "")) + "\n")
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    if not hasattr(command, "commands"):
        parts.append(f"```text\n{' '.join([*words, *command.collect_usage_pieces(context)])}\n```\n")
        if arguments:
            parts.append("| argument | |\n| --- | --- |")
            parts.append("".join(f"| `{_argument(one)}` | {_cell(getattr(one, 'help', '') or '')} |\n" for one in arguments))
        parts.append("| option | |\n| --- | --- |")
        parts.append("".join(f"| {_option(one)} | {_cell(one.help or '')}{_default(one)} |\n" for one in options))
    for name, one in getattr(command, "commands", {}).items():
        _add_command(parts, one, [*words, name])


def _argument(one: click.Argument) -> str:
    return (one.metavar or one.name or "").upper()


def _option(one: click.Option) -> str:
    return ", ".join(f"`{text}`" for text in (*one.opts, *one.secondary_opts))


def _default(one: click.Option) -> str:
    default = one.default
    shown = default is not None and not callable(default) and default is not False and default != () and one.show_default is not False
    return f" Default: `{default}`." if shown and str(default) and "UNSET" not in str(default).upper() else ""


def _plain(text: str) -> str:
    for mark in ("[bold]", "[/bold]", "[dim]", "[/dim]", "\b"):
        text = text.replace(mark, "")
    return text


def _cell(text: str) -> str:
    return " ".join(_plain(text).replace("|", "\\|").split())


# --- The HTTP API -----------------------------------------------------------------------------------------------------


def _http() -> str:
    """Return the page of the service's API, from its OpenAPI."""
    schema = _open_api()
    parts = [f"# The HTTP API\n\n{schema['info'].get('description', '')}\n"]
    for path, methods in schema["paths"].items():
        for method, one in methods.items():
            parts.append(f"## {method.upper()} {path}\n\n{one.get('description') or one.get('summary', '')}\n")
            parameters = one.get("parameters", ())
            if parameters:
                rows = "".join(f"| `{each['name']}` | {each['in']} | {_cell(each.get('description', ''))} |\n" for each in parameters)
                parts.append(f"| parameter | in | |\n| --- | --- | --- |\n{rows}")
            body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if body:
                parts.append(f"Body: {_form(body)}\n")
            answers = "".join(f"| {status} | {_cell(answer['description'])} |\n" for status, answer in one["responses"].items())
            parts.append(f"| answer | |\n| --- | --- |\n{answers}")
    parts.append("## Forms\n")
    for name, form in schema["components"]["schemas"].items():
        parts.append(f"### {name}\n\n{form.get('description', '')}\n")
        fields = form.get("properties", {})
        required = form.get("required", ())
        rows = "".join(
            f"| `{field}`{'' if field in required else ', optional'} | {_cell(_form(one))} | {_cell(one.get('description', ''))} |\n"
            for field, one in fields.items()
        )
        parts.append(f"| field | form | |\n| --- | --- | --- |\n{rows}" if fields else "")
    return "\n".join(parts)


def _form(schema: dict[str, Any]) -> str:
    """Say what a value looks like."""
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    for how in ("anyOf", "oneOf", "allOf"):
        if how in schema:
            return " or ".join(dict.fromkeys(_form(one) for one in schema[how]))
    if "const" in schema or "enum" in schema:
        return " or ".join(f"`{json.dumps(one)}`" for one in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_form(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object with values: {_form(schema['additionalProperties'])}"
    return str(kind)


def _open_api() -> dict[str, Any]:
    from labelrace.serve.api import make_app
    from labelrace.serve.service import open_service

    with tempfile.TemporaryDirectory() as folder:
        service = open_service(folder, new={"tags": "tags"})
        try:
            schema: dict[str, Any] = make_app(service).openapi()
        finally:
            service.close()
    return schema


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages first of all."""
    # Before Sphinx looks which pages there are.
    app.connect("config-inited", lambda app, config: write(app))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
