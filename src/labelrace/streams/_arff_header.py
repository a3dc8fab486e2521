"""The header of an ARFF file: the relation's name and the attributes."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import NamedTuple

from labelrace.streams._arff_text import scan, skip_space
from labelrace.streams._source import Place, open_data

__all__ = ["Attribute", "Header", "read_header"]

_NUMERIC = ("numeric", "real", "integer")
_BARE_NAME = re.compile(r"[^\s{]*")
_BARE_VALUE = re.compile(r"[^,{}]*")
_BARE_RELATION = re.compile(r".*")
_BLOCK = 1 << 16


class Attribute(NamedTuple):
    """One column: its name, its declared values (none if it is numeric), the line that declares it."""

    name: str
    values: tuple[str, ...]
    line: int


class Header(NamedTuple):
    """What stands above the rows, and where the rows begin."""

    path: Path
    relation: str
    attributes: tuple[Attribute, ...]
    encoding: str
    data_offset: int
    data_line: int


def read_header(path: Path) -> Header:
    """Read the header of the ARFF file at `path`, up to and including ``@data``."""
    if not path.exists():
        raise FileNotFoundError(f"no such ARFF file: {path}")
    encoding = _encoding(path)
    relation, attributes = "", list[Attribute]()
    first_line: dict[str, int] = {}
    types: dict[str, tuple[str, ...]] = {}
    offset = number = 0
    with open_data(path) as file:
        for number, raw in enumerate(file, start=1):
            offset += len(raw)
            line = raw.decode(encoding).lstrip("\ufeff").strip()
            if not line or line.startswith("%"):
                continue
            place = Place(path, number)
            keyword, *rest = line.split(None, 1)
            text = "".join(rest)
            match keyword.lower():
                case "@attribute":
                    attribute = _attribute(text, types, place)
                    attributes.append(attribute)
                    if first_line.setdefault(attribute.name, number) != number:
                        earlier = first_line[attribute.name]
                        raise place.error(
                            f"attribute {attribute.name!r} is already declared in line {earlier}; rename one"
                        )
                case "@relation":
                    relation, _, _ = scan(text, 0, _BARE_RELATION, place)
                case "@data":
                    if not attributes:
                        raise place.error("@data comes before any @attribute; declare the columns first")
                    return Header(path, relation, tuple(attributes), encoding, offset, number)
                case _:
                    raise place.error(f"expected @relation, @attribute or @data, found {line[:40]!r}")
    raise Place(path, number).error("the file ends without an @data line; it is cut, or not an ARFF file")


def _encoding(path: Path) -> str:
    """Return "utf-8" if all of the file is that, else "latin-1", which any bytes are."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open_data(path) as file:
            while block := file.read(_BLOCK):
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _attribute(text: str, types: dict[str, tuple[str, ...]], place: Place) -> Attribute:
    """Parse what follows ``@attribute``: a name and a type, one of `types` or a new one to add there."""
    name, quoted, end = scan(text, 0, _BARE_NAME, place)
    if not name and not quoted:
        raise place.error("this attribute has no name; write @attribute NAME TYPE")
    # Thousands of attributes may declare the same {0,1}.
    kind = text[end:]
    if kind not in types:
        types[kind] = _values_of_type(kind, name, place)
    return Attribute(name, types[kind], place.line)


def _values_of_type(text: str, name: str, place: Place) -> tuple[str, ...]:
    """Return the values that an attribute's type declares, none if it is numeric."""
    if not text:
        raise place.error(f"attribute {name!r} has no type; write numeric, or its values in braces")
    if text.startswith("{"):
        return _declared_values(text, name, place)
    kind, *rest = text.split(None, 1)
    if kind.lower() not in _NUMERIC:
        raise place.error(
            f"attribute {name!r} is of type {kind!r}, which labelrace cannot learn from; only numeric, real, "
            "integer and nominal attributes can be read, so remove or convert it"
        )
    _check_rest("".join(rest), name, place)
    return ()


def _declared_values(text: str, name: str, place: Place) -> tuple[str, ...]:
    """Parse a list of values in braces."""
    values: dict[str, None] = {}
    end = 0
    while True:
        value, quoted, end = scan(text, skip_space(text, end + 1), _BARE_VALUE, place)
        if not value and not quoted:
            raise place.error(f"attribute {name!r} declares an empty value; write '' if it is meant")
        if value in values:
            raise place.error(f"attribute {name!r} declares the value {value!r} twice; remove one")
        values[value] = None
        if text.startswith("}", end):
            _check_rest(text[end + 1 :], name, place)
            return tuple(values)
        if not text.startswith(",", end):
            raise place.error(f"the values of attribute {name!r} are not separated by commas and closed by }}")


def _check_rest(rest: str, name: str, place: Place) -> None:
    rest = rest.strip()
    if rest and not rest.startswith("%"):
        raise place.error(f"unexpected text {rest[:40]!r} after the type of attribute {name!r}; remove it")
