"""Pages that follow from the code: public names, methods, the command, the HTTP API, and the files of the root.

They are written below ``docs/`` before Sphinx reads its sources, into files that git ignores, and only if they have
changed, so that a second build reads what is new.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import get_origin

from command_page import commands
from http_page import http_api
from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]


def write(app: Sphinx) -> None:
    """Write all pages that are generated."""
    pages = {"reference/api.rst": _reference(), "reference/command.md": commands(), "reference/http.md": http_api()}
    for name, page in (dict(_method_pages()) | dict(_root_pages()) | pages).items():
        path = DOCS / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != page:
            path.write_text(page, encoding="utf-8")


# --- Files of the root ------------------------------------------------------------------------------------------------

_MADE = "<!-- made by docs/_ext/generated.py -->\n\n"
_ROOT_FILES = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "guide/security.md",
}


def _root_pages() -> Iterator[tuple[str, str]]:
    """Yield what stands at the root, where visitors look for it, with links as the site needs them."""
    for name, page in _ROOT_FILES.items():

        def moved(match: re.Match[str], page: str = page) -> str:
            target = _ROOT_FILES.get(match[1], match[1].removeprefix("docs/"))
            return f"]({os.path.relpath(target, Path(page).parent)}"

        text = (DOCS.parent / name).read_text(encoding="utf-8")
        yield page, _MADE + re.sub(r"\]\(((?:docs/)?[\w/.-]+\.(?:md|svg|png))", moved, text)


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
    listed: set[int] = set()
    for name, about in _PUBLIC.items():
        module = import_module(name)
        public = getattr(module, "__all__", None) or [one for one in vars(module) if inspect.isclass(vars(module)[one])]
        # What several modules offer has one page, and the name of a type none.
        things = {one: getattr(module, one) for one in public if not one.startswith("_")}
        new = [one for one, thing in things.items() if id(thing) not in listed and get_origin(thing) is None]
        listed.update(id(getattr(module, one)) for one in new)
        names = "".join(f"   {one}\n" for one in sorted(new, key=str.lower))
        parts.append(f"{name}\n{'-' * len(name)}\n\n{about}\n\n.. currentmodule:: {name}\n")
        parts.append(f".. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{names}")
    return "\n".join(parts)


# --- Methods ----------------------------------------------------------------------------------------------------------


def _method_pages() -> Iterator[tuple[str, str]]:
    """Yield a page for each module that has methods: what its docstring says, and its classes."""
    from labelrace.base.registry import model_names
    from labelrace.base.registry_entries import MODELS, PUBLIC_HOMES

    modules: dict[str, dict[str, str]] = {}
    for name in model_names():
        module, _, path = MODELS[name].factory.partition(":")
        modules.setdefault(module, {})[name] = path.partition(".")[0]
    listed = []
    for module, names in modules.items():
        page = module.removeprefix("labelrace.").replace(".", "-")
        classes = dict.fromkeys(names.values())
        title = " ".join(f"``{name}``" for name in names)
        text = f"{title}\n{'=' * len(title)}\n\n.. automodule:: {module}\n   :no-members:\n\n"
        public = [one for one in classes if one in PUBLIC_HOMES]
        text += "".join(f".. autoclass:: labelrace.{one}\n   :noindex:\n   :no-members:\n\n" for one in public)
        about = [f"   * - :doc:`{name} <{page}>`\n     - {MODELS[name].about}\n" for name in names]
        listed += about
        yield f"methods/{page}.rst", text
    rows = "".join(listed)
    table = f".. list-table::\n   :header-rows: 1\n\n   * - name\n     - what it is\n{rows}"
    pages = "".join(f"   {module.removeprefix('labelrace.').replace('.', '-')}\n" for module in modules)
    title = "All methods, by name\n====================\n\n"
    yield "methods/by-name.rst", f"{title}{table}\n.. toctree::\n   :hidden:\n\n{pages}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages first of all."""
    # Before Sphinx looks which pages there are.
    app.connect("config-inited", lambda app, config: write(app))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
