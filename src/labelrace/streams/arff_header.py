"""The header of an ARFF file: the relation's name, the attributes, and which of them are labels; read and written."""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from labelrace.base.parameters import quoted_list
from labelrace.exceptions import DataFormatError
from labelrace.streams.dataset import Stream
from labelrace.streams.files import Location, open_data, plain_path
from labelrace.streams.schema import LabelSource, choose_labels
from labelrace.typing import BoolArray

_NUMERIC = ("numeric", "real", "integer")
_BARE_NAME = re.compile(r"[^\s{]*")
_BARE_VALUE = re.compile(r"[^,{}]*")
_BARE_RELATION = re.compile(r".*")
_BLOCK = 1 << 16
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

_QUOTED = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")
_ESCAPE = re.compile(r"\\(.)")
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]+")
_ESCAPED = str.maketrans({"\\": "\\\\", "'": "\\'", **{sign: f"\\{letter}" for letter, sign in _CONTROL.items()}})
_SPACE = re.compile(r"\s*")

# MEKA keeps its options in the relation's name, as in 'Music: -C 6'.
_MEKA_COUNT = re.compile(r"(?:^|[\s:])-C\s+(-?\d{1,9})(?=\s|$)", re.ASCII)


class Attribute(NamedTuple):
    """One column: its name, its declared values (none if it is numeric), the line that declares it."""

    name: str
    values: tuple[str, ...]
    line: int


class Header(NamedTuple):
    """The declarations above the rows, and where the rows begin.

    ``encoding`` is "utf-8" if all names and values are ASCII, as the rows can have no other values.
    """

    path: Path
    relation: str
    attributes: tuple[Attribute, ...]
    encoding: str
    data_offset: int
    data_line: int


def read_header(path: Path) -> Header:
    """Read the header of an ARFF file, up to and including ``@data``."""
    encoding, relation, attributes = "", "", list[Attribute]()
    first_line: dict[str, int] = {}
    types: dict[str, tuple[str, ...]] = {}
    offset = number = 0
    with open_data(path) as file:
        for number, raw in enumerate(file, start=1):
            offset += len(raw)
            if not encoding and not raw.isascii():
                encoding = _encoding(path)
            line = raw.decode(encoding or "utf-8").lstrip("\ufeff").strip()
            if not line or line.startswith("%"):
                continue
            location = Location(path, number)
            keyword, *rest = line.split(None, 1)
            text = "".join(rest)
            match keyword.lower():
                case "@attribute":
                    attribute = _attribute(text, types, location)
                    attributes.append(attribute)
                    if first_line.setdefault(attribute.name, number) != number:
                        earlier = first_line[attribute.name]
                        raise location.error(
                            f"attribute {attribute.name!r} is already declared in line {earlier}; rename one"
                        )
                case "@relation":
                    relation, _, _ = scan(text, 0, _BARE_RELATION, location)
                case "@data":
                    if not attributes:
                        raise location.error("@data comes before any @attribute; declare the columns first")
                    return Header(path, relation, tuple(attributes), encoding or "utf-8", offset, number)
                case _:
                    raise location.error(f"expected @relation, @attribute or @data, found {line[:40]!r}")
    raise Location(path, number).error("the file ends without an @data line; it is cut, or not an ARFF file")


def _encoding(path: Path) -> str:
    """Return "utf-8" if the whole file is valid UTF-8, else "latin-1", in which any bytes are valid."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open_data(path) as file:
            while block := file.read(_BLOCK):
                if not block.isascii() or decoder.getstate()[0]:
                    decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _attribute(text: str, types: dict[str, tuple[str, ...]], location: Location) -> Attribute:
    """Parse the name and type after ``@attribute``; `types` has the types parsed so far, and a new one is added."""
    name, quoted, end = scan(text, 0, _BARE_NAME, location)
    if not name and not quoted:
        raise location.error("this attribute has no name; write @attribute NAME TYPE")
    # Thousands of attributes may declare the same {0,1}.
    kind = text[end:]
    if kind not in types:
        types[kind] = _values_of_type(kind, name, location)
    return Attribute(name, types[kind], location.line)


def _values_of_type(text: str, name: str, location: Location) -> tuple[str, ...]:
    """Return the values that an attribute's type declares, none if it is numeric."""
    if not text:
        raise location.error(f"attribute {name!r} has no type; write numeric, or its values in braces")
    if text.startswith("{"):
        return _declared_values(text, name, location)
    kind, *rest = text.split(None, 1)
    if kind.lower() not in _NUMERIC:
        raise location.error(
            f"attribute {name!r} is of type {kind!r}, which labelrace cannot learn from; only numeric, real, "
            "integer and nominal attributes can be read, so remove or convert it"
        )
    _check_rest("".join(rest), name, location)
    return ()


def _declared_values(text: str, name: str, location: Location) -> tuple[str, ...]:
    """Parse a list of values in braces."""
    values: dict[str, None] = {}
    end = 0
    while True:
        value, quoted, end = scan(text, skip_space(text, end + 1), _BARE_VALUE, location)
        if not value and not quoted:
            raise location.error(f"attribute {name!r} declares an empty value; write '' if it is meant")
        if value in values:
            raise location.error(f"attribute {name!r} declares the value {value!r} twice; remove one")
        values[value] = None
        if text.startswith("}", end):
            _check_rest(text[end + 1 :], name, location)
            return tuple(values)
        if not text.startswith(",", end):
            raise location.error(f"the values of attribute {name!r} are not separated by commas and closed by }}")


