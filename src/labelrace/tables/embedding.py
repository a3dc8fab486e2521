"""Texts as points by a sentence embedding model in a folder: ``model.onnx`` and ``tokenizer.json``.

The model runs by onnxruntime, without the library it was trained with. Its output is a row for each text, or one for
each token, whose mean over the text is taken. Texts of the same number of tokens are computed together, so that none is
padded, and by one thread: the same texts give the same numbers. Texts that were seen lately are not computed again.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelrace.exceptions import ModelFileError
from labelrace.typing import Array

Singles = npt.NDArray[np.float32]

FILES = ("model.onnx", "tokenizer.json")
"""The files of an embedding model's folder."""

# Tokens from which on a text is cut off: most models have learned no longer ones.
_MAX_TOKENS = 256
# Texts that are computed at once, and the most bytes of texts that are remembered.
_BATCH, _CACHE_BYTES = 64, 1 << 25
# The inputs that a model may have, and the part of a tokenized text for each.
_INPUTS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
_EXTRA = "Embeddings need onnxruntime and tokenizers: pip install 'labelrace[embed]'."


class Embedding:
    """An encoder of texts; see `labelrace.tables.column_blocks.encode_block`."""

    def __init__(self, folder: str, digest: str) -> None:
        self.digest = digest
        self._folder = folder
        self._session, self._tokenizer = _open(folder)
        self._inputs = [one.name for one in self._session.get_inputs()]
        if unknown := [name for name in self._inputs if name not in _INPUTS]:
            raise ValueError(
                f"{Path(folder, FILES[0])} must have no other inputs than {', '.join(_INPUTS)}, got {unknown[0]!r}: "
                "export the model as one for sentence embeddings (feature extraction)."
            )
        self._known: OrderedDict[bytes, Singles] = OrderedDict()

    def __call__(self, texts: list[str]) -> Array:
        """Return a row for each text."""
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        # A snapshot, as other threads may remove rows meanwhile.
        found = {key: self._known.get(key) for key in keys}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if found[key] is None}
        computed = dict(zip(missing, self._compute(list(missing.values())), strict=True))
        rows: Any = {**found, **computed}
        self._remember(computed)
        return np.array([rows[key] for key in keys], dtype=np.float32)

    def __reduce__(self) -> tuple[Any, ...]:
        return open_folder, (self._folder,)

    def _remember(self, computed: Mapping[bytes, Singles]) -> None:
        """Keep further rows, and forget the oldest if there are too many."""
        self._known.update(computed)
        n_most = _CACHE_BYTES // max((row.nbytes for row in computed.values()), default=1)
        while len(self._known) > n_most:
            self._known.popitem(last=False)

    def _compute(self, texts: list[str]) -> list[Singles]:
        """Compute the rows of texts, those of the same number of tokens together."""
        tokens = self._tokenizer.encode_batch([text.encode("utf-8", "replace").decode() for text in texts])
        rows: list[Any] = [None] * len(texts)
        in_order = sorted(range(len(texts)), key=lambda i: len(tokens[i].ids))
        for _, group in groupby(in_order, key=lambda i: len(tokens[i].ids)):
            same = list(group)
            for start in range(0, len(same), _BATCH):
                some = same[start : start + _BATCH]
                for i, row in zip(some, self._run([tokens[i] for i in some]), strict=True):
                    rows[i] = row
        return rows

    def _run(self, tokens: list[Any]) -> Singles:
        """Compute the rows of texts of the same number of tokens."""
        # A text without tokens is one that is masked.
        shape = len(tokens), max(1, len(tokens[0].ids))
        parts = {name: np.zeros(shape, np.int64) for name in _INPUTS}
        for name, part in parts.items():
            part[:, : len(tokens[0].ids)] = [getattr(one, _INPUTS[name]) for one in tokens]
        output = np.asarray(self._session.run(None, {name: parts[name] for name in self._inputs})[0], dtype=np.float32)
        if output.ndim == 3:
            mask = parts["attention_mask"][:, :, None]
            output = (output * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)
        if output.ndim != 2:
            raise ValueError(
                f"An embedding model must give a row for each text or token, got an output of {output.ndim} axes: "
                "export it as one for sentence embeddings (feature extraction)."
            )
        return output.astype(np.float32, copy=False)


def _open(folder: str) -> tuple[Any, Any]:
    """Open the model and the tokenizer of a folder."""
    try:
        import onnxruntime
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ImportError(_EXTRA) from error
    options = onnxruntime.SessionOptions()
    # One thread adds up in one order.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model, tokenizer_file = (str(Path(folder, name)) for name in FILES)
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        tokenizer = Tokenizer.from_file(tokenizer_file)
    except Exception as error:
        # Both libraries raise types of their own for files that they cannot read.
        raise ValueError(
            f"{folder} must hold a model that onnxruntime and tokenizers can read, got: {error}"
        ) from error
    tokenizer.enable_truncation(_MAX_TOKENS)
    tokenizer.no_padding()
    return session, tokenizer


def digest_of(folder: str | os.PathLike[str]) -> str:
    """Compute the hash of a model and its tokenizer, which identifies them.

    Raises
    ------
    FileNotFoundError
        If the folder does not hold both.
    """
    total = hashlib.sha256()
    for name in FILES:
        path = Path(folder, name)
        if not path.is_file():
            raise FileNotFoundError(
                f"embed must name a folder with {' and '.join(FILES)}, got {os.fspath(folder)!r}, which has no {name}."
            )
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def open_folder(folder: str | os.PathLike[str]) -> Embedding:
    """Return the encoder of a folder; callers with the same files share it."""
    return _shared(os.fspath(folder), digest_of(folder))


@lru_cache(maxsize=8)
def _shared(folder: str, digest: str) -> Embedding:
    return Embedding(folder, digest)


def check_folders(digests: Mapping[str, str], folders: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, str]:
    """Find the folders of the embedding models that a saved tagger has learned with.

    Parameters
    ----------
    digests : dict from column to hash
        Of the models that the tagger has learned with.
    folders : dict from column to path
        Their folders at that time.
    given : dict from column to path
        Their folders now, as given by the user.

    Raises
    ------
    ModelFileError
        If a model is missing, or is another one.
    """
    if unknown := [column for column in given if column not in folders]:
        raise ModelFileError(
            f"embed must name columns with an embedding, got {unknown[0]!r}, which has none: leave it out."
        )
    found = {column: os.fspath(given.get(column, folder)) for column, folder in folders.items()}
    for column, digest in digests.items():
        where = f"labelrace.load(path, embed={{{column!r}: FOLDER}}), or --embed {column}=FOLDER in the command"
        try:
            is_same = digest_of(found[column]) == digest
        except OSError as error:
            raise ModelFileError(
                f"The tagger reads the column {column!r} with the embedding model in {found[column]!r}, which is not "
                f"there: say where it is, {where} ({error})"
            ) from error
        if not is_same:
            raise ModelFileError(
                f"The tagger reads the column {column!r} with another embedding model than that in {found[column]!r}: "
                f"give the folder of the one that it was trained with, {where}."
            )
    return found
