"""Tags that come later than predictions: rows of tables are kept until then, saved, and learned once."""

from __future__ import annotations

import copy
import json
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers import interrupts
from scipy.sparse import csr_array
from typer.testing import CliRunner

import labelrace
from labelrace import DelayedLabels, Tagger
from labelrace.cli.main import app
from labelrace.exceptions import ModelFileError, UnknownRowError

WORDS = ["oven", "toaster", "kettle", "grill", "fridge"]


def rows_of(start, stop):
    return [
        {"id": f"T-{i}", "body": f"the {WORDS[i % 5]} is {i % 3}", "price": float(i % 7), "tags": WORDS[i % 5]}
        for i in range(start, stop)
    ]


ROWS, LATER = rows_of(0, 40), rows_of(40, 60)
UNTAGGED = [{name: row[name] for name in ("id", "body", "price")} for row in LATER]
IDS = [row["id"] for row in LATER]
TAGS = [{row["tags"]} for row in LATER]
TABLES = {"dicts": list, "pandas": pd.DataFrame, "arrow": pa.Table.from_pylist}


def tagger_of(**parameters):
    return Tagger("tags", id="id", model="obr", min_rows=1, random_state=0, **parameters).partial_fit(ROWS)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("batch_size", [3, 500])
def test_learning_later_is_learning(kind, batch_size):
    make = TABLES[kind]
    tagger = tagger_of(batch_size=batch_size)
    prompt, late = copy.deepcopy(tagger), DelayedLabels(tagger)
    predicted = late.predict(make(UNTAGGED[:10]))
    assert predicted == prompt.predict(UNTAGGED[:10])
    assert late.predict_top(make(UNTAGGED[10:]), k=2) == prompt.predict_top(UNTAGGED[10:], 2)
    assert late.pending_ids == IDS
    # Neither all of them, nor in their order, and of both batches.
    chosen = [17, 2, 9, 11, 3]
    late.learn([IDS[i] for i in chosen], [TAGS[i] for i in chosen])
    prompt.partial_fit([UNTAGGED[i] for i in chosen], [TAGS[i] for i in chosen])
    assert tagger.n_rows_ == prompt.n_rows_ == 45
    assert tagger.predict_proba(UNTAGGED) == prompt.predict_proba(UNTAGGED)
    assert late.pending_ids == [one for i, one in enumerate(IDS) if i not in chosen]
    with pytest.raises(UnknownRowError, match="'T-57'"):
        late.learn(["T-57"], [{"oven"}])


def test_a_table_with_its_tags_does_not_keep_them():
    late = DelayedLabels(tagger_of())
    late.predict(LATER)
    late.learn(IDS[:1], [{"new"}])
    assert late.model.tags_["new"].rows == 1


def test_ids():
    numbered = [{**row, "id": number} for number, row in enumerate(ROWS)]
    late = DelayedLabels(Tagger("tags", id="id", model="obr", random_state=0).partial_fit(numbered))
    late.predict(pd.DataFrame([{**UNTAGGED[0], "id": 7}, {**UNTAGGED[1], "id": 8}]))
    assert late.pending_ids == [7, 8]
    late.predict(UNTAGGED[2:3], ids=[("a", 1)])
    assert late.pending_ids == [7, 8, ("a", 1)]
    late.learn([8, ("a", 1)], [{"oven"}, {"grill"}])
    with pytest.raises(ValueError, match="ids must be given unless the table has one column of identifiers, got none"):
        late.predict([{"body": "the oven", "price": 1.0}])
    with pytest.raises(ValueError, match="cells of the column 'id' are empty"):
        late.predict([{"id": 1, "body": "the oven", "price": 1.0}, {"id": None, "body": "the oven", "price": 1.0}])
    numbers = DelayedLabels(labelrace.make_model("obr").fit(np.eye(2), np.eye(2)))
    with pytest.raises(ValueError, match="only tables have a column of ids"):
        numbers.predict(np.eye(2))


def test_rows_whose_tags_are_still_unknown_stay_pending():
    late = DelayedLabels(tagger_of())
    late.predict(UNTAGGED)
    late.learn(IDS[:3], [{"oven"}, None, {"grill"}])
    assert late.pending_ids == [IDS[1], *IDS[3:]]
    late.model.untagged = "none"
    late.learn(IDS[1:2], [None])
    assert late.pending_ids == IDS[3:]


def test_wrong_tags_change_nothing():
    late = DelayedLabels(tagger_of(batch_size=2))
    late.predict(UNTAGGED)
    with pytest.raises(ValueError, match="the same number of rows, got 3 and 2"):
        late.learn(IDS[:3], TAGS[:2])
    assert late.pending_ids == IDS
    assert late.model.n_rows_ == 40


def test_what_was_given_is_not_kept_hold_of():
    prices, parts = np.arange(20.0), [["a", "b"] for _ in IDS]
    late = DelayedLabels(tagger_of())
    with pytest.warns(UserWarning, match="new are ignored"):
        late.predict({"id": IDS, "body": [row["body"] for row in UNTAGGED], "price": prices, "parts": parts})
    prices += 1000
    parts[0].append("c")
    [kept], _ = late._rows.find(IDS)
    assert kept.columns["price"].tolist() == list(range(20))
    assert kept.columns["parts"][0] == ["a", "b"]


