"""A tagger as one file: the kinds of the columns, the words, the tags and the model.

A tagger of 2¹⁸ words and 700 tags has 183 million weights of 734 MB, nearly all of them close to zero. A file holds the
largest quarter of them in eight bits each, and one bit for each weight that says whether it is among these; the others
are replaced by their mean, word by word. This takes three bits for a weight instead of 32. A loaded tagger unpacks the
weights of a word when the word first occurs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import numpy as np
import numpy.typing as npt

from labelrace.base import model_file, parameters, registry, state_file
from labelrace.exceptions import ModelFileError
from labelrace.linear.versioned_rows import VersionedRows, rows_of
from labelrace.tables import first_rows, known_rows
from labelrace.tables.column_blocks import Moments
from labelrace.tables.column_kinds import DATE_PATTERNS, KINDS, KINDS_BY_PARAMETER, Column, check_overrides
from labelrace.tables.embedding import check_folders
from labelrace.tables.features import FeatureState
from labelrace.tables.state import UNTAGGED, TagCounts, TaggerState, TagNames
from labelrace.tables.suggestions import Suggestions
from labelrace.tables.tag_details import TagDetails
from labelrace.tables.trial import Trial
from labelrace.tables.vocabulary import Vocabulary, check
from labelrace.typing import Array, BoolArray, IntArray

if TYPE_CHECKING:
    from labelrace.tables.known import Known

_MODEL, _PACKED, _SUGGESTIONS, _SCORES = "model.", "packed.", "suggestions.", "scores."
_TRIAL, _KNOWN = "trial.", "known."
_SUGGESTED = ("gram", "moments", "n_missed", "f1", "confidences", "best", "trust", "information")
# The weights of the default model, which take most of the space in a file.
_WEIGHTS = "state.learners.weights"
Singles = npt.NDArray[np.float32]

# Up to this size, weights are saved exactly.
EXACT_BYTES = 1 << 26
# Share of the weights that are kept above that.
_KEPT = 0.25
_LEVELS = 127
# Number of rows that are packed at a time.
_ROWS = 1024


def pack_tagger(tagger: Any, known: Known, exact: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a tagger's file; with `exact` it has all weights, however large it is."""
    state, trial = known.state, known.trial
    model_header, model_tensors = known.model.pack()
    given = tagger.get_params(deep=False)
    encoders = {column: _name(encoder) for column, encoder in (given.pop("encoders") or {}).items()}
    given["embed"] = {column: os.fspath(folder) for column, folder in (given["embed"] or {}).items()} or None
    if not isinstance(given["model"], str):
        given["model"] = None
    # The details of tags are part of the state.
    given["vocabulary"] = None
    if not isinstance(given["random_state"], (int, type(None))):
        given["random_state"] = None
    weights, packed_tensors = model_tensors.get(_WEIGHTS), dict[str, Array]()
    if weights is not None and not exact and _is_to_be_packed(weights, model_header["n_labels"]):
        del model_tensors[_WEIGHTS]
        packed_tensors = {_PACKED + name: part for name, part in pack(weights)._asdict().items()}
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
        "starts": sorted(state.starts),
        "n_rows": int(state.n_rows),
        "n_tested": int(state.n_tested),
        "sum_f1": float(state.sum_f1),
        "n_known": int(state.n_known),
        "n_corrections": int(state.n_corrections),
        "words_rows": float(words.n_rows),
        "details": {tag: [list(one.synonyms), one.description, one.parent] for tag, one in state.details.items()},
        "surplus": {tag: list(pair) for tag, pair in state.suggestions.surplus.items()},
        "first": first_rows.pack(state.first),
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
        | _suggestion_tensors(state.suggestions)
        | {_KNOWN + name: part for name, part in known_rows.pack(state.known_rows).items()}
    )
    if trial is not None:
        second_header, second_tensors = trial.model.pack()
        surplus = {tag: list(pair) for tag, pair in trial.suggestions.surplus.items()}
        tested = {"n_rows": trial.n_rows, "difference": trial.difference}
        header["trial"] = {"model": second_header, "surplus": surplus} | tested
        second_tensors = {_MODEL + name: tensor for name, tensor in second_tensors.items()}
        second_tensors |= _suggestion_tensors(trial.suggestions)
        tensors |= {_TRIAL + name: tensor for name, tensor in second_tensors.items()}
    return header, tensors


