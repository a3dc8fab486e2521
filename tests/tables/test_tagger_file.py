"""Weights in little room: what is kept, when it is unpacked, and what a tagger saved so still knows."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import labelrace
from labelrace import Tagger
from labelrace.base import model_file
from labelrace.exceptions import ModelFileError
from labelrace.linear.versioned_rows import VersionedRows
from labelrace.measures import evaluate
from labelrace.streams.demo import demo_tickets
from labelrace.tables import tagger_file


@pytest.fixture(scope="module")
def weights():
    rng = np.random.default_rng(0)
    # Sizes over many orders of magnitude, as weights have them; a row of zeros, and a tag that never was.
    made = (rng.normal(size=(600, 37)) * np.exp(3 * rng.normal(size=(600, 37)))).astype(np.float32)
    made[5], made[:, 7] = 0.0, 0.0
    return made


def test_a_quarter_is_kept_and_the_rest_has_its_mean(weights):
    packed = tagger_file.pack(weights)
    again = np.asarray(tagger_file.table_of(packed, 37))
    kept = np.abs(weights) >= tagger_file._least_kept(weights, None, np.zeros(len(weights), bool))
    assert 0.2 < kept.mean() <= 0.25
    assert sum(part.nbytes for part in packed) < 0.8 * weights.size
    np.testing.assert_allclose(np.where(kept, 0, again).sum(axis=1), np.where(kept, 0, weights).sum(axis=1), rtol=1e-4)
    # A level of a root is off by half a 127th at most.
    largest = np.abs(weights).max(axis=1, keepdims=True)
    bound = np.sqrt(np.abs(weights) / np.where(largest > 0, largest, 1)) / 127 + 1 / 127**2
    assert (np.abs(again - weights)[kept] <= (1.001 * bound * largest)[kept]).all()


def test_rows_are_unpacked_when_they_are_asked_for(weights):
    packed, asked = tagger_file.pack(weights), []
    whole = np.asarray(tagger_file.table_of(packed, 37))

    def fill(places):
        asked.extend(places.tolist())
        return whole[places]

    table, plain = VersionedRows.filled_by(fill, whole.shape, np.float32), VersionedRows.of(whole)
    Z = scipy.sparse.csr_array(([1.0, 2.0, 3.0], [3, 9, 3], [0, 2, 3]), shape=(2, 600))
    np.testing.assert_array_equal(table.times(Z), plain.times(Z))
    assert asked == [3, 9]
    changed, expected = (one.grown(700).replaced(np.array([9, 20, 650]), np.ones((3, 37))) for one in (table, plain))
    assert asked == [3, 9, 20]
    np.testing.assert_array_equal(changed.rows(np.array([20, 21, 650])), expected.rows(np.array([20, 21, 650])))
    np.testing.assert_array_equal(np.asarray(changed), np.asarray(expected))
    # The version before is what it was.
    np.testing.assert_array_equal(np.asarray(table), whole)
    assert sorted(asked) == list(range(600))


def test_a_tagger_saved_so_tags_as_before_and_goes_on_learning(tmp_path, monkeypatch):
    rows = demo_tickets(1500)
    tagger = Tagger(tags="tags", random_state=0).fit(rows[:1000])
    tagger.save(tmp_path / "exact")
    monkeypatch.setattr(tagger_file, "EXACT_BYTES", 0)
    tagger.save(tmp_path / "packed")
    assert (tmp_path / "packed").stat().st_size < (tmp_path / "exact").stat().st_size
    again = labelrace.load(tmp_path / "packed")
    assert isinstance(again.model_._fitted.state.learners.weights, VersionedRows)
    assert again.predict_top(rows[1000:1010], 1)[0][0][0] == tagger.predict_top(rows[1000:1010], 1)[0][0][0]
    assert again.score(rows[1000:]) == pytest.approx(tagger.score(rows[1000:]), abs=0.03)
    for one in (tagger, again):
        one.partial_fit(rows[1000:1250])
    truth = [set(row["tags"]) for row in rows[1250:]]
    f1 = [evaluate(truth, one.predict(rows[1250:]), measures="example_f1")["example_f1"] for one in (tagger, again)]
    assert f1[0] == pytest.approx(f1[1], abs=0.03)
    again.save(tmp_path / "again")
    assert labelrace.load(tmp_path / "again").n_rows_ == 1250


def test_rows_that_were_not_changed_are_written_as_they_were(weights, monkeypatch):
    monkeypatch.setattr(tagger_file, "_ROWS", 64)
    packed = tagger_file.pack(weights)
    table = tagger_file.table_of(packed, 37)
    # Rows that were read, and rows of a version that is not saved, are as they were.
    table.rows(np.arange(100))
    for one, two in zip(tagger_file.pack(table), packed, strict=True):
        np.testing.assert_array_equal(one, two)
    changed = table.grown(610).replaced(np.array([3, 70, 605]), np.full((3, 37), 9.0, np.float32))
    before, after = (np.asarray(tagger_file.table_of(tagger_file.pack(one), 37)) for one in (table, changed))
    whole, same = np.asarray(tagger_file.table_of(packed, 37)), np.delete(np.arange(600), [3, 70])
    np.testing.assert_array_equal(after[same], whole[same])
    np.testing.assert_array_equal(before[same], whole[same])
    np.testing.assert_array_equal(after[[3, 70, 605]], 9.0)
    assert not after[[600, 609]].any()
    # The rows of the older version that the newer one has changed are packed again.
    np.testing.assert_allclose(before[[3, 70]], whole[[3, 70]], atol=0.02 * np.abs(whole[[3, 70]]).max())


def test_packing_part_by_part_is_packing_at_once(weights, monkeypatch):
    at_once = tagger_file.pack(weights)
    monkeypatch.setattr(tagger_file, "_ROWS", 7)
    for one, two in zip(tagger_file.pack(VersionedRows.of(weights)), at_once, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_loaded_tagger_is_saved_to_the_same_bytes_without_unpacking_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tagger_file, "EXACT_BYTES", 0)
    Tagger(tags="tags", random_state=0).fit(demo_tickets(300)).save(tmp_path / "one")
    again = labelrace.load(tmp_path / "one")
    store = again.model_._fitted.state.learners.weights._store
    again.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert store._is_unfilled.all()
    again.predict(demo_tickets(50))
    again.save(tmp_path / "three")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()
    assert not store._is_unfilled.all()


@pytest.mark.parametrize("part", ["packed.levels", "packed.is_kept", "packed.others"])
def test_packed_weights_that_do_not_fit_are_refused(tmp_path, monkeypatch, part):
    monkeypatch.setattr(tagger_file, "EXACT_BYTES", 0)
    Tagger(tags="tags", random_state=0).fit(demo_tickets(300)).save(tmp_path / "good")
    header, tensors = model_file.read(tmp_path / "good")
    model_file.write(tmp_path / "bad", header, tensors | {part: tensors[part][:-1]})
    with pytest.raises(ModelFileError, match="its weights do not fit"):
        labelrace.load(tmp_path / "bad")


def test_the_order_of_sets_does_not_show_in_a_file(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in demo_tickets(120)))
    command = [sys.executable, "-m", "labelrace", "train", rows, "--tags", "tags", "--seed", "0", "--batch-size", "60"]
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([*command, "-o", tmp_path / seed], check=True, capture_output=True, env=environment)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
