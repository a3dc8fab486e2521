"""Which attributes of an ARFF file are labels."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree

import numpy as np

from labelrace.exceptions import DataFormatError
from labelrace.streams._arff_header import Header
from labelrace.streams._source import Place, plain_path, shown
from labelrace.typing import BoolArray

__all__ = ["LabelSource", "find_labels"]

LabelSource: TypeAlias = int | str | os.PathLike[str] | Sequence[str] | None

# MEKA keeps its options in the relation's name, as in 'Music: -C 6'.
_MEKA_COUNT = re.compile(r"(?:^|[\s:])-C\s+(-?\d{1,9})(?=\s|$)", re.ASCII)


def find_labels(header: Header, labels: LabelSource) -> BoolArray:
    """Return the mask over the attributes that are labels, after checking that they can be.

    Parameters
    ----------
    header : Header
    labels : int, path, sequence of str or None
        See `labelrace.streams.arff.read_arff`.
    """
    if labels is None:
        mask = _find_unaided(header)
    elif isinstance(labels, (str, os.PathLike)):
        mask = _by_xml(header, Path(labels))
    elif isinstance(labels, (int, np.integer)):
        mask = _by_count(header, int(labels), f"labels={labels}")
    else:
        mask = _by_names(header, list(labels), "labels")
    if mask.all():
        raise DataFormatError(f"{header.path}: all attributes are labels, none is left as a feature")
    _check_columns(header, mask)
    return mask


def _find_unaided(header: Header) -> BoolArray:
    xml = plain_path(header.path).with_suffix(".xml")
    if xml.exists():
        return _by_xml(header, xml)
    meka = _MEKA_COUNT.search(header.relation)
    if meka is not None:
        # MEKA counts from the front, labels= (as Mulan) from the back.
        return _by_count(header, -int(meka[1]), f"-C {meka[1]} in the relation's name")
    raise DataFormatError(
        f"{header.path}: cannot tell which attributes are labels, as there is no {xml.name} beside the file "
        "and no -C option in the relation's name; give labels= the path of the Mulan XML, a list of names, "
        "or a count (n > 0: the last n attributes are labels, n < 0: the first)"
    )


def _by_count(header: Header, count: int, origin: str) -> BoolArray:
    total = len(header.attributes)
    if count == 0 or abs(count) > total:
        raise DataFormatError(
            f"{header.path}: {origin} does not fit, as the file has {total} attributes; "
            f"the count must be between 1 and {total - 1}, or its negative"
        )
    mask = np.zeros(total, dtype=bool)
    mask[slice(total - count, None) if count > 0 else slice(None, -count)] = True
    return mask


def _by_names(header: Header, names: list[str], origin: str) -> BoolArray:
    known = [attribute.name for attribute in header.attributes]
    absent = sorted(set(names).difference(known), key=names.index)
    if absent:
        raise DataFormatError(
            f"{header.path}: {len(absent)} of the labels in {origin} are not among the attributes: "
            f"{shown(absent)}; correct the names, or use the label file that belongs to this ARFF file"
        )
    wanted = set(names)
    return np.array([name in wanted for name in known])


def _by_xml(header: Header, xml: Path) -> BoolArray:
    if not xml.exists():
        raise FileNotFoundError(f"no such label file: {xml} (to name the labels themselves, give a list)")
    try:
        root = ElementTree.parse(xml).getroot()
    except ElementTree.ParseError as error:
        raise Place(xml, error.position[0]).error(f"not a valid XML file ({error})") from error
    except (LookupError, ValueError) as error:
        raise DataFormatError(f"{xml}: not a valid XML file, or in an unknown encoding ({error})") from error
    # Mulan nests the elements of a label hierarchy; every one of them is a label, whatever the namespace.
    names = [element.get("name") for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
    if None in names:
        raise DataFormatError(f"{xml}: <label> element {names.index(None) + 1} has no name attribute")
    if not names:
        raise DataFormatError(f"{xml}: there is no <label> element; at least one is needed")
    return _by_names(header, [name for name in names if name is not None], str(xml))


def _check_columns(header: Header, mask: BoolArray) -> None:
    for position in np.flatnonzero(mask):
        name, values, line = header.attributes[position]
        if values and sorted(values) != ["0", "1"]:
            raise Place(header.path, line).error(
                f"label {name!r} must be numeric or declare {{0,1}}, not {shown(values)}; "
                "if it is a feature, correct labels="
            )