def _read_trial(header: dict[str, Any], tensors: dict[str, Array]) -> Trial:
    """Read the second model of a tagger with encoders on trial."""
    parts = {name.removeprefix(_TRIAL): tensor for name, tensor in tensors.items() if name.startswith(_TRIAL)}
    parameters.check_whole("n_rows", header["n_rows"], 0)
    parameters.check_number("difference", header["difference"], -np.inf, np.inf)
    model = _read_model(header["model"], parts)
    return Trial(model, _read_suggestions(header, parts), header["n_rows"], float(header["difference"]))


def _read_model(header: dict[str, Any], tensors: dict[str, Array]) -> Any:
    """Read a model; its arrays are among others."""
    own = {name.removeprefix(_MODEL): tensor for name, tensor in tensors.items() if name.startswith(_MODEL)}
    packed_parts = [tensors[_PACKED + name] for name in PackedWeights._fields if _PACKED + name in tensors]
    if packed_parts:
        packed_weights = PackedWeights(*packed_parts)
        own[_WEIGHTS] = table_of(packed_weights, int(header["n_labels"]))  # type: ignore[assignment]
    return state_file.class_of(header).from_file(header, own)


def _suggestion_tensors(known: Suggestions) -> dict[str, Array]:
    """Return the counts of suggestions as arrays."""
    scores = {_SCORES + name: np.asarray(value, dtype=float) for name, value in known.scores._asdict().items()}
    others = {name: np.asarray(getattr(known, name), dtype=float) for name in _SUGGESTED}
    return {_SUGGESTIONS + name: value for name, value in (scores | others).items()}


def _read_suggestions(header: dict[str, Any], tensors: dict[str, Array]) -> Suggestions:
    """Read the counts of suggestions."""
    empty, content = Suggestions(), _suggestion_tensors(Suggestions())
    for name, expected in content.items():
        given = tensors[name]
        if given.shape != expected.shape or given.dtype != float or not np.isfinite(given).all():
            raise ValueError(
                f"its counts of suggestions must be finite and of shape {expected.shape}, but {name} is not"
            )
    parts = {name.removeprefix(_SUGGESTIONS): tensors[name] for name in content}
    counts = {name: parts[_SCORES + name] for name in empty.scores._fields}
    scores: Any = [value if value.ndim else float(value) for value in counts.values()]
    others: Any = {name: parts[name] if parts[name].ndim else float(parts[name]) for name in _SUGGESTED}
    surplus = {tag: (float(more), float(variance)) for tag, (more, variance) in header["surplus"].items()}
    return empty._replace(scores=type(empty.scores)(*scores), surplus=surplus, **others)


def _details(listed: Mapping[str, Any]) -> dict[str, TagDetails]:
    """Read the details of tags."""
    details = {tag: TagDetails(tuple(synonyms), text, parent) for tag, (synonyms, text, parent) in listed.items()}
    for one in details.values():
        if not all(isinstance(text, str) for text in (*one.synonyms, one.description, one.parent or "")):
            raise ValueError("its synonyms, descriptions or parents of tags must be texts")
    return details


def _is_to_be_packed(weights: Array, n_labels: int) -> bool:
    """Return whether weights are compressed: many, and of tags, as those of pseudo labels are not close to zero."""
    is_single = weights.dtype == np.float32 and weights.ndim == 2
    return is_single and weights.shape[1] == n_labels and weights.nbytes > EXACT_BYTES


def _name(encoder: Any) -> str:
    """Return the name of an encoder, for the error that asks for it."""
    return str(getattr(encoder, "__qualname__", type(encoder).__qualname__))


