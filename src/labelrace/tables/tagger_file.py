"""A tagger as one file: the kinds of the columns, the words, the tags and the model.

A tagger of 2¹⁸ words and 700 tags has 183 million weights of 734 MB, nearly all of them close to zero. A file holds the
largest quarter of them in eight bits each, and one bit for each weight that says whether it is among these; the others
are replaced by their mean, word by word. This takes three bits for a weight instead of 32. A loaded tagger unpacks the
weights of a word when the word first occurs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import numpy.typing as npt

from labelrace.base import model_file, parameters, state_file
from labelrace.exceptions import ModelFileError
from labelrace.linear.versioned_rows import VersionedRows
from labelrace.tables.column_blocks import Moments
from labelrace.tables.column_kinds import DATE_PATTERNS, KINDS, KINDS_BY_PARAMETER, Column, check_overrides
from labelrace.tables.features import FeatureState
from labelrace.tables.state import UNTAGGED, TagCounts, TaggerState, TagNames
from labelrace.tables.vocabulary import Vocabulary, check
from labelrace.typing import Array, IntArray

_MODEL, _PACKED = "model.", "packed."
# The weights of the default model, which take most of the space in a file.
_WEIGHTS = "state.learners.weights"
Singles = npt.NDArray[np.float32]

# Up to this size, weights are saved exactly.
EXACT_BYTES = 1 << 26
# Share of the weights that are kept above that.
_KEPT = 0.25
_LEVELS = 127
# Number of rows that are packed at a time.
_ROWS = 4096


def pack_tagger(tagger: Any, state: Any, model: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a tagger's file."""
    model_header, model_tensors = model.pack()
    given = tagger.get_params(deep=False)
    encoders = {column: _name(encoder) for column, encoder in (given.pop("encoders") or {}).items()}
    if not isinstance(given["model"], str):
        given["model"] = None
    if not isinstance(given["random_state"], (int, type(None))):
        given["random_state"] = None
    weights, packed_tensors = model_tensors.get(_WEIGHTS), dict[str, Array]()
    if weights is not None and _is_to_be_packed(weights, model_header["n_labels"]):
        del model_tensors[_WEIGHTS]
        packed_tensors = {_PACKED + name: part for name, part in pack(np.asarray(weights))._asdict().items()}
    words = state.features.vocabulary
    header = model_file.new_header("Tagger") | {
        "parameters": {name: _plain(value) for name, value in given.items()},
        "encoders": encoders,
        "columns": [list(column) for column in state.features.columns],
        "moments": {name: list(moments) for name, moments in state.features.moments.items()},
        "separator": state.separator,
        "aliases": dict(state.names.aliases),
        "retired": sorted(state.names.retired),
        "tags": {tag: list(map(int, counts)) for tag, counts in state.counts.items()},
        "sets": [[int(n), *tags] for tags, n in state.together.items()],
        "n_rows": int(state.n_rows),
        "n_tested": int(state.n_tested),
        "sum_f1": float(state.sum_f1),
        "words_rows": float(words.n_rows),
        "model": model_header,
    }
    tensors = (
        {_MODEL + name: tensor for name, tensor in model_tensors.items()}
        | packed_tensors
        | {
            "words.keys": words.keys,
            "words.columns": words.columns.astype(np.int64),
            "words.rows": words.rows,
            "words.seen": words.seen,
            "words.counters": words.counters,
        }
        | state_file.pack_names("words", words.names)
    )
    return header, tensors


def _is_to_be_packed(weights: Array, n_labels: int) -> bool:
    """Return whether weights are compressed: many, and of tags, as those of pseudo labels are not close to zero."""
    is_single = weights.dtype == np.float32 and weights.ndim == 2
    return is_single and weights.shape[1] == n_labels and weights.nbytes > EXACT_BYTES


def _name(encoder: Any) -> str:
    """Return the name of an encoder, for the error that asks for it."""
    return str(getattr(encoder, "__qualname__", type(encoder).__qualname__))


