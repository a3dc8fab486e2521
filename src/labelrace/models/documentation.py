"""Documentation that classifiers share.

A parameter or attribute that many classes have is described once, in the docstring of the base class that has it. When
a class is made, what it takes over is written into its own docstring, so that ``help`` shows all of it.
"""

from __future__ import annotations

import inspect
import re

__all__ = ["complete"]

_SECTION = re.compile(r"^(Parameters|Attributes)\n-+\n(.*?)(?:\n\n|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^\w[\w ]*\n-+\n", re.MULTILINE)


def complete(cls: type) -> None:
    """Add to a class's docstring the parameters and attributes that its bases describe and it does not.

    Parameters are those of its constructor, in their order. A docstring that refers to ``**parameters`` stays as it is.

    Examples
    --------
    >>> class Animal:
    ...     '''An animal.
    ...
    ...     Parameters
    ...     ----------
    ...     name : str
    ...         What it is called.
    ...
    ...     Attributes
    ...     ----------
    ...     age_ : int
    ...         Its age.
    ...     '''
    >>> class Dog(Animal):
    ...     '''A dog.
    ...
    ...     Parameters
    ...     ----------
    ...     breed : str
    ...         Its kind.
    ...     '''
    ...
    ...     def __init__(self, name, breed):
    ...         pass
    >>> complete(Dog)
    >>> [line for line in Dog.__doc__.splitlines() if ":" in line]
    ['name : str', 'breed : str', 'age_ : int']
    """
    text = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    sections = {title: _entries(body) for title, body in _SECTION.findall(text)}
    # Without docstrings, as under python -OO, there is nothing to complete.
    if not text or any("**" in name for name in sections.get("Parameters", ())):
        return
    for base in cls.__mro__[1:]:
        for title, body in _SECTION.findall(inspect.cleandoc(base.__dict__.get("__doc__") or "")):
            own = sections.setdefault(title, {})
            own |= {name: entry for name, entry in _entries(body).items() if name not in own}
    order = list(inspect.signature(cls).parameters)
    described = {name: entry for name, entry in sections.get("Parameters", {}).items() if name in order}
    sections["Parameters"] = dict(sorted(described.items(), key=lambda item: order.index(item[0])))
    rest = _SECTION.sub("", text)
    first = _HEADING.search(rest)
    end = first.start() if first else len(rest)
    lists = [
        f"{title}\n{'-' * len(title)}\n" + "\n".join(dict.fromkeys(sections[title].values()))
        for title in ("Parameters", "Attributes")
        if sections.get(title)
    ]
    cls.__doc__ = "\n\n".join(filter(None, [rest[:end].rstrip(), *lists, rest[end:]]))


def _entries(body: str) -> dict[str, str]:
    """Return the entries of a section by their names; one that describes several names is there for each."""
    entries = re.split(r"\n(?=\S)", body)
    return {name: entry for entry in entries for name in entry.partition(" :")[0].split(", ")}
