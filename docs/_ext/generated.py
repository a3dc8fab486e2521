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
    pages |= dict(_method_pages()) | dict(_root_pages())
    for old in (path for folder in ("reference/api", "methods") for path in (DOCS / folder).glob("*.rst")):
        if old.relative_to(DOCS).as_posix() not in pages:
            old.unlink()
    for name, page in pages.items():
        path = DOCS / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != page:
            path.write_text(page, encoding="utf-8")


# --- Files of the root ------------------------------------------------------------------------------------------------

_MADE = "<!-- made by docs/_ext/generated.py -->\n\n"
_ROOT_FILES = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "in-depth/security.md",
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

_TITLES = {
    "linear-classifier": "The default",
    "extreme-classifier": "Hashed RACE",
    "race-classifier": "RACE, as published",
    "related-relevance": "Binary relevance",
    "related-chains": "Classifier chains",
    "related-compression-ridge": "Ridge regression",
    "related-compression-plst": "PLST",
    "related-compression-cplst": "CPLST",
    "related-compression-faie": "FaIE",
    "related-compression-cssp": "CSSP",
    "related-compression-moplms": "MOPLMS",
    "related-compression-kcca": "CCA and KCCA",
    "related-compression-cs": "Compressed sensing",
    "related-compression-cl": "Compressed labeling",
    "related-compression-bmad": "Boolean matrix decomposition",
    "related-compression-maniac": "MANIAC",
    "related-linear-arow": "AROW",
    "related-linear-adagrad": "AdaGrad",
    "related-stacking-mbr": "Stacked binary relevance",
    "related-stacking-mbr_chunks": "Stacked binary relevance, as published",
    "related-neighbours-mlknn": "ML-kNN",
    "related-neighbours-mwc": "Multiple windows",
    "related-trees-mlht": "Multi-label Hoeffding tree",
    "related-trees-eaht": "Ensemble of Hoeffding trees",
    "related-trees-isoup": "iSOUP-Tree",
    "related-rbm": "Deep RBM features",
    "related-constant": "Constants",
}


def _method_pages() -> Iterator[tuple[str, str]]:
    """Yield a page for each module that has methods: its models, what its docstring says, and its classes."""
    from labelrace.base.registry import model_names
    from labelrace.base.registry_entries import MODELS, PUBLIC_HOMES

    modules: dict[str, dict[str, str]] = {}
    for name in model_names():
        module, _, path = MODELS[name].factory.partition(":")
        modules.setdefault(module, {})[name] = path.partition(".")[0]
    pages = {module.removeprefix("labelrace.").replace(".", "-"): module for module in modules}
    if missing := pages.keys() ^ _TITLES.keys():
        raise ValueError(f"_TITLES must have the methods' pages, got others: {', '.join(missing)}.")
    for page, title in _TITLES.items():
        names = modules[pages[page]]
        text = f"{title}\n{'=' * len(title)}\n\n"
        text += "".join(f"``{name}``\n    {MODELS[name].about}\n\n" for name in names)
        text += f".. automodule:: {pages[page]}\n   :no-members:\n\n"
        public = [one for one in dict.fromkeys(names.values()) if one in PUBLIC_HOMES]
        text += "".join(f".. autoclass:: labelrace.{one}\n   :noindex:\n   :no-members:\n\n" for one in public)
        yield f"methods/{page}.rst", text


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages first of all."""
    # Before Sphinx looks which pages there are.
    app.connect("config-inited", lambda app, config: write(app))
    # After numpydoc.
    app.connect("autodoc-process-docstring", name_plainly, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
