"""The kinds of columns, as detected from their cells."""

from __future__ import annotations

import json
from inspect import signature

import numpy as np
import pytest

from labelrace import Tagger
from labelrace.tables.column_blocks import Moments, make_block
from labelrace.tables.column_kinds import KINDS, KINDS_BY_PARAMETER, LEFT_OUT, Column, column_of, find_separator
from labelrace.tables.features import ColumnParameters

rng = np.random.default_rng(0)
WORDS = [f"word{i}" for i in range(300)]


def sentences(n, low, high):
    return [" ".join(rng.choice(WORDS, rng.integers(low, high))) for _ in range(n)]


CASES = {
    "long texts": ("body", sentences(50, 20, 60), "text"),
    "titles": ("title", sentences(50, 2, 8), "text"),
    "texts without spaces": (
        "body",
        ["".join(chr(c) for c in rng.integers(0x4E00, 0x9000, 60)) for _ in range(30)],
        "text",
    ),
    "few texts": ("body", ["The oven is too hot", "It does not heat"], "text"),
    "values": ("product", ["oven", "toaster", "grill"] * 20, "category"),
    "values of several words": ("team", ["customer service", "third line support team"] * 30, "category"),
    "codes that come again": ("zip", ["01067", "80331", "10115"] * 20, "category"),
    "numbers of things that come again": ("customer_id", [3, 7, 3, 9] * 10, "category"),
    "numbers": ("price", rng.normal(size=50), "number"),
    "numbers as texts": ("price", [f"{x:.2f}" for x in rng.normal(size=50)], "number"),
    "whole numbers": ("age", [str(x) for x in rng.integers(0, 1000, 50)], "number"),
    "numbers and an error": (
        "price",
        ["n/a", "oops", *map(str, range(100, 0, -2)), *map(str, range(1, 100, 2))],
        "number",
    ),
    "prices": ("fee", [f"${x:,.2f}" for x in rng.uniform(1, 5000, 50)], "number"),
    "shares": ("share", [f"{x}%" for x in rng.integers(0, 1000, 50)], "number"),
    "thousands": ("views", [f"{x:,}" for x in rng.integers(0, 10**6, 50)], "number"),
    **{
        f"counts of {name}": (name, rng.integers(0, 60, 600).astype(float), "number")
        for name in ("paid", "bid", "valid", "humid", "idle_minutes", "idea_score", "Grid")
    },
    **{
        f"numbers of agents, {name}": (name, rng.integers(0, 50, 600).astype(float), "category")
        for name in ("agent_id", "userId", "uid", "ID", "id_of_agent", "Order No")
    },
    "rows counted": ("row", np.arange(100.0), "identifier"),
    "ids by name": ("id", [17.0, 3.0, 12.0], "identifier"),
    "codes": ("ticket", [f"T-{i * 7}" for i in range(40)], "identifier"),
    "few codes": ("ticket", ["T-1", "T-2"], "identifier"),
    "uuids": ("key", [f"{rng.integers(2**60):015x}" for _ in range(40)], "identifier"),
    "mail addresses": ("from", [f"a{i}@example.org" for i in range(40)], "identifier"),
    "dates": ("created", ["2024-01-31", "2024-02-01T10:00:00Z", ""], "date"),
    "dates, day first": ("created", ["31/01/2024", "01/02/2024"], "date"),
    "dates, month first": ("created", ["01/31/2024", "02/01/2024"], "date"),
    "dates of their own type": ("created", np.array(["2024-01-31"], "datetime64[s]"), "date"),
    "truths": ("urgent", [True, False], "boolean"),
    "truths as texts": ("urgent", ["yes", "no", "yes", ""], "boolean"),
    "lists": ("parts", [["a", "b"], []], "list"),
    "JSON lists": ("parts", ['["a", "b"]', "[]", '["c"]'], "list"),
    "lists as Python writes them": ("parts", ["['a', 'b']", "[]", "['c']"], "list"),
    "lists with semicolons": ("parts", ["door;lamp", "lamp", "door;fan"] * 10, "list"),
    "nothing": ("notes", ["", None], "empty"),
}


@pytest.mark.parametrize("case", CASES)
def test_kinds(case):
    name, cells, kind = CASES[case]
    assert column_of(name, cells).kind == kind


def test_what_is_said_of_a_column():
    assert str(column_of("created", ["2024-01-31"])) == "date"
    assert column_of("created", ["31/01/2024 10:30"]).pattern == "%d/%m/%Y %H:%M"
    assert column_of("created", ["2024-01-31 10:30"]).has_time
    assert not column_of("created", ["2024-01-31"]).has_time
    assert str(column_of("parts", ["door;lamp", "lamp;fan"])) == "list (separated by ';')"


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["a;b", "c"], ";"),
        (["a, b", "c"], ","),
        (["a|b"], "|"),
        (["baking cookies texture", "oven cooking-time bacon", "eggs"], " "),
        (["a b", "b c", "a c", "c", "a b c"], " "),
        (["login issue", "billing issue"], None),
        (["a", "b"], None),
        (['["a", "b"]'], None),
        ([], None),
    ],
)
def test_separators(cells, separator):
    assert find_separator(cells) == separator


def test_every_kind_has_a_block_or_is_left_out():
    for kind in set(KINDS) - set(LEFT_OUT):
        block, wrong = make_block(Column("a", kind), [None, None], Moments())
        assert (block.matrix.shape[0], wrong) == (2, [])


def test_columns_are_named_by_parameters():
    assert set(KINDS_BY_PARAMETER) <= set(signature(ColumnParameters).parameters)
    assert set(KINDS_BY_PARAMETER.values()) <= set(KINDS)


def parts(n, form, seed):
    rng, rows = np.random.default_rng(seed), []
    for _ in range(n):
        names = sorted(rng.choice(["door", "lamp", "fan", "grill"], rng.integers(1, 3), replace=False).tolist())
        rows.append({"parts": form(names), "tags": [f"tag-{name}" for name in names]})
    return rows


def test_a_column_learned_from_lists_takes_texts_when_their_separator_is_known():
    tagger = Tagger("tags", random_state=0).partial_fit(parts(500, list, 0))
    assert tagger.columns_[0].kind == "list"
    assert tagger.columns_[0].separator is None
    for form in (list, set, json.dumps, str):
        assert tagger.score(parts(200, form, 1)) > 0.99
    for form in (";".join, ", ".join, " ".join):
        with pytest.raises(ValueError, match=r"'parts' must hold lists, .* got the text '"):
            tagger.predict(parts(200, form, 1))
    assert tagger.predict([{"parts": "door"}]) == [{"tag-door"}]
    predicted = tagger.prequential_fit(texts := parts(100, ";".join, 2))
    assert predicted == [set(row["tags"]) for row in texts]
    assert tagger.columns_[0].separator == ";"
    lists = Tagger("tags", random_state=0).partial_fit(parts(500, list, 0)).partial_fit(parts(100, list, 2))
    for form in (list, ";".join, json.dumps):
        assert tagger.predict_top(parts(200, form, 1), 4) == lists.predict_top(parts(200, list, 1), 4)
    known = Tagger("tags", model="obr").partial_fit(parts(500, list, 0))
    assert known.merge(known.emptied().partial_fit(parts(100, ";".join, 2))).columns_[0].separator == ";"
