"""Models as a header and named arrays, which `labelrace.base.model_file` writes and reads; never a pickle.

A state is a NamedTuple of arrays, some of them NamedTuples again: in the file an array is found under its path, such as
``state.decoder.gram``. Names are the bytes of their text and how many each has. The header tells the class and the
parameters; from these the algorithm is made, and its state from the arrays (`labelrace.base.state_reader`).
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import safetensors

from labelrace.base import limits, model_file, naming, registry
from labelrace.base.categorical_mask import CategoricalMask
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.fitted import Fitted
from labelrace.base.parameters import check_flag, check_whole
from labelrace.base.schema import Schema
from labelrace.base.state_reader import Sizes, StateReader
from labelrace.exceptions import LimitError, ModelFileError
from labelrace.typing import Array

if TYPE_CHECKING:
    from labelrace.base.estimator import OnlineClassifier
    from labelrace.delayed import DelayedLabels
    from labelrace.tables import Tagger

Kind = TypeVar("Kind")


def pack(model: Any, fitted: Fitted) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a classifier's file."""
    class_name = registry.saved_name(type(model))
    if class_name is None:
        raise ValueError(
            f"model must be of a class that has a name, got {type(model).__name__}, which could not be loaded again: "
            f"register it first, labelrace.register_model(name, {type(model).__name__})."
        )
    schema = fitted.schema
    values = dict(_flatten(fitted.state, "state"))
    parts = {path: value for path, value in values.items() if isinstance(value, int)}
    tensors = {path: value for path, value in values.items() if value is not None and path not in parts}
    tensors["n_values"] = schema.kinds.n_values
    parameters, known, algorithm = model.get_params(deep=False), fitted.algorithm, model._algorithm(fitted.seed)
    if _are_equal(parameters.get("label_names"), schema.label_names):
        # They need not be written twice.
        parameters["label_names"] = _Path("label_names")
    header = model_file.new_header(class_name) | {
        "parameters": {name: _encode(f"parameter.{name}", value, tensors) for name, value in parameters.items()},
        "n_labels": schema.n_labels,
        "label_names": _encode("label_names", schema.label_names, tensors),
        "feature_names": _encode("feature_names", schema.feature_names, tensors),
        "sparse_labels": schema.sparse_labels,
        "label_dtype": schema.label_dtype.str,
        "seed": fitted.seed,
        # Whether the state is that of the algorithm which the parameters give, or of the one that it has become.
        "is_successor": known != algorithm and known == algorithm.successor,
        # What the state does not have, and how often it has what it may have several times: all else must be there.
        "absent": [path for path, value in values.items() if value is None],
        "parts": parts,
    }
    if hasattr(model, "source_"):
        header["source"] = _encode("source", model.source_, tensors)
    return header, tensors


class _Path(str):
    """The path of names that are in the file already."""


def _are_equal(given: Any, names: Array | None) -> bool:
    """Return whether names that were given are those of the schema."""
    return isinstance(given, (list, tuple, np.ndarray)) and names is not None and list(given) == list(names)


