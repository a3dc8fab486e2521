"""What requests may hold: every refusal names the row and the field."""

from __future__ import annotations

import pytest

from labelrace.serve.lessons import (
    Lesson,
    Limits,
    change_of_tags,
    rows_of_feedback,
    rows_to_learn,
    rows_to_predict,
)
from labelrace.serve.problems import Problem

GOOD = {"title": "Oven", "tags": ["a"]}
FEW = Limits(max_rows=3, max_cells=3, max_cell_length=10, max_tags=2, max_tag_length=5)


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"title": "Oven"}, "tags"),
        ({"tags": "zoo"}, "tags"),
        ({"tags": {"a": 1}}, "tags"),
        ({"tags": None}, "tags"),
        ({"tags": [5]}, "tags"),
        ({"tags": [" "]}, "tags"),
        ({"tags": ["a", "b", "c"]}, "tags"),
        ({"tags": ["too long"]}, "tags"),
        ({"tags": ["\ud800"]}, "tags"),
        ({"tags": [], "title": {"a": 1}}, "title"),
        ({"tags": [], "title": [1]}, "title"),
        ({"tags": [], "title": ["a", {"b": 1}]}, "title"),
        ({"tags": [], "title": "x" * 12}, "title"),
        ({"tags": [], "title": ["x" * 6, "y" * 6]}, "title"),
        ({"tags": [], "title": "\udfff"}, "title"),
        ({"tags": [], "price": 1e101}, "price"),
        ({"tags": [], "price": -(10**101)}, "price"),
        ({"tags": [], "price": float("nan")}, "price"),
        ({"tags": [], "price": float("inf")}, "price"),
        ({"tags": [], "": "x"}, ""),
        ({"tags": [], "a\nb": "x"}, "a\nb"),
        ({"tags": [], "id": True}, "id"),
        ({"tags": [], "id": 1.5}, "id"),
        ({"tags": [], "id": ""}, "id"),
        ({"tags": [], "id": " x"}, "id"),
        ({"tags": [], "id": "a\0b"}, "id"),
        ({"tags": [], "id": "x" * 201}, "id"),
        ({"tags": [], **{f"c{i}": 1 for i in range(4)}}, "rows"),
        ("no row", "rows"),
    ],
)
def test_wrong_rows(row, field):
    with pytest.raises(Problem) as found:
        rows_to_learn([GOOD, row], FEW)
    [error] = found.value.errors
    assert (found.value.status, error["row"], error["field"]) == (422, 1, field)
    assert error["detail"] in found.value.detail


@pytest.mark.parametrize("rows", [None, [], {}, "x", 5])
def test_rows_must_be_a_list(rows):
    with pytest.raises(Problem) as found:
        rows_to_predict(rows, FEW)
    assert found.value.errors[0]["field"] == "rows"


def test_too_many_rows():
    with pytest.raises(Problem) as found:
        rows_to_predict([{}] * 4, FEW)
    assert found.value.status == 413


def test_too_many_columns_of_all_rows_together():
    few = FEW._replace(max_columns=4)
    assert len(rows_to_predict([{"a": 1, "b": 1}, {"c": 1, "d": 1}, {"a": 2, "d": 2}], few)) == 3
    with pytest.raises(Problem) as found:
        rows_to_predict([{"a": 1, "b": 1}, {"c": 1}, {"d": 1, "e": 1}], few)
    assert found.value.status == 413
    assert [(error["row"], error["field"]) for error in found.value.errors] == [(2, "e")]


def test_good_rows_are_taken_as_they_are():
    row = {
        "id": 7,
        "title": "Öfen",
        "price": 10**20,
        "new": True,
        "old": None,
        "parts": ["a", "b"],
        "tags": ["x", "x ", "y"],
    }
    [checked] = rows_to_learn([row], Limits())
    assert checked.id == "7"
    assert checked.cells == {"title": "Öfen", "price": 10**20, "new": True, "old": None, "parts": ["a", "b"]}
    assert checked.tags == ["x", "y"]


def test_the_own_column_of_tags_may_be_used():
    [checked] = rows_to_learn([{"title": "Oven", "labels": ["hot"]}], Limits(), "labels")
    assert (checked.cells, checked.tags) == ({"title": "Oven"}, ["hot"])
    [checked] = rows_to_predict([{"title": "Oven", "labels": ["hot"], "tags": 5}], Limits(), "labels")
    assert checked.cells == {"title": "Oven"}


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"tags": []}, "id"),
        ({"id": "1"}, "tags"),
        ({"id": "1", "tags": [], "add": []}, "tags"),
        ({"id": "1", "tags": [], "title": "x"}, "title"),
        ({"id": "1", "add": "a"}, "add"),
        ({"id": "1", "add": [], "remove": []}, "add"),
        ({"id": "1", "remove": [1]}, "remove"),
        ({"id": "1", "add": ["a"], "remove": ["a"]}, "add"),
        ({"id": "0", "tags": []}, "id"),
    ],
)
def test_wrong_feedback(row, field):
    with pytest.raises(Problem) as found:
        rows_of_feedback([{"id": "0", "tags": []}, row], FEW)
    assert (found.value.errors[0]["row"], found.value.errors[0]["field"]) == (1, field)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("rename", {}),
        ("rename", {"names": {}}),
        ("rename", {"names": {"a": ""}}),
        ("rename", {"names": {"a": 5}}),
        ("merge", {"tags": ["a"]}),
        ("merge", {"tags": [], "into": "a"}),
        ("merge", {"tags": "a", "into": "b"}),
        ("retire", {"tags": [5]}),
        ("describe", {"tags": ["a"]}),
        ("describe", {"tags": {"a": {"other": 1}}}),
        ("describe", {"tags": {"a": {"synonyms": "x"}}}),
        ("describe", {"tags": {"a": {"synonyms": [5]}}}),
        ("describe", {"tags": {"a": {"description": 5}}}),
        ("describe", {"tags": {"a": {"parent": []}}}),
    ],
)
def test_wrong_changes(kind, body):
    with pytest.raises(Problem) as found:
        change_of_tags(kind, body, Limits())
    assert found.value.status == 422
    assert found.value.errors[0]["field"] in ("names", "tags", "into", "synonyms", "description", "parent")


def test_the_order_of_members_does_not_make_another_request():
    one = Lesson("learn", {"rows": [{"a": 1, "tags": ["x"]}]})
    two = Lesson("learn", {"rows": [{"tags": ["x"], "a": 1}]}, key="k")
    assert one.digest() == two.digest() != Lesson("feedback", one.body).digest()
