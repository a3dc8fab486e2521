"""A tiny embedding model of one's own: a table of vectors, one for each word."""

from __future__ import annotations

import numpy as np
import pytest

WORDS = ["the", "my", "is", "oven", "hot", "door", "bread", "toaster", "invoice", "pay", "money", "please"]


def make_folder(folder, vectors, *, pooled=False, inputs=("input_ids", "attention_mask")):
    """Write a model whose output is a vector for each token, or, pooled, their mean; needs the extra ``embed``."""
    reason = "the extra embed is not installed"
    onnx = pytest.importorskip("onnx", reason="onnx, which makes models, is not installed")
    pytest.importorskip("onnxruntime", reason=reason)
    tokenizers = pytest.importorskip("tokenizers", reason=reason)
    helper, types = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["tokens"])]
    if pooled:
        nodes.append(helper.make_node("ReduceMean", ["tokens"], ["rows"], axes=[1], keepdims=0))
    shape = ["n", vectors.shape[1]] if pooled else ["n", "t", vectors.shape[1]]
    graph = helper.make_graph(
        nodes,
        "words",
        [helper.make_tensor_value_info(name, types.INT64, ["n", "t"]) for name in inputs],
        [helper.make_tensor_value_info("rows" if pooled else "tokens", types.FLOAT, shape)],
        [onnx.numpy_helper.from_array(vectors.astype(np.float32), "table")],
    )
    # Versions that every supported onnxruntime reads.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    folder.mkdir(exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    known = {word: number for number, word in enumerate(["[UNK]", *WORDS])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def vectors(seed=0, width=6):
    """Draw a vector for each word, and one for all other words."""
    return np.random.default_rng(seed).normal(size=(len(WORDS) + 1, width))
