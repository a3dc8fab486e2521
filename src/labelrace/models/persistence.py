"""Models on disk: safetensors with a JSON header, never a pickle.

A state is a NamedTuple of arrays, some of them NamedTuples again: on disk an array is found under its path, such as
``decoder.gram``. The header tells the format's version, the class, the parameters and the names; from these the
algorithm is made, and its state from the arrays, as the annotations of the NamedTuple have them. A checksum over all of
it tells a damaged file.
"""

from __future__ import annotations

import dataclasses
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import safetensors
import safetensors.numpy

import labelrace
from labelrace.core.categorical import CategoricalMask
from labelrace.core.schema import Schema
from labelrace.exceptions import ModelFileError
from labelrace.files import write_whole
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.rls import RLS
from labelrace.learners.sgd import SGD
from labelrace.models.fitted import Fitted
from labelrace.typing import Array

__all__ = ["load", "save"]

# Raise this when older versions of the library could misread what is written.
FORMAT = 1
_HEADER, _CHECKSUM = "labelrace", "checksum"
_BANKS: dict[str, Any] = {bank.__name__: bank for bank in (NaiveBayes, SGD, Ridge, RLS)}


def save(model: Any, fitted: Fitted, path: str | os.PathLike[str]) -> None:
    """Write what a classifier knows; see its method `save`."""
    if type(model) is not getattr(labelrace, type(model).__name__, None):
        raise ValueError(
            f"model must be one of labelrace's own classifiers, got {type(model).__name__}: it could not be loaded "
            "again."
        )
    schema = fitted.schema
    tensors = _flatten(fitted.state, "state") | {"n_values": schema.n_values}
    parameters = {
        name: _encode(f"parameter.{name}", value, tensors) for name, value in model.get_params(deep=False).items()
    }
    header = {
        "format": FORMAT,
        "version": labelrace.__version__,
        "class": type(model).__name__,
        "parameters": parameters,
        "n_labels": schema.n_labels,
        "label_names": _names(schema.label_names),
        "feature_names": _names(schema.feature_names),
        "sparse_labels": schema.sparse_labels,
        "label_dtype": schema.label_dtype.str,
        "seed": fitted.seed,
    }
    if hasattr(model, "source_"):
        header["source"] = model.source_
    tensors = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    text = json.dumps(header)
    write_whole(path, safetensors.numpy.save(tensors, {_HEADER: text, _CHECKSUM: _checksum(text, tensors)}))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    model
        The classifier as it was, ready to predict and to learn on.

    Raises
    ------
    ModelFileError
        If the file is no labelrace model, is damaged, or was written by a newer version.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, labelrace
    >>> X, Y = np.eye(4), np.eye(4)[:, :3]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.safetensors")
    ...     labelrace.RACEClassifier(random_state=0).fit(X, Y).save(path)
    ...     model = labelrace.load(path)
    >>> model.predict(X).shape
    (4, 3)
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file {path}.")
    try:
        return _restore(*_read(path))
    except (ModelFileError, OSError, MemoryError):
        raise
    except safetensors.SafetensorError as error:
        raise ModelFileError(f"{path} is not a labelrace model, or it is cut short ({error}).") from error
    except Exception as error:
        # Whatever goes wrong in making a model of a file, it is the file that is wrong.
        raise ModelFileError(f"{path} is damaged: its contents do not fit its header ({error}).") from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read header and arrays, refusing what is not a model of this or an older format."""
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        if _HEADER not in metadata:
            raise ModelFileError(f"{path} is a safetensors file, but not a labelrace model.")
        header = json.loads(metadata[_HEADER])
        if not isinstance(header, dict) or not isinstance(header.get("format"), int):
            raise ModelFileError(f"{path} is damaged: its header cannot be read.")
        if header["format"] > FORMAT:
            raise ModelFileError(
                f"{path} was written by labelrace {header.get('version')}, in a newer format than this version "
                f"({labelrace.__version__}) reads: upgrade labelrace."
            )
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if metadata.get(_CHECKSUM) != _checksum(metadata[_HEADER], tensors):
        raise ModelFileError(f"{path} is damaged: its contents do not fit its checksum.")
    return header, tensors


def _checksum(header: str, tensors: dict[str, Array]) -> str:
    """Sum up a file's header and its arrays with their names, types and shapes."""
    total = zlib.crc32(header.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total = zlib.crc32(f"{name} {tensor.dtype.str} {tensor.shape}".encode(), total)
        total = zlib.crc32(tensor.data, total)
    return f"{total:08x}"


def _restore(header: dict[str, Any], tensors: dict[str, Array]) -> Any:
    """Make a model of the header and put the arrays into its state."""
    parameters = {name: _decode(value, tensors) for name, value in header["parameters"].items()}
    model = _class(header["class"])(**parameters)
    n_values, n_labels = tensors["n_values"], int(header["n_labels"])
    schema = Schema(
        n_values.astype(np.intp, casting="same_kind"),
        _as_names(header["feature_names"], len(n_values)),
        n_labels,
        _as_names(header["label_names"], n_labels),
        bool(header["sparse_labels"]),
        np.dtype(header["label_dtype"]),
    )
    # Learners may have features of their own, if the model itself tells how many it takes.
    told = (
        ["state.n_values"] if "state.n_values" in tensors else [name for name in tensors if name.endswith(".n_values")]
    )
    if any(len(tensors[name]) != len(n_values) for name in told):
        raise ValueError(f"its learners do not know {len(n_values)} features")
    if "source" in header:
        model.source_ = header["source"]
    seed = int(header["seed"])
    algorithm = model._algorithm(seed)
    state = _unflatten(algorithm.state_type, tensors, "state", algorithm.field_types())
    _check_shapes(algorithm, schema, state)
    model._fitted = Fitted(algorithm, schema, state, seed, model.get_params(deep=False))
    return model


def _check_shapes(algorithm: Any, schema: Schema, state: Any) -> None:
    """Refuse arrays that do not fit one another: a row of zeros must get a score for every label, and be learned."""
    X, Y = np.zeros((1, schema.n_features)), np.zeros((1, schema.n_labels))
    derived = algorithm.derive(state)
    scores = algorithm.scores(derived, X)
    if scores.shape != (1, schema.n_labels):
        raise ValueError(f"its arrays are those of {scores.shape[1]} labels, not of {schema.n_labels}")
    if hasattr(state, "encoder"):
        # Arrays of one entry would fit any others.
        k = len(state.decoder.gram)
        if [part.shape for part in state.encoder[:3]] != [(schema.n_labels, k), (k,), (k,)]:
            raise ValueError("its encoder does not fit its decoder")
    if algorithm.is_online:
        algorithm.update(state, X, Y, derived)


def _class(name: str) -> Any:
    """Find a classifier among the public names; nothing else can be named by a file."""
    found = getattr(labelrace, name, None) if name in labelrace.__all__ else None
    if not hasattr(found, "_algorithm"):
        raise ValueError(f"there is no classifier {name!r}")
    return found


def _names(names: Array | None) -> list[str] | None:
    return None if names is None else [str(name) for name in names]


def _as_names(names: list[str] | None, count: int) -> Array | None:
    if names is not None and (len(names) != count or not all(isinstance(name, str) for name in names)):
        raise ValueError(f"there are not {count} names")
    return None if names is None else np.asarray(names, dtype=object)


def _flatten(state: Any, path: str) -> dict[str, Array]:
    """List the arrays of a state by their paths; what is None or empty is left out."""
    tensors: dict[str, Array] = {}
    for name, value in state._asdict().items():
        if hasattr(value, "_asdict"):
            tensors |= _flatten(value, f"{path}.{name}")
        elif isinstance(value, (np.ndarray, float)):
            tensors[f"{path}.{name}"] = np.asarray(value)
        elif value:
            raise ValueError(
                f"A model with {path}.{name} of {type(value[0]).__name__} cannot be saved: only arrays are written, "
                "never pickles. Use one of labelrace's own learners."
            )
    return tensors


def _unflatten(kind: Any, tensors: dict[str, Array], path: str, field_types: Mapping[str, Any] | None = None) -> Any:
    """Make a state of its arrays, as the annotations of its NamedTuple have them.

    ``field_types`` are the types of fields whose annotation leaves them open.
    """
    values: dict[str, Any] = {}
    for name, hint in {**get_type_hints(kind), **(field_types or {})}.items():
        place, found = f"{path}.{name}", tensors.get(f"{path}.{name}")
        if hasattr(hint, "_fields"):
            values[name] = _unflatten(hint, tensors, place)
        elif get_origin(hint) is tuple:
            # What is waiting to be added up was added before saving.
            values[name] = ()
        elif type(None) in get_args(hint):
            values[name] = found
        elif found is None:
            raise ValueError(f"{place} is missing")
        elif hint is float:
            values[name] = float(found)
        else:
            scalar = _scalar_type(hint)
            if scalar is not Any and found.dtype != np.dtype(scalar):
                raise ValueError(f"{place} is of type {found.dtype}, not {np.dtype(scalar)}")
            values[name] = found
    return kind(**values)


def _scalar_type(hint: Any) -> Any:
    """Find the type of an array's entries in its annotation, which is ``NDArray[T]`` or what that stands for."""
    last = get_args(hint)[-1]
    return get_args(last)[0] if get_args(last) else last


def _encode(path: str, value: Any, tensors: dict[str, Array]) -> Any:
    """Turn a parameter into JSON; arrays go to the tensors, under its path."""
    if isinstance(value, CategoricalMask) and value.n_values is not None:
        return {"categorical": value.n_values.tolist()}
    if dataclasses.is_dataclass(value) and type(value).__name__ in _BANKS:
        return {"bank": type(value).__name__, "settings": dataclasses.asdict(value)}  # type: ignore[arg-type]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        tensors[path] = value
        return {"array": path}
    if hasattr(value, "to_numpy"):
        return _encode(path, value.to_numpy(), tensors)
    if isinstance(value, (list, tuple, range, np.ndarray)):
        return {"list": [_encode(f"{path}.{i}", item, tensors) for i, item in enumerate(value)]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        # It has been used: what was drawn is in the state.
        return None
    raise ValueError(f"{path}={value!r} cannot be saved: use numbers, text, arrays or labelrace's own learners.")


def _decode(value: Any, tensors: dict[str, Array]) -> Any:
    """Turn JSON back into a parameter."""
    if not isinstance(value, dict):
        return value
    if "categorical" in value:
        return CategoricalMask(value["categorical"])
    if "bank" in value:
        return _BANKS[value["bank"]](**value["settings"])
    if "array" in value:
        return tensors[value["array"]]
    return [_decode(item, tensors) for item in value["list"]]