def _check_rest(rest: str, name: str, location: Location) -> None:
    rest = rest.strip()
    if rest and not rest.startswith("%"):
        raise location.error(f"unexpected text {rest[:40]!r} after the type of attribute {name!r}; remove it")


def find_labels(header: Header, labels: LabelSource) -> BoolArray:
    """Return which attributes are labels, as `open_arff` describes it, after a check of their types."""
    origin, names = "", [attribute.name for attribute in header.attributes]
    if labels is None or isinstance(labels, (str, os.PathLike)):
        labels, origin = _label_source(header, labels)
    chosen = set(choose_labels(names, labels, header.path, origin).labels)
    mask = np.array([name in chosen for name in names])
    _check_columns(header, mask)
    return mask


def _label_source(header: Header, labels: str | os.PathLike[str] | None) -> tuple[LabelSource, str]:
    """Return the labels and where they are from: a label file, or the relation's name."""
    xml = plain_path(header.path).with_suffix(".xml") if labels is None else Path(labels)
    if labels is not None or xml.exists():
        return _names_in(xml), str(xml)
    meka = _MEKA_COUNT.search(header.relation)
    if meka is not None:
        # MEKA counts from the front, labels= (as Mulan) from the back.
        return -int(meka[1]), f"-C {meka[1]} in the relation's name"
    raise DataFormatError(
        f"{header.path}: cannot tell which attributes are labels, as there is no {xml.name} beside the file "
        "and no -C option in the relation's name; give labels= the path of the Mulan XML, a list of names, "
        "or a count (n > 0: the last n attributes are labels, n < 0: the first)"
    )


def _names_in(xml: Path) -> list[str]:
    """Return the labels that a Mulan XML file names."""
    if not xml.exists():
        raise FileNotFoundError(f"no such label file: {xml} (to name the labels themselves, give a list)")
    try:
        root = ElementTree.parse(xml).getroot()
    except ElementTree.ParseError as error:
        raise Location(xml, error.position[0]).error(f"not a valid XML file ({error})") from error
    except (LookupError, ValueError) as error:
        raise DataFormatError(f"{xml}: not a valid XML file, or in an unknown encoding ({error})") from error
    # Mulan nests the elements of a label hierarchy: every element is a label, in whatever namespace.
    names = [element.get("name") for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
    if None in names:
        raise DataFormatError(f"{xml}: <label> element {names.index(None) + 1} has no name attribute")
    if not names:
        raise DataFormatError(f"{xml}: there is no <label> element; at least one is needed")
    return [name for name in names if name is not None]


def _check_columns(header: Header, mask: BoolArray) -> None:
    for position in np.flatnonzero(mask):
        name, values, line = header.attributes[position]
        if values and sorted(values) != ["0", "1"]:
            raise Location(header.path, line).error(
                f"label {name!r} must be numeric or declare {{0,1}}, not {quoted_list(values)}; "
                "if it is a feature, correct labels="
            )


def skip_space(text: str, start: int) -> int:
    """Return the position of the first non-space at or after `start`."""
    match = _SPACE.match(text, start)
    return match.end() if match else start


def scan(text: str, start: int, bare: re.Pattern[str], location: Location) -> tuple[str, bool, int]:
    """Read the name or value of `text` that begins at `start`; without quotes it is what `bare` matches.

    Return it without its quotes (backslash escapes count only within quotes), whether it had quotes, and the position
    of the next non-space.
    """
    if text.startswith(("'", '"'), start):
        match = _QUOTED.match(text, start)
        if match is None:
            raise location.error(f"the quote in column {start + 1} is never closed; close it, or the file is cut")
        inner = match[1] if match[1] is not None else match[2]
        value = _ESCAPE.sub(lambda escape: _CONTROL.get(escape[1], escape[1]), inner)
        return value, True, skip_space(text, match.end())
    match = bare.match(text, start)
    end = match.end() if match else start
    return text[start:end].rstrip(), False, skip_space(text, end)


def quoted(text: str) -> str:
    """Write a name or value so that `scan` reads it, in quotes where it needs them."""
    return text if _PLAIN.fullmatch(text) else f"'{text.translate(_ESCAPED)}'"


def header_text(stream: Stream, values: dict[int, tuple[str, ...]]) -> str:
    """Return the header of a stream, the labels last; `values` are the quoted values of its nominal features."""
    nominal = {column: "{" + ",".join(texts) + "}" for column, texts in values.items()}
    types = (nominal.get(column, "numeric") for column in range(stream.n_features))
    features = (f"@attribute {quoted(name)} {kind}\n" for name, kind in zip(stream.feature_names, types, strict=True))
    labels = (f"@attribute {quoted(name)} {{0,1}}\n" for name in stream.label_names)
    return f"@relation {quoted(stream.name)}\n\n{''.join(features)}{''.join(labels)}\n@data\n"


def label_file(stream: Stream) -> bytes:
    """Return the Mulan XML file that names the labels of a stream."""
    for name in stream.label_names:
        if _NOT_IN_XML.search(name):
            raise ValueError(f"the label {name!r} has a character that no XML file can hold; rename it")
    from xml.sax.saxutils import quoteattr  # here, as importing it is slow

    lines = "".join(f"<label name={quoteattr(name)}></label>\n" for name in stream.label_names)
    root = '<labels xmlns="http://mulan.sourceforge.net/labels">'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{root}\n{lines}</labels>\n'.encode()