def unpack_tagger(
    header: dict[str, Any],
    tensors: dict[str, Array],
    encoders: Mapping[str, Any] | None,
    embed: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], TaggerState, Any, Trial | None]:
    """Return the parameters of a tagger, its state, its model, and the second model of a trial."""
    names = header["encoders"]
    missing = [column for column in names if column not in (encoders or {})]
    if missing:
        raise ModelFileError(
            f"The tagger reads the column {missing[0]!r} with the encoder {names[missing[0]]!r}, which is not in its "
            f"file: give it again, labelrace.load(path, encoders={{{missing[0]!r}: …}})."
        )
    if other := [column for column in encoders or {} if column not in names]:
        raise ModelFileError(
            f"encoders must be those of the tagger, got one for {other[0]!r}, which it has not learned."
        )
    model = _read_model(header["model"], tensors)
    features = FeatureState(
        _columns(header["columns"]),
        {name: Moments(*map(float, numbers)) for name, numbers in header["moments"].items()},
        _vocabulary(header, tensors),
    )
    if max(1, len(features.vocabulary.rows)) != model.n_features_in_ or model.label_names_ is None:
        raise ValueError("its words and tags do not fit its model")
    state = _state(header, features)._replace(
        suggestions=_read_suggestions(header, tensors),
        first=first_rows.unpack(header["first"]),
        known_rows=known_rows.unpack(*(tensors[_KNOWN + name] for name in ("keys", "tags", "lengths"))),
        n_known=header["n_known"],
        n_corrections=header["n_corrections"],
    )
    trial = _read_trial(header["trial"], tensors) if "trial" in header else None
    if trial is not None and trial.model.n_features_in_ != model.n_features_in_:
        raise ValueError("its second model does not fit its words")
    given = {"embed": None, **header["parameters"]}
    _check_parameters(given)
    used = trial is not None
    digests = {one.name: one.embedding for one in features.columns if one.embedding and (one.uses_encoder or used)}
    given["embed"] = check_folders(digests, given["embed"] or {}, embed or {}) or None
    if given["model"] is None:
        given["model"] = type(model)(**model.get_params(deep=False))
    own = {name: encoders[name] for name in names} if encoders else None
    return given | {"encoders": own}, state, model, trial


def _plain(value: Any) -> Any:
    """Return a parameter as a JSON value: NumPy's scalars as Python's, and tuples as lists."""
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, tuple) else value


def _check_parameters(given: dict[str, Any]) -> None:
    """Refuse invalid parameters of a tagger."""
    for name in ("tags", *KINDS_BY_PARAMETER):
        check_overrides({name: given[name]})
    for name, least in {"min_rows": 1, "max_features": 1, "batch_size": 1, "random_state": 0}.items():
        if given[name] is not None or name in ("max_features", "batch_size"):
            parameters.check_whole(name, given[name], least)
    parameters.check_choice("untagged", given["untagged"], UNTAGGED)
    parameters.check_number("min_probability", given["min_probability"], 0.0, 1.0)
    if given["precision"] is not None:
        parameters.check_number("precision", given["precision"], 0.0, 1.0)
    for name in ("encoders_only", "fold_tags", "skip_known"):
        parameters.check_flag(name, given[name])
    if given["single"] not in (True, False, "auto"):
        raise ValueError("its parameter single is invalid")
    folders = given["embed"] or {}
    if not isinstance(folders, dict) or not all(isinstance(text, str) for text in (*folders, *folders.values())):
        raise ValueError("its folders of embedding models must be texts")
    if not isinstance(given["separator"], str | None) or not isinstance(given["model"], str | None):
        raise ValueError("its separator and its model must be texts")
    name = str(given["model"])
    if ":" in name and registry.saved_class(name) is None:
        # A tagger that starts over makes its model by this name, and a file must not get a module imported.
        raise ValueError(f"its model {name!r:.80} is not known here")