def unpack_tagger(
    header: dict[str, Any], tensors: dict[str, Array], encoders: Mapping[str, Any] | None
) -> tuple[dict[str, Any], Any, Any]:
    """Return the parameters of a tagger, its state, and its model."""
    names = header["encoders"]
    missing = [column for column in names if column not in (encoders or {})]
    if missing:
        raise ModelFileError(
            f"The tagger reads the column {missing[0]!r} with the encoder {names[missing[0]]!r}, which is not in its "
            f"file: give it again, labelrace.load(path, encoders={{{missing[0]!r}: …}})."
        )
    model_tensors = {name.removeprefix(_MODEL): tensor for name, tensor in tensors.items() if name.startswith(_MODEL)}
    packed_parts = [tensors[_PACKED + name] for name in PackedWeights._fields if _PACKED + name in tensors]
    if packed_parts:
        packed_weights = PackedWeights(*packed_parts)
        model_tensors[_WEIGHTS] = table_of(packed_weights, int(header["model"]["n_labels"]))  # type: ignore[assignment]
    model = state_file.class_of(header["model"]).from_file(header["model"], model_tensors)
    features = FeatureState(
        _columns(header["columns"]),
        {name: Moments(*map(float, numbers)) for name, numbers in header["moments"].items()},
        _vocabulary(header, tensors),
    )
    if max(1, len(features.vocabulary.rows)) != model.n_features_in_ or model.label_names_ is None:
        raise ValueError("its words and tags do not fit its model")
    state = _state(header, features)
    given = dict(header["parameters"])
    _check_parameters(given)
    if given["model"] is None:
        given["model"] = type(model)(**model.get_params(deep=False))
    return given | {"encoders": {name: encoders[name] for name in names} if encoders else None}, state, model


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it: NumPy's scalars as Python's, and tuples as lists."""
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, tuple) else value


def _check_parameters(given: dict[str, Any]) -> None:
    """Refuse parameters that no tagger can have."""
    for name in ("tags", *KINDS_BY_PARAMETER):
        check_overrides({name: given[name]})
    for name, least in {"min_rows": 1, "max_features": 1, "batch_size": 1, "random_state": 0}.items():
        if given[name] is not None or name in ("max_features", "batch_size"):
            parameters.check_whole(name, given[name], least)
    parameters.check_choice("untagged", given["untagged"], UNTAGGED)
    parameters.check_flag("encoders_only", given["encoders_only"])
    if not isinstance(given["separator"], str | None) or not isinstance(given["model"], str | None):
        raise ValueError("its separator or its model is no text")


def _columns(listed: list[Any]) -> tuple[Column, ...]:
    columns = tuple(Column(*column) for column in listed)
    hints = get_type_hints(Column)
    for column in columns:
        if not all(isinstance(value, hints[name]) for name, value in column._asdict().items()):
            raise ValueError(f"the column {column.name!r:.40} is not described as columns are")
        parameters.check_choice("kind", column.kind, KINDS)
        parameters.check_choice("pattern", column.pattern, DATE_PATTERNS)
        if column.separator == "" or column.width < 0:
            raise ValueError(f"the column {column.name!r:.40} has no such separator, or width")
    if len({column.name for column in columns}) < len(columns):
        raise ValueError("a column is there twice")
    return columns


def _state(header: dict[str, Any], features: FeatureState) -> TaggerState:
    """Read the state of a tagger, apart from its features."""
    names = TagNames(header["aliases"], frozenset(header["retired"]))
    counts = {tag: TagCounts(*numbers) for tag, numbers in header["tags"].items()}
    together = {tuple(tags): n for n, *tags in header["sets"]}
    numbers = (*together.values(), *(number for one in counts.values() for number in one))
    for number in (header["n_rows"], header["n_tested"], *numbers):
        parameters.check_whole("a count", number, 0)
    parameters.check_number("sum_f1", header["sum_f1"], 0.0)
    texts = [*names.aliases, *names.aliases.values(), *names.retired, *(tag for tags in together for tag in tags)]
    if not all(isinstance(text, str) for text in texts) or not isinstance(header["separator"], str | None):
        raise ValueError("its tags or their separator are no texts")
    if header["separator"] == "":
        raise ValueError("its separator is empty")
    rows = header["n_rows"], header["n_tested"], float(header["sum_f1"])
    return TaggerState(features, header["separator"], names, counts, *rows, together)


def _vocabulary(header: dict[str, Any], tensors: dict[str, Array]) -> Vocabulary:
    columns = tensors["words.columns"].astype(np.intp, casting="same_kind")
    names = state_file.unpack_names("words", tensors)
    keys, rows, seen, counters = (tensors[f"words.{name}"] for name in ("keys", "rows", "seen", "counters"))
    return check(Vocabulary(keys, columns, names, rows, seen, counters, float(header["words_rows"])))


class PackedWeights(NamedTuple):
    """A compressed matrix in single precision: its largest entries and the means of the others.

    ``levels`` are the entries that are kept, row by row: the square roots of their ratios to the largest one, in
    127ths, with their signs. Square roots, as the entries of a row differ by orders of magnitude.
    """

    is_kept: npt.NDArray[np.uint8]  # (m, ceil(l / 8)): a bit for each entry, whether it is kept
    largest: Singles  # the largest absolute value in each row
    others: Singles  # the mean of the entries of each row that are not kept
    levels: npt.NDArray[np.int8]


def pack(weights: Singles) -> PackedWeights:
    """Compress a matrix: keep the largest quarter of its entries.

    Examples
    --------
    >>> weights = np.array([[0, 0.001, -2, 0, 0.01, 0, 0, 1], [0] * 8], np.float32)
    >>> np.asarray(table_of(pack(weights), 8), float)[0].round(3).tolist()
    [0.0, 0.001, -2.0, 0.0, 0.01, 0.0, 0.0, 1.004]
    """
    least, parts = _least_kept(weights), []
    for start in range(0, len(weights), _ROWS):
        part = weights[start : start + _ROWS]
        sizes = np.abs(part)
        is_kept = sizes >= least
        n_kept, largest = is_kept.sum(axis=1), sizes.max(axis=1)
        entries, maxima = part[is_kept], np.repeat(largest, n_kept)
        others = np.where(is_kept, np.float32(0.0), part).sum(axis=1) / np.maximum(part.shape[1] - n_kept, 1)
        levels = np.maximum(np.rint(np.sqrt(np.abs(entries) / maxima) * _LEVELS), 1.0)
        signed = np.copysign(levels, entries).astype(np.int8)
        parts.append((np.packbits(is_kept, axis=1), largest, others.astype(np.float32), signed))
    return PackedWeights(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _least_kept(weights: Singles) -> np.float32:
    """Return the absolute value from which entries are kept, so that they are at most a quarter, and none is 0."""
    # The bits of positive numbers have the order of the numbers, so the first sixteen bits are bins of a histogram.
    counts = np.zeros(1 << 16, dtype=np.int64)
    for start in range(0, len(weights), _ROWS):
        bins = np.abs(weights[start : start + _ROWS]).view(np.uint32) >> np.uint32(16)
        counts += np.bincount(bins.ravel(), minlength=len(counts))
    above = np.cumsum(counts[::-1])[::-1]
    first = max(1, int(np.searchsorted(-above, -_KEPT * weights.size)))
    return np.array([first << 16], dtype=np.uint32).view(np.float32)[0]


def table_of(packed: PackedWeights, width: int) -> VersionedRows:
    """Return a table of packed weights whose rows are unpacked on first access."""
    is_kept, largest, others, levels = packed
    if [part.dtype.str[1:] for part in packed] != ["u1", "f4", "f4", "i1"] or levels.ndim != 1:
        raise ValueError("its weights are not of the types that weights have")
    if is_kept.shape != (len(largest), -(-width // 8)) or largest.shape != others.shape:
        raise ValueError("its weights do not fit its tags")
    ends = np.cumsum(np.bitwise_count(is_kept).sum(axis=1, dtype=np.int64))
    if int(ends[-1:].sum()) != len(levels):
        raise ValueError("its weights do not fit one another")

    def rows_at(indices: IntArray) -> Array:
        kept = np.unpackbits(is_kept[indices], axis=1, count=width).astype(bool)
        counts = kept.sum(axis=1)
        # The positions of the levels of each row.
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        level = levels[np.repeat(ends[indices] - counts, counts) + within].astype(np.float32) / np.float32(_LEVELS)
        rows: Any = np.repeat(others[indices][:, None], width, axis=1)
        rows[kept] = level * np.abs(level) * np.repeat(largest[indices], counts)
        return np.asarray(rows)

    return VersionedRows.filled_by(rows_at, (len(largest), width), np.float32)