@overload
def load(
    path: str | os.PathLike[str],
    kind: None = None,
    *,
    encoders: Mapping[str, Any] | None = None,
    embed: Mapping[str, str | os.PathLike[str]] | None = None,
) -> OnlineClassifier | Tagger | DelayedLabels: ...
@overload
def load(
    path: str | os.PathLike[str],
    kind: type[Kind],
    *,
    encoders: Mapping[str, Any] | None = None,
    embed: Mapping[str, str | os.PathLike[str]] | None = None,
) -> Kind: ...
def load(path: str | os.PathLike[str], kind: Any = None, *, encoders: Any = None, embed: Any = None) -> Any:
    """Read a model or tagger that its method `save` wrote.

    Parameters
    ----------
    path : path
        The file.
    kind : class, default=None
        What the file must hold, such as `labelrace.Tagger`; type checkers know then what is returned.
    encoders : dict of callables by column, default=None
        The encoders of a tagger that has some: they are not in its file.
    embed : dict of folders by column, default=None
        Where the embedding models of a tagger are, if they are not where they were.

    Returns
    -------
    model
        The classifier or tagger as it was, ready to predict and to learn on; or `DelayedLabels`.

    Raises
    ------
    ModelFileError
        If the file is no labelrace model, is damaged, was written by a newer version, or holds something else than
        ``kind``.
    LimitError
        If it has more labels, or values of a feature, than `labelrace.base.limits` allows for.

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
        header, tensors = model_file.read(path)
        found = class_of(header)
        if kind is not None and not issubclass(found, kind):
            raise ModelFileError(f"{path} must hold a {kind.__name__}, got a {found.__name__}: name another file.")
        return found.from_file(header, tensors, encoders, embed)
    except (ModelFileError, LimitError, OSError, MemoryError):
        raise
    except safetensors.SafetensorError as error:
        raise ModelFileError(f"{path} is not a labelrace model, or it is cut short ({error}).") from error
    except Exception as error:
        # Whatever goes wrong in making a model of a file, it is the file that is wrong.
        raise ModelFileError(f"{path} is damaged: its contents do not fit its header ({error}).") from error


def class_of(header: dict[str, Any]) -> Any:
    """Return the class that a header names: a public one, or one that the user has named; a file can name no other."""
    name = header["class"]
    named = registry.saved_class(name)
    if named is None:
        raise ModelFileError(
            f"The file holds a model of the class {name!r:.80}, which is not known here. If it is yours, name it "
            "before loading: labelrace.register_model(name, Class), or 'labelrace --model module:Class …' in the "
            "command. A file imports nothing by itself."
        )
    if not hasattr(named, "from_file"):
        raise ValueError(f"{name!r} cannot be loaded")
    return named


def unpack(cls: type, header: dict[str, Any], tensors: dict[str, Array]) -> Any:
    """Make a classifier of the header and put the arrays into its state."""
    parameters = {name: _decode(value, tensors) for name, value in header["parameters"].items()}
    # The names that were given are mostly those that are known, and then the same objects.
    is_given = header["parameters"].get("label_names") == header["label_names"]
    label_names = parameters.get("label_names") if is_given else _decode(header["label_names"], tensors)
    feature_names = _decode(header["feature_names"], tensors)
    source = _decode(header.get("source"), tensors)
    # What has been decoded is there twice otherwise, while arrays are checked.
    for name in [name for name in tensors if name.endswith(".utf8")]:
        del tensors[name]
    model: Any = cls(**parameters)
    schema, seed = _schema(header, tensors["n_values"], feature_names, label_names), header["seed"]
    check_whole("seed", seed, 0)
    if "source" in header:
        model.source_ = _check_source(source, schema.n_features)
    algorithm = model._algorithm(seed)
    check_flag("is_successor", header["is_successor"])
    if header["is_successor"]:
        algorithm = algorithm.successor
    reader = StateReader(tensors, set(header["absent"]), header["parts"])
    sizes = Sizes(schema.kinds, schema.n_labels, algorithm)
    state = reader.read(algorithm.state_type, sizes, algorithm.field_types())
    model._fitted = Fitted(algorithm, schema, state, seed, model.get_params(deep=False))
    return model


def _schema(
    header: dict[str, Any], n_values: Array, feature_names: list[str] | None, label_names: list[str] | None
) -> Schema:
    """Read what a file says of labels and features."""
    n_labels = header["n_labels"]
    check_whole("n_labels", n_labels, 1)
    limits.LABELS.check(n_labels, "The model")
    check_flag("sparse_labels", header["sparse_labels"])
    if n_values.ndim != 1 or not len(n_values) or (n_values < 0).any():
        raise ValueError("n_values does not tell what the features are")
    limits.VALUES.check(int(n_values.max()), "The model")
    label_dtype = np.dtype(header["label_dtype"])
    if label_dtype.kind not in "biuf":
        raise ValueError(f"labels cannot be of type {label_dtype}")
    return Schema(
        FeatureKinds(n_values.astype(np.intp, casting="same_kind")),
        _as_names(feature_names, len(n_values)),
        n_labels,
        _as_names(label_names, n_labels),
        header["sparse_labels"],
        label_dtype,
    )


def _check_source(source: Any, n_features: int) -> dict[str, Any]:
    """Refuse what cannot be the names and nominal values of the file that a model learned."""
    names, texts = source["feature_names"], source["nominal_values"]
    columns = [int(column) for column in texts]
    lists = [names, *texts.values()]
    if (
        len(names) != n_features
        or not all(0 <= column < n_features for column in columns)
        or not all(isinstance(one, list) and all(isinstance(text, str) for text in one) for one in lists)
    ):
        raise ValueError("its source is not that of its features")
    return dict(source)


def _as_names(names: list[str] | None, count: int) -> Array | None:
    if names is None:
        return None
    if len(names) != count or not all(isinstance(name, str) for name in names) or not _are_distinct(names):
        raise ValueError(f"there are not {count} names")
    return naming.as_array(names)


def _are_distinct(names: list[str]) -> bool:
    """Return whether no name is there twice: by hashes, which take a fifth of a set's memory, while these differ."""
    hashes = np.fromiter(map(hash, names), np.int64, len(names))
    hashes.sort()
    return bool((hashes[1:] != hashes[:-1]).all()) or len(set(names)) == len(names)