def _columns(listed: list[Any]) -> tuple[Column, ...]:
    columns = tuple(Column(*column) for column in listed)
    hints = get_type_hints(Column)
    for column in columns:
        if not all(isinstance(value, hints[name]) for name, value in column._asdict().items()):
            raise ValueError(f"the column {column.name!r:.40} is not described as columns are")
        parameters.check_choice("kind", column.kind, KINDS)
        parameters.check_choice("pattern", column.pattern, DATE_PATTERNS)
        if column.separator == "" or column.width < 0 or column.decimal not in (None, ".", ","):
            raise ValueError(f"the column {column.name!r:.40} has no such separator, width or decimal sign")
        if column.width == 0 and not column.uses_encoder:
            raise ValueError(f"the column {column.name!r:.40} has no encoder")
    if len({column.name for column in columns}) < len(columns):
        raise ValueError("a column is there twice")
    return columns


def _state(header: dict[str, Any], features: FeatureState) -> TaggerState:
    """Read the state of a tagger, apart from its features."""
    names = TagNames(header["aliases"], frozenset(header["retired"]))
    counts = {tag: TagCounts(*numbers) for tag, numbers in header["tags"].items()}
    together = {tuple(tags): n for n, *tags in header["sets"]}
    numbers = (*together.values(), *(number for one in counts.values() for number in one))
    for number in (*(header[name] for name in ("n_rows", "n_tested", "n_known", "n_corrections")), *numbers):
        parameters.check_whole("a count", number, 0)
    parameters.check_number("sum_f1", header["sum_f1"], 0.0)
    texts = [*names.aliases, *names.aliases.values(), *names.retired, *(tag for tags in together for tag in tags)]
    if not all(isinstance(text, str) for text in texts) or not isinstance(header["separator"], str | None):
        raise ValueError("its tags and their separator must be texts")
    if header["separator"] == "":
        raise ValueError("its separator is empty")
    rows = header["n_rows"], header["n_tested"], float(header["sum_f1"])
    details = _details(header["details"])
    starts = frozenset(header.get("starts", ()))
    if not all(isinstance(text, str) for text in starts):
        raise ValueError("the hashes of its first rows must be texts")
    return TaggerState(features, header["separator"], names, counts, *rows, together, details, starts=starts)


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


class _Source(NamedTuple):
    """The source of a table of packed weights: ``ends`` are those of the levels of each row."""

    packed: PackedWeights
    ends: IntArray