@pytest.mark.parametrize("batch_size", [2, 500])
def test_a_row_is_learned_or_pending_after_an_interrupt(batch_size):
    tagger = tagger_of(batch_size=batch_size)
    start = tagger._known

    def make():
        tagger._known = start
        late = DelayedLabels(tagger)
        late.predict(UNTAGGED[:4])
        return late

    def check(late):
        assert tagger.n_rows_ - 40 + len(late.pending_ids) == 4

    line, some = 1, 0
    while True:
        late = make()
        was_interrupted = interrupts.interrupted_at(line, lambda late=late: late.learn(IDS[:4], TAGS[:4]))
        check(late)
        some += 0 < len(late.pending_ids) < 4
        if not was_interrupted:
            break
        # Not at each of thousands of lines, which would take minutes.
        line += 97
    assert line > 200
    assert bool(some) == (batch_size == 2)


class TestFiles:
    """What is saved is loaded, and damaged files are refused."""

    def test_pending_rows_are_saved_and_loaded(self, tmp_path):
        late = DelayedLabels(tagger_of(), max_rows=30)
        late.predict(UNTAGGED[:12])
        late.predict(UNTAGGED[12:], ids=[("b", number) for number in range(8)])
        late.learn(IDS[:2], TAGS[:2])
        late.save(tmp_path / "late.labelrace")
        loaded = labelrace.load(tmp_path / "late.labelrace")
        assert isinstance(loaded, DelayedLabels)
        assert (loaded.max_rows, loaded.pending_ids) == (30, late.pending_ids)
        for one in (late, loaded):
            one.learn([("b", 3), "T-45"], [{"oven"}, {"grill"}])
        assert loaded.model.predict_proba(UNTAGGED) == late.model.predict_proba(UNTAGGED)

    @pytest.mark.filterwarnings("ignore:Columns that are new")
    def test_all_kinds_of_cells(self, tmp_path):
        cells = {
            "when": np.datetime64("2026-01-02T03:04:05"), "day": date(2026, 1, 2), "at": datetime(2026, 1, 2, 3),
            "cost": Decimal("1.50"), "raw": b"\x00\xff", "parts": ["a", None, 2], "no": None, "is": True, "big": 2**70,
            "nan": float("nan"), "text": "ünï\n",
        }  # fmt: skip
        late = DelayedLabels(tagger_of())
        late.predict([{**UNTAGGED[0], **cells}, {**UNTAGGED[1], "when": "soon"}])
        late.predict(pd.DataFrame({"id": ["x"], "body": ["y"], "price": [1], "when": [pd.Timestamp("2026-05-06")]}))
        late.save(tmp_path / "late.labelrace")
        loaded = labelrace.load(tmp_path / "late.labelrace")
        for (ids, rows), (other_ids, others) in zip(late._rows.batches(), loaded._rows.batches(), strict=True):
            assert ids == other_ids
            assert repr(rows) == repr(others)

    @pytest.mark.parametrize("form", ["dense", "sparse", "frame", "dicts"])
    def test_rows_of_numbers(self, tmp_path, form):
        rng = np.random.default_rng(0)
        X = rng.random((30, 3))
        Y = (X > 0.5).astype(int)
        make = {
            "dense": np.asarray,
            "sparse": csr_array,
            "frame": lambda part: pd.DataFrame(part, columns=list("abc")),
            "dicts": lambda part: [dict(zip("abc", row, strict=True)) for row in part.tolist()],
        }[form]
        late = DelayedLabels(labelrace.make_model("obr").partial_fit(make(X[:20]), Y[:20]))
        late.predict(make(X[20:]), ids=range(10))
        late.save(tmp_path / "late.safetensors")
        loaded = labelrace.load(tmp_path / "late.safetensors")
        assert loaded.pending_ids == list(range(10))
        for one in (late, loaded):
            one.learn([3, 1], Y[[23, 21]])
        expected = late.model.decision_function(make(X))
        np.testing.assert_array_equal(loaded.model.decision_function(make(X)), expected)

    def test_the_command_takes_them_for_their_model(self, tmp_path):
        late = DelayedLabels(tagger_of())
        late.save(tmp_path / "late.labelrace")
        pd.DataFrame(UNTAGGED).to_csv(tmp_path / "rows.csv", index=False)
        done = CliRunner().invoke(app, ["predict", str(tmp_path / "late.labelrace"), str(tmp_path / "rows.csv")])
        assert [set(json.loads(line)["tags"]) for line in done.stdout.splitlines()] == late.model.predict(UNTAGGED)
        done = CliRunner().invoke(app, ["inspect", str(tmp_path / "late.labelrace"), "--json"])
        assert json.loads(done.stdout)["rows"] == 40

    def test_what_cannot_be_saved(self, tmp_path):
        late = DelayedLabels(tagger_of())
        late.predict(UNTAGGED[:1], ids=[frozenset("a")])
        with pytest.raises(ValueError, match="numbers, text or tuples of these to be saved"):
            late.save(tmp_path / "late.labelrace")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "damage",
        [
            lambda header: header["batches"][0]["ids"].pop(),
            lambda header: header["batches"][0]["ids"].__setitem__(1, header["batches"][0]["ids"][0]),
            lambda header: header["batches"][0]["rows"].update(n_rows=5),
            lambda header: header["batches"][0]["rows"]["columns"].update(body="numbers"),
            lambda header: header["batches"][0]["rows"]["columns"].update(body="pickle"),
            lambda header: header.update(max_rows=-1),
            lambda header: header["model"].update({"class": "DelayedLabels"}),
        ],
    )
    def test_damaged_files_are_refused(self, tmp_path, damage):
        from labelrace.base import model_file

        late = DelayedLabels(tagger_of())
        late.predict(UNTAGGED)
        header, tensors = late._pack()
        header = json.loads(json.dumps(header))
        damage(header)
        model_file.write(tmp_path / "late.labelrace", header, tensors)
        with pytest.raises(ModelFileError):
            labelrace.load(tmp_path / "late.labelrace")