def _flatten(state: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield what a state holds, by path: arrays and tables, None where it has none, and how many parts a tuple has."""
    for name, value in state._asdict().items():
        own_path = f"{path}.{name}"
        if isinstance(value, FeatureKinds):
            yield own_path, value.n_values
        elif hasattr(value, "_asdict"):
            yield from _flatten(value, own_path)
        elif isinstance(value, tuple):
            yield own_path, len(value)
            for number, part in enumerate(value):
                if not hasattr(part, "_asdict"):
                    raise ValueError(
                        f"A model with {own_path} of {type(part).__name__} cannot be saved: only arrays are written, "
                        "never pickles. Use one of labelrace's own learners."
                    )
                yield from _flatten(part, f"{own_path}.{number}")
        else:
            yield own_path, value if value is None or model_file.has_parts(value) else np.asarray(value)


# --- Parameters and names ---------------------------------------------------------------------------------------------


def _encode(path: str, value: Any, tensors: dict[str, Array]) -> Any:
    """Turn a parameter, or names, into JSON; arrays and lists of text go to the tensors, under its path."""
    if isinstance(value, _Path):
        return {"names": str(value)}
    if isinstance(value, CategoricalMask) and value.n_values is not None:
        tensors[path] = value.n_values
        return {"categorical": path}
    if dataclasses.is_dataclass(value) and type(value) is registry.learner_class(type(value).__name__):
        return {"bank": type(value).__name__, "settings": dataclasses.asdict(value)}  # type: ignore[arg-type]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.dtype.str[1:] in model_file.TYPES:
        tensors[path] = value
        return {"array": path}
    if hasattr(value, "to_numpy"):
        return _encode(path, value.to_numpy(), tensors)
    if isinstance(value, (list, tuple, range, np.ndarray)):
        if len(value) and all(isinstance(item, str) for item in value):
            tensors.update(pack_names(path, value))
            return {"names": path}
        return {"list": [_encode(f"{path}.{i}", item, tensors) for i, item in enumerate(value)]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _encode(f"{path}.{key}", item, tensors) for key, item in value.items()}}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        # It has been used: what was drawn is in the state.
        return None
    raise ValueError(f"{path}={value!r} cannot be saved: use numbers, text, arrays or labelrace's own learners.")


def pack_names(path: str, names: Any) -> dict[str, Array]:
    """Write text as its bytes, one name behind the other, and how many each has; the JSON header has its limits."""
    text = "".join(names)
    size = len if text.isascii() else lambda name: len(name.encode("utf-8", "surrogatepass"))
    utf8 = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
    sizes = np.fromiter(map(size, names), np.int64, len(names))
    return {f"{path}.utf8": utf8, f"{path}.sizes": sizes.astype(np.min_scalar_type(int(sizes.max(initial=0))))}


def _decode(value: Any, tensors: dict[str, Array]) -> Any:
    """Turn JSON back into a parameter, or names."""
    if not isinstance(value, dict):
        return value
    if "categorical" in value:
        return CategoricalMask(tensors[value["categorical"]])
    if "bank" in value:
        return registry.learner_class(value["bank"])(**value["settings"])
    if "array" in value:
        return tensors[value["array"]]
    if "names" in value:
        return unpack_names(value["names"], tensors)
    if "dict" in value:
        return {key: _decode(item, tensors) for key, item in value["dict"].items()}
    return [_decode(item, tensors) for item in value["list"]]


def unpack_names(path: str, tensors: dict[str, Array]) -> list[str]:
    """Read what `pack_names` wrote."""
    utf8, sizes = tensors[f"{path}.utf8"], tensors[f"{path}.sizes"]
    text = utf8.astype(np.uint8, casting="no", copy=False).data
    if sizes.dtype.kind != "u" or sizes.sum(dtype=np.int64) != len(text):
        raise ValueError("the sizes of names do not fit their text")
    stops = itertools.accumulate(map(int, sizes), initial=0)
    return [str(text[start:stop], "utf-8", "surrogatepass") for start, stop in itertools.pairwise(stops)]
