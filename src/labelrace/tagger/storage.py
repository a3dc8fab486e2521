"""A tagger as one file: the kinds of the columns, the words, the tags and the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

import numpy as np

from labelrace import parameters
from labelrace.exceptions import ModelFileError
from labelrace.features.blocks import Moments
from labelrace.features.kinds import DATE_PATTERNS, KINDS, Column, check_overrides
from labelrace.features.table import FeatureState
from labelrace.features.vocabulary import Vocabulary, checked
from labelrace.models import model_file, persistence
from labelrace.tagger import packing
from labelrace.tagger.state import UNTAGGED, TagCounts, TaggerState, TagNames
from labelrace.typing import Array

_MODEL, _PACKED = "model.", "packed."
# The weights of the default model, which take most of the space in a file.
_WEIGHTS = "state.learners.weights"


def packed(tagger: Any, state: Any, model: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a tagger's file."""
    model_header, model_tensors = model.packed()
    given = tagger.get_params(deep=False)
    encoders = {column: _name(encoder) for column, encoder in (given.pop("encoders") or {}).items()}
    if not isinstance(given["model"], str):
        given["model"] = None
    if not isinstance(given["random_state"], (int, type(None))):
        given["random_state"] = None
    weights, packed_tensors = model_tensors.get(_WEIGHTS), dict[str, Array]()
    if weights is not None and _is_to_be_packed(weights, model_header["n_labels"]):
        del model_tensors[_WEIGHTS]
        packed_tensors = {_PACKED + name: part for name, part in packing.pack(np.asarray(weights))._asdict().items()}
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
        "n_rows": int(state.n_rows),
        "n_tested": int(state.n_tested),
        "sum_f1": float(state.sum_f1),
        "words_rows": float(words.n_rows),
        "model": model_header,
    }
    text = [name.encode("utf-8", "surrogatepass") for name in words.names]
    tensors = (
        {_MODEL + name: tensor for name, tensor in model_tensors.items()}
        | packed_tensors
        | {
            "words.keys": words.keys,
            "words.columns": words.columns.astype(np.int64),
            "words.rows": words.rows,
            "words.seen": words.seen,
            "words.counters": words.counters,
            "words.lengths": np.array([len(name) for name in text], dtype=np.int32),
            "words.text": np.frombuffer(b"".join(text), dtype=np.uint8),
        }
    )
    return header, tensors


def _is_to_be_packed(weights: Array, n_labels: int) -> bool:
    """Return whether weights are compressed: many, and of tags, as those of pseudo labels are not close to zero."""
    is_single = weights.dtype == np.float32 and weights.ndim == 2
    return is_single and weights.shape[1] == n_labels and weights.nbytes > packing.EXACT_BYTES


def _name(encoder: Any) -> str:
    """Return the name of an encoder, for the error that asks for it."""
    return str(getattr(encoder, "__qualname__", type(encoder).__qualname__))


def unpacked(
    header: dict[str, Any], tensors: dict[str, Array], encoders: Mapping[str, Any] | None
) -> tuple[dict[str, Any], Any, Any]:
    """Return the parameters of a tagger, its state, and its model."""
    wanted = header["encoders"]
    missing = [column for column in wanted if column not in (encoders or {})]
    if missing:
        raise ModelFileError(
            f"The tagger reads the column {missing[0]!r} with the encoder {wanted[missing[0]]!r}, which is not in its "
            f"file: give it again, labelrace.load(path, encoders={{{missing[0]!r}: …}})."
        )
    model_tensors = {name.removeprefix(_MODEL): tensor for name, tensor in tensors.items() if name.startswith(_MODEL)}
    packed_parts = [tensors[_PACKED + name] for name in packing.PackedWeights._fields if _PACKED + name in tensors]
    if packed_parts:
        packed_weights = packing.PackedWeights(*packed_parts)
        model_tensors[_WEIGHTS] = packing.table_of(packed_weights, int(header["model"]["n_labels"]))  # type: ignore[assignment]
    model = persistence.restored(header["model"], model_tensors)
    features = FeatureState(
        _columns(header["columns"]),
        {name: _moments(numbers) for name, numbers in header["moments"].items()},
        _vocabulary(header, tensors),
    )
    if max(1, len(features.vocabulary.rows)) != model.n_features_in_ or model.label_names_ is None:
        raise ValueError("its words and tags do not fit its model")
    state = _state(header, features)
    given = dict(header["parameters"])
    _check_parameters(given)
    if given["model"] is None:
        given["model"] = type(model)(**model.get_params(deep=False))
    return given | {"encoders": {name: encoders[name] for name in wanted} if encoders else None}, state, model


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it: NumPy's scalars as Python's, and tuples as lists."""
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, tuple) else value


def _check_parameters(given: dict[str, Any]) -> None:
    """Refuse parameters that no tagger can have."""
    for name in ("tags", "text", "category", "number", "date", "id", "drop"):
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


def _moments(numbers: list[Any]) -> Moments:
    moments = Moments(*map(float, numbers))
    if not np.isfinite(moments).all() or abs(moments.mean) > 1e100 or min(moments.n, moments.square) < 0:
        raise ValueError("a column of numbers has no such moments")
    return moments


def _state(header: dict[str, Any], features: FeatureState) -> TaggerState:
    """Read the state of a tagger, apart from its features."""
    names = TagNames(header["aliases"], frozenset(header["retired"]))
    counts = {tag: TagCounts(*numbers) for tag, numbers in header["tags"].items()}
    for number in (header["n_rows"], header["n_tested"], *(number for one in counts.values() for number in one)):
        parameters.check_whole("a count", number, 0)
    parameters.check_number("sum_f1", header["sum_f1"], 0.0)
    texts = [*names.aliases, *names.aliases.values(), *names.retired]
    if not all(isinstance(text, str) for text in texts) or not isinstance(header["separator"], str | None):
        raise ValueError("its tags or their separator are no texts")
    if header["separator"] == "":
        raise ValueError("its separator is empty")
    return TaggerState(
        features, header["separator"], names, counts, header["n_rows"], header["n_tested"], float(header["sum_f1"])
    )


def _vocabulary(header: dict[str, Any], tensors: dict[str, Array]) -> Vocabulary:
    columns, lengths = tensors["words.columns"].astype(np.intp, casting="same_kind"), tensors["words.lengths"]
    text, ends = tensors["words.text"].tobytes(), np.cumsum(lengths, dtype=np.int64).tolist()
    if lengths.dtype.kind != "i" or (lengths < 0).any() or (ends or [0])[-1] != len(text):
        raise ValueError("its words do not fit their text")
    starts = [0, *ends[:-1]]
    names = [text[start:end].decode("utf-8", "surrogatepass") for start, end in zip(starts, ends, strict=False)]
    keys, rows, seen, counters = (tensors[f"words.{name}"] for name in ("keys", "rows", "seen", "counters"))
    return checked(Vocabulary(keys, columns, names, rows, seen, counters, float(header["words_rows"])))
