"""The reference of the public names: one page that lists them, and one for each class and function.

A class shows its own methods and those it takes over from labelrace's bases, with their parameters, returns and errors;
what it takes over from elsewhere is documented there. Properties that the class's text describes are not repeated.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple, get_origin


class Part(NamedTuple):
    """A module of the reference: what it is about, and its names, if these are not all that it offers."""

    about: str
    names: tuple[str, ...] = ()


_PUBLIC = {
    "labelrace": Part("Models, taggers, data and clients."),
    "labelrace.measures": Part("How good predictions are."),
    "labelrace.evaluation": Part("Test, then train; rows held out; records and ranks."),
    "labelrace.report": Part("Tables, charts and pages of a run."),
    "labelrace.streams": Part("Files and datasets as batches of rows."),
    "labelrace.streams.synthetic": Part("Streams of random rows, with and without drift.", ("SyntheticStream", "like")),
    "labelrace.streams.demo": Part("Short texts with tags, for demonstrations.", ("demo_tickets",)),
    "labelrace.tables": Part("Tables and texts in, tags out."),
    "labelrace.merging": Part("One model learned in shares, which are added up.", ("start", "gain", "add", "join")),
    "labelrace.distributed": Part("The same models on Dask."),
    "labelrace.decisions.usefulness": Part("Which rows to ask people about.", ("usefulness",)),
    "labelrace.river": Part("The same models for River."),
    "labelrace.base.estimator": Part("The base of the classifiers; for a method of your own.", ("OnlineClassifier",)),
    "labelrace.checks": Part("What every model must pass; for a method of your own."),
    "labelrace.exceptions": Part("What is raised."),
}
_CONSTANTS = {
    "labelrace.measures.PAPER_MEASURES": "The measures of the paper's tables.",
    "labelrace.evaluation.FORMAT": "The version of the format of records.",
    "labelrace.report.FORMATS": "The formats that `write_report` knows, as endings of files.",
    "labelrace.checks.CHECKS": "The checks, in the order in which `check_model` runs them.",
}
# Public in the code, as other modules of the package call them; no reader has a use for them.
_INTERNAL = {
    *("TableFeatures.detect_columns", "TableFeatures.read", "TagCounts.minus"),
    *("after_batch", "as_rows", "exchanged", "fitted", "from_file", "learn_batch", "new_features", "new_model", "pack"),
    *("plus", "predict_row", "restore", "rows_to_keep", "state", "tagged_batches", "tested", "update", "warns"),
    *("why_no_new_features", "why_no_new_labels", "with_fitted", "without_warnings"),
}
_OF_SCIKIT_LEARN = ("fit_transform", "get_params", "set_params")
_MADE_BY_SCIKIT_LEARN = re.compile(r"set_\w+_request$")


def reference() -> dict[str, str]:
    """Return the pages by their names."""
    parts, pages = ["Public names\n============\n"], dict[str, str]()
    listed: set[int] = set()
    for name, part in _PUBLIC.items():
        module = import_module(name)
        things = {one: getattr(module, one) for one in part.names or _offered(module)}
        # What several modules offer has one page, and the name of a type none.
        new = {one: thing for one, thing in things.items() if id(thing) not in listed and get_origin(thing) is None}
        listed.update(map(id, new.values()))
        shown = {one: thing for one, thing in new.items() if callable(thing)}
        names = "".join(f"   {one}\n" for one in sorted(shown, key=str.lower))
        parts.append(f"{name}\n{'-' * len(name)}\n\n{part.about}\n\n.. currentmodule:: {name}\n")
        parts.append(f".. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{names}")
        parts += [_constant(name, one, thing) for one, thing in new.items() if one not in shown]
        pages |= {f"reference/api/{page_of(name, one)}.rst": _page(name, one, thing) for one, thing in shown.items()}
    return {"reference/api.rst": "\n".join(parts), **pages}


def page_of(module: str, name: str) -> str:
    """Return the name of the page of a class or function; no two differ by case alone."""
    return renamed_pages().get(f"{module}.{name}", f"{module}.{name}")


def renamed_pages() -> dict[str, str]:
    """Return the functions whose pages would differ from that of a class by case alone, with other names."""
    return {"labelrace.evaluation.friedman": "labelrace.evaluation.friedman-test"}


def _offered(module: Any) -> list[str]:
    """List the names that a module offers; without ``__all__`` they are its classes."""
    offered = getattr(module, "__all__", None) or [name for name, one in vars(module).items() if inspect.isclass(one)]
    return [name for name in offered if not name.startswith("_")]


def _constant(module: str, name: str, value: Any) -> str:
    functions = [one.__name__ for one in value if callable(one)] if isinstance(value, tuple) else []
    shown = f"({', '.join(functions)})" if functions else repr(value)
    return f".. py:data:: {name}\n   :value: {shown}\n\n   {_CONSTANTS[f'{module}.{name}']}\n"


def _page(module: str, name: str, thing: Any) -> str:
    head = f"{name}\n{'=' * len(name)}\n\n.. currentmodule:: {module}\n\n"
    if not inspect.isclass(thing):
        return f"{head}.. autofunction:: {name}\n"
    kind = "exception" if issubclass(thing, BaseException) else "class"
    members = ", ".join(_members(thing))
    return f"{head}.. auto{kind}:: {name}\n" + (f"   :members: {members}\n" if members else "")


def _members(cls: type) -> Iterator[str]:
    """Yield the methods and properties that a page shows: the class's own ones first, then those of its bases."""
    described, seen = _described(cls), set[str]()
    for base in cls.__mro__:
        is_ours = base.__module__.partition(".")[0] == "labelrace"
        for name, member in vars(base).items():
            if name in seen or name.startswith("_"):
                continue
            seen.add(name)
            is_method = inspect.isroutine(member) or isinstance(member, classmethod | staticmethod)
            if not (is_method or isinstance(member, property | cached_property)):
                continue
            if not (is_ours or (is_method and name in _OF_SCIKIT_LEARN)) or _MADE_BY_SCIKIT_LEARN.match(name):
                continue
            if (
                {name, f"{cls.__name__}.{name}"} & _INTERNAL
                or name in described
                or inspect.getdoc(member) in (None, "Not there.")
            ):
                continue
            yield name


def _described(cls: type) -> set[str]:
    """Return the attributes that a class's text describes."""
    text = inspect.getdoc(cls) or ""
    section = re.search(r"^Attributes\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE)
    listed = re.findall(r"^(\w[\w, ]*)(?: :|$)", section[1], re.MULTILINE) if section else []
    return {name for names in listed for name in names.split(", ")}


def name_plainly(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Write the names of attributes as those of parameters: numpydoc links properties, which have no entry here."""
    lines[:] = [re.sub(r":obj:`(\w+) <[\w.]*\1>`", r"**\1**", line) for line in lines]
