"""Pages that follow from the code: public names, methods, the command, the HTTP API, and the files of the root.

They are written below ``docs/`` before Sphinx reads its sources, into files that git ignores, and only if they have
changed, so that a second build reads what is new.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from command_page import commands
from http_page import http_api
from reference import name_plainly, reference
from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]


def write(app: Sphinx) -> None:
    """Write all pages that are generated."""
    pages = {"reference/command.md": commands(), "reference/http.md": http_api(), **reference()}
    for old in (DOCS / "reference" / "api").glob("*.rst"):
        if f"reference/api/{old.name}" not in pages:
            old.unlink()
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


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages first of all."""
    # Before Sphinx looks which pages there are.
    app.connect("config-inited", lambda app, config: write(app))
    # After numpydoc.
    app.connect("autodoc-process-docstring", name_plainly, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
