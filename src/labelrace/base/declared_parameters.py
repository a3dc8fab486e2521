"""What the class of a classifier is completed with when it is made: its constructor and its documentation.

A class declares its parameters as fields, with types and defaults, and takes over those of its bases. Of them the
constructor is made, which takes keywords and only assigns them, as scikit-learn asks for. A parameter or attribute that
many classes have is described once, in the docstring of the base class that has it; what a class takes over is written
into its own docstring, so that ``help`` shows all of it.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, dataclass_transform


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class DeclaredParameters:
    """Base of classes whose parameters are declared as fields.

    Examples
    --------
    >>> class Model(DeclaredParameters):
    ...     random_state: int | None = None
    >>> class Ridge(Model):
    ...     penalty: float = 1.0
    >>> list(inspect.signature(Ridge).parameters)
    ['penalty', 'random_state']
    >>> Ridge(penalty=0.5).penalty
    0.5
    """

    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A constructor that somebody wrote, for this class or one of its bases, is kept.
        is_made = cls.__init__ is object.__init__ or cls.__init__ in _MADE
        dataclass(kw_only=True, eq=False, repr=False, init=is_made)(cls)
        signature = inspect.signature(cls.__init__)
        listed = list(signature.parameters.values())[1:]
        if is_made:
            _MADE.add(cls.__init__)
            # Dataclasses list the fields of bases first; readers look for those of the class itself.
            listed.sort(key=lambda one: (one.kind, one.name == "random_state", _depth(cls, one.name)))
        cls.__signature__ = signature.replace(parameters=listed)
        complete(cls)


# Constructors that were made here.
_MADE = set[Any]()


def _depth(cls: type, name: str) -> int:
    """Find which class, counted from ``cls`` to its bases, declares a field."""
    return next(depth for depth, base in enumerate(cls.__mro__) if name in inspect.get_annotations(base))


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
    own, *inherited = map(_sections, cls.__mro__)
    # Without docstrings, as under python -OO, there is nothing to complete.
    if not own[""] or "**" in own.get("Parameters", ""):
        return
    parameters, attributes = (_described(title, own, *inherited) for title in ("Parameters", "Attributes"))
    parameters = {name: parameters[name] for name in inspect.signature(cls).parameters if name in parameters}
    sections = {
        "": own.pop(""),
        # An entry that describes several names is there once.
        "Parameters": "\n".join(dict.fromkeys(parameters.values())),
        "Attributes": "\n".join(dict.fromkeys(attributes.values())),
    }
    sections = {title: text for title, text in (sections | own | sections).items() if text}
    cls.__doc__ = "\n\n".join(f"{title}\n{'-' * len(title)}\n{text}".lstrip() for title, text in sections.items())


def _sections(cls: type) -> dict[str, str]:
    """Split the docstring of a class by its headings; what stands before the first one has none."""
    text = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    first, *others = re.split(r"^(\w[\w ]*)\n-+\n", text, flags=re.MULTILINE)
    return {"": first.strip()} | {title: body.strip() for title, body in zip(others[::2], others[1::2], strict=True)}


def _described(title: str, *docstrings: dict[str, str]) -> dict[str, str]:
    """Return what docstrings describe under a heading, by name; the first that describes a name counts."""
    described: dict[str, str] = {}
    for sections in docstrings:
        for entry in filter(None, re.split(r"\n(?=\S)", sections.get(title, ""))):
            for name in entry.partition(" :")[0].split(", "):
                described.setdefault(name, entry)
    return described