def pack(weights: Singles | VersionedRows) -> PackedWeights:
    """Compress a matrix: keep the largest quarter of its entries.

    Rows of a loaded table that were not changed since are those of its file, to the bit, and are not unpacked. The
    others are read some at a time, so that threads that predict need not wait.

    Examples
    --------
    >>> weights = np.array([[0, 0.001, -2, 0, 0.01, 0, 0, 1], [0] * 8], np.float32)
    >>> np.asarray(table_of(pack(weights), 8), float)[0].round(3).tolist()
    [0.0, 0.001, -2.0, 0.0, 0.01, 0.0, 0.0, 1.004]
    """
    source, is_same = (
        weights.unchanged() if isinstance(weights, VersionedRows) else (None, np.zeros(len(weights), bool))
    )
    if is_same.all() and source is not None:
        return PackedWeights(*source.packed)
    least, parts = _least_kept(weights, source, is_same), []
    for rows in _row_groups(len(weights)):
        same = is_same[rows]
        changed = _pack_rows(rows_of(weights, rows[~same]), least)
        if source is not None and same.any():
            changed = _joined(_take_packed(source, rows[same]), changed, same)
        parts.append(changed)
    return PackedWeights(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _row_groups(n_rows: int) -> Iterator[IntArray]:
    """Yield the numbers of the rows that are packed at a time."""
    for start in range(0, n_rows, _ROWS):
        yield np.arange(start, min(start + _ROWS, n_rows))


def _pack_rows(part: Singles, least: np.float32) -> PackedWeights:
    """Compress some rows: keep entries from an absolute value on."""
    sizes = np.abs(part)
    is_kept = sizes >= least
    n_kept, largest = is_kept.sum(axis=1), sizes.max(axis=1, initial=0.0)
    entries, maxima = part[is_kept], np.repeat(largest, n_kept)
    others = np.where(is_kept, np.float32(0.0), part).sum(axis=1) / np.maximum(part.shape[1] - n_kept, 1)
    levels = np.maximum(np.rint(np.sqrt(np.abs(entries) / maxima) * _LEVELS), 1.0)
    signed = np.copysign(levels, entries).astype(np.int8)
    return PackedWeights(np.packbits(is_kept, axis=1), largest, others.astype(np.float32), signed)


def _take_packed(source: _Source, rows: IntArray) -> PackedWeights:
    """Take some rows of packed weights."""
    is_kept, largest, others, levels = source.packed
    bits = is_kept[rows]
    return PackedWeights(bits, largest[rows], others[rows], levels[_level_positions(source.ends[rows], _n_kept(bits))])


def _n_kept(is_kept: npt.NDArray[np.uint8]) -> IntArray:
    """Count the entries of each row that are kept."""
    return np.bitwise_count(is_kept).sum(axis=1, dtype=np.int64)


def _level_positions(ends: IntArray, counts: IntArray) -> IntArray:
    """List the positions of the levels of rows, each of which has a number of them before an end."""
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(ends - counts, counts) + within


def _joined(same: PackedWeights, changed: PackedWeights, is_same: BoolArray) -> PackedWeights:
    """Put packed rows in order: those that are the same, and the others."""
    order = np.argsort(np.argsort(~is_same, kind="stable"), kind="stable")
    pairs: Any = zip(same, changed, strict=True)
    joined = PackedWeights(*map(np.concatenate, pairs))
    return _take_packed(_Source(joined, np.cumsum(_n_kept(joined.is_kept))), order)


def _least_kept(weights: Singles | VersionedRows, source: _Source | None, is_same: BoolArray) -> np.float32:
    """Return the absolute value from which entries are kept, so that they are at most a quarter, and none is 0.

    Of rows that are packed already, only the kept entries count: all others are smaller.
    """
    # The bits of positive numbers have the order of the numbers, so the first sixteen bits are bins of a histogram.
    counts = np.zeros(1 << 16, dtype=np.int64)
    for rows in _row_groups(len(weights)):
        same = is_same[rows]
        entries = np.abs(rows_of(weights, rows[~same])).ravel()
        if source is not None and same.any():
            taken = _take_packed(source, rows[same])
            largest = np.repeat(taken.largest, _n_kept(taken.is_kept))
            entries = np.append(entries, np.square(taken.levels / np.float32(_LEVELS)) * largest)
        counts += np.bincount(entries.view(np.uint32) >> np.uint32(16), minlength=len(counts))
    above = np.cumsum(counts[::-1])[::-1]
    first = max(1, int(np.searchsorted(-above, -_KEPT * weights.shape[0] * weights.shape[1])))
    return np.array([first << 16], dtype=np.uint32).view(np.float32)[0]


def table_of(packed: PackedWeights, width: int) -> VersionedRows:
    """Return a table of packed weights whose rows are unpacked on first access."""
    is_kept, largest, others, levels = packed
    if [part.dtype.str[1:] for part in packed] != ["u1", "f4", "f4", "i1"] or levels.ndim != 1:
        raise ValueError("its weights have wrong types")
    if is_kept.shape != (len(largest), -(-width // 8)) or largest.shape != others.shape:
        raise ValueError("its weights do not fit its tags")
    ends = np.cumsum(_n_kept(is_kept))
    if int(ends[-1:].sum()) != len(levels):
        raise ValueError("its weights do not fit one another")

    def rows_at(indices: IntArray) -> Array:
        kept = np.unpackbits(is_kept[indices], axis=1, count=width).astype(bool)
        counts = kept.sum(axis=1)
        level = levels[_level_positions(ends[indices], counts)].astype(np.float32) / np.float32(_LEVELS)
        rows: Any = np.repeat(others[indices][:, None], width, axis=1)
        rows[kept] = level * np.abs(level) * np.repeat(largest[indices], counts)
        return np.asarray(rows)

    return VersionedRows.filled_by(rows_at, (len(largest), width), np.float32, _Source(packed, ends))
