"""Embedding models in a folder: what they give, that they are known again, and that those that hurt are noticed."""

from __future__ import annotations

import shutil
import sys

import numpy as np
import pytest
from helpers.embedding import WORDS, make_folder, vectors

import labelrace
from labelrace import Tagger
from labelrace.exceptions import ModelFileError
from labelrace.streams.demo import demo_tickets
from labelrace.tables import embedding, trial

TOPICS = {"oven": "oven hot door", "toaster": "bread toaster hot", "bill": "invoice pay money"}


def tickets(n, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        tag = rng.choice(list(TOPICS))
        rows.append({"title": f"my {' '.join(rng.choice(TOPICS[tag].split(), 2))} please", "tags": [str(tag)]})
    return rows


def mean_of(text, table):
    """Compute the mean of the vectors of a text's words, one word at a time."""
    rows = [table[WORDS.index(word) + 1 if word in WORDS else 0] for word in text.split()]
    return sum(rows) / len(rows) if rows else np.zeros(table.shape[1])


def test_a_text_is_the_mean_of_its_tokens_whatever_is_beside_it(tmp_path):
    table = vectors()
    encode = embedding.open_folder(make_folder(tmp_path / "m", table))
    texts = ["the oven is hot", "my bread", "", "pay", "pay the quark", "my oven", " ".join(["oven"] * 300)]
    expected = np.array([mean_of(text, table) for text in texts])
    np.testing.assert_allclose(encode(texts), expected, atol=1e-6)
    for text, row in zip(texts, expected, strict=True):
        np.testing.assert_allclose(encode([text])[0], row, atol=1e-6)
    # Of long texts the first tokens count.
    long = embedding.open_folder(tmp_path / "m")([" ".join(["oven"] * 256 + ["pay"] * 300)])
    np.testing.assert_allclose(long[0], mean_of("oven", table), atol=1e-6)


def test_an_output_for_each_text_is_taken_as_it_is_and_other_inputs_are_refused(tmp_path):
    table, inputs = vectors(), ("input_ids", "attention_mask", "token_type_ids")
    encode = embedding.open_folder(make_folder(tmp_path / "m", table, pooled=True, inputs=inputs))
    np.testing.assert_allclose(encode(["my oven is hot"])[0], mean_of("my oven is hot", table), atol=1e-6)
    with pytest.raises(ValueError, match=r"must have no other inputs than input_ids, .* got 'pixels'"):
        embedding.open_folder(make_folder(tmp_path / "other", table, inputs=("input_ids", "pixels")))
    (tmp_path / "m" / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ValueError, match="must hold a model that onnxruntime and tokenizers can read"):
        embedding.open_folder(tmp_path / "m")


def test_texts_are_computed_once_and_not_all_are_remembered(tmp_path, monkeypatch):
    encode, counted = embedding.open_folder(make_folder(tmp_path / "m", vectors(1))), []
    run = encode._run
    monkeypatch.setattr(encode, "_run", lambda tokens: [counted.append(len(tokens)), run(tokens)][1])
    first = encode(["my oven", "my door", "my oven"])
    assert sum(counted) == 2
    np.testing.assert_array_equal(encode(["my oven"])[0], first[0])
    assert sum(counted) == 2
    monkeypatch.setattr(embedding, "_CACHE_BYTES", 5 * first[0].nbytes)
    encode([f"my {word}" for word in WORDS])
    assert len(encode._known) == 5
    np.testing.assert_array_equal(encode(["my oven"])[0], first[0])


def test_the_model_is_asked_for_again_and_another_is_refused(tmp_path):
    folder = make_folder(tmp_path / "m", vectors())
    tagger = Tagger("tags", embed={"title": folder}, random_state=0).partial_fit(tickets(100))
    assert str(tagger.columns_[0]) == "text, with its encoder"
    expected, path = tagger.predict_top(tickets(20, 1), 3), tmp_path / "a.labelrace"
    tagger.save(path)
    assert labelrace.load(path).predict_top(tickets(20, 1), 3) == expected
    shutil.move(folder, tmp_path / "moved")
    with pytest.raises(ModelFileError, match=r"column 'title' .* not there: .*embed=\{'title': FOLDER\}.*--embed"):
        labelrace.load(path)
    again = labelrace.load(path, embed={"title": tmp_path / "moved"})
    assert again.predict_top(tickets(20, 1), 3) == expected
    again.save(path)
    assert labelrace.load(path).predict_top(tickets(20, 1), 3) == expected
    other = make_folder(tmp_path / "other", vectors(7))
    with pytest.raises(ModelFileError, match="another embedding model than that in"):
        labelrace.load(path, embed={"title": other})
    with pytest.raises(ModelFileError, match="got 'body', which has none"):
        labelrace.load(path, embed={"body": other})
    with pytest.raises(FileNotFoundError, match=r"which has no model\.onnx"):
        Tagger("tags", embed={"title": tmp_path}).partial_fit(tickets(30))
    # The folder's files were replaced while the tagger is at work.
    again = labelrace.load(path)
    shutil.copy(other / "model.onnx", tmp_path / "moved")
    with pytest.raises(ValueError, match="must be the one that was learned with, got another"):
        again.predict(tickets(20, 1))


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    for name in embedding.FILES:
        (tmp_path / name).write_text("x")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"pip install 'labelrace\[embed\]'"):
        Tagger("tags", embed={"title": tmp_path}).partial_fit(tickets(30))


# --- Whether encoders help --------------------------------------------------------------------------------------------

ROWS = demo_tickets(2400, seed=3)


def noise(texts):
    """Give a text numbers that say nothing."""
    return [np.random.default_rng(sum(map(ord, text)) * len(text)).normal(size=200) for text in texts]


def oracle():
    """Make an encoder that knows the tags."""
    tags = sorted({tag for row in ROWS for tag in row["tags"]})
    known = {row["body"]: [float(tag in row["tags"]) for tag in tags] for row in ROWS}
    return lambda texts: [known[text] for text in texts]


def test_an_encoder_that_hurts_is_turned_off_and_one_that_helps_stays(monkeypatch):
    monkeypatch.setattr(trial, "DECIDED_AFTER", 1000)
    taggers = {
        name: Tagger("tags", encoders=encoder and {"body": encoder}, random_state=0).partial_fit(ROWS[:1600])
        for name, encoder in {"none": None, "noise": noise, "oracle": oracle()}.items()
    }
    kinds = {name: str(tagger.columns_[2]) for name, tagger in taggers.items()}
    assert kinds["noise"] == "text, without its encoder, which does not help"
    assert kinds["oracle"] == "text, with its encoder"
    assert all(tagger._known.trial is None for tagger in taggers.values())
    # The model that was kept has read the same words, with others between them in the matrix.
    scores = {name: tagger.score(ROWS[1600:]) for name, tagger in taggers.items()}
    assert scores["noise"] == pytest.approx(scores["none"], abs=0.003)
    assert scores["oracle"] > scores["none"] + 0.1


def test_a_trial_is_saved_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "DECIDED_AFTER", 1000)
    tagger = Tagger("tags", encoders={"body": noise}, random_state=0).partial_fit(ROWS[:700])
    tagger.rename_labels({"billing": "money"})
    assert tagger._known.trial.n_rows == 600
    tagger.save(tmp_path / "a.labelrace")
    again = labelrace.load(tmp_path / "a.labelrace", encoders={"body": noise})
    for one in (tagger, again):
        one.partial_fit(ROWS[700:1700])
    assert again.predict_top(ROWS[1700:1800], 5) == tagger.predict_top(ROWS[1700:1800], 5)
    assert again.columns_ == tagger.columns_
    assert not again.columns_[2].uses_encoder
    again.save(tmp_path / "b.labelrace")
    labelrace.load(tmp_path / "b.labelrace", encoders={"body": noise}).predict(ROWS[1700:1800])


def test_taggers_on_trial_are_merged(monkeypatch):
    one, other = (
        Tagger("tags", encoders={"body": noise}, random_state=0).partial_fit(ROWS[i : i + 800]) for i in (0, 800)
    )
    merged = one.merge(other)
    assert merged._known.trial.n_rows == 1400
    assert merged.n_rows_ == 1600
    alone = Tagger("tags", random_state=0).partial_fit(ROWS[:1600])
    assert merged.score(ROWS[1600:]) > alone.score(ROWS[1600:]) - 0.05
