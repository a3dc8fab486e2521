"""Taggers in a notebook: columns with their kinds, tags with their frequency and their F1."""

from __future__ import annotations

import pytest
from helpers.shown import Shown
from sklearn.exceptions import NotFittedError

import labelrace
from labelrace.evaluation.tagging import measure_tagger
from labelrace.report import document
from labelrace.tables.read import as_table

HOSTILE = "<img src=x onerror=alert(1)>"


def rows(n):
    topics = {HOSTILE: "oven hot stove", "bill": "invoice price money", "door": "hinge lock handle"}
    return [
        {"nr": f"T-{i}", "body": f"please see {words} {i % 11}", "size <b>": i % 5 + 0.5, "tags": [tag]}
        for i in range(n)
        for tag, words in [list(topics.items())[i % 3]]
    ]


def shown(tagger):
    html = tagger._repr_mimebundle_()["text/html"]
    assert tagger._repr_html_() == html
    found = Shown(html)
    found.check_harmless()
    return found


def test_what_a_tagger_shows(tmp_path):
    tagger = labelrace.Tagger("tags", text="body", random_state=0)
    assert "Not fitted yet." in shown(tagger).texts
    tagger.prequential_fit(rows(400))
    tagger.save(tmp_path / "t")
    found = shown(tagger)
    facts = found.facts()
    assert facts["rows"] == "400"
    assert facts["labels"] == "3"
    assert facts["bytes"] == f"{(tmp_path / 't').stat().st_size:,}"
    assert facts["prequential quality"] == "example F1 {example_f1:.3f}, micro F1 {micro_f1:.3f}".format(
        **tagger.quality_
    )
    assert {column.name: facts[column.name] for column in tagger.columns_} == {
        column.name: str(column) for column in tagger.columns_
    }
    assert facts["body"] == "text"
    assert facts["size <b>"] == "number"
    start = found.rows.index(["Tag", "Rows", "F1", "Precision", "Recall"]) + 1
    expected = [
        [tag, str(one.rows), *(f"{value:.2f}" for value in (one.f1(), one.precision(), one.recall()))]
        for tag, one in sorted(tagger.tags_.items(), key=lambda pair: (-pair[1].rows, pair[0]))
    ]
    assert found.rows[start : start + 3] == expected
    assert expected[0][0] == HOSTILE
    assert repr(tagger) == "Tagger(random_state=0, tags='tags', text='body')"


def test_tags_that_were_never_tested_and_many_tags():
    many = [{"body": f"word{i} {more}", "tags": [f"tag {i}"]} for i in range(50) for more in "ab"]
    tagger = labelrace.Tagger("tags", text="body", random_state=0).partial_fit(many)
    tagger.partial_fit([{"body": "word7 c", "tags": ["tag 7"]}])
    found = shown(tagger)
    assert "Tags (30 of 50)" in found.texts
    assert ["tag 7", "3", "-", "-", "-"] in found.rows
    assert sum(len(row) == 5 for row in found.rows) == 31
    assert "prequential quality" not in found.facts()


@pytest.mark.parametrize("encoder", [lambda texts: [[len(text), 1.0] for text in texts]])
def test_an_encoder_that_has_no_name(encoder):
    tagger = labelrace.Tagger("tags", text="body", encoders={"body": encoder}, random_state=0).partial_fit(rows(120))
    assert shown(tagger).facts()["rows"] == "120"


def reported(report):
    found = Shown(report._repr_html_())
    found.check_harmless()
    return found


def test_the_report_of_what_was_learned():
    tagger = labelrace.Tagger("tags", text="body", random_state=0)
    with pytest.raises(NotFittedError):
        tagger.report()
    tagger.prequential_fit(rows(400))
    found = reported(tagger.report())
    assert found.facts()["rows"] == "400"
    assert found.facts()["body"] == "text"
    start = found.rows.index(["Tag", "Rows", "F1 ↑", "Precision ↑", "Recall ↑"]) + 1
    assert found.rows[start : start + 3] == [
        [tag, str(one.rows), *(f"{value:.2f}" for value in (one.f1(), one.precision(), one.recall()))]
        for tag, one in sorted(tagger.tags_.items(), key=lambda pair: (-pair[1].rows, pair[0]))
    ]
    assert found.tags.count("img") == 1
    text = repr(tagger.report())
    assert text.startswith(
        "400 rows and 3 tags were learned. Before it learned them, it predicted rows with example F1"
    )
    assert "Columns of the table." in text


def test_the_report_of_few_rows_and_many_tags(monkeypatch):
    monkeypatch.setattr(document, "can_draw", lambda: False)
    many = [{"body": f"word{i} {more}", "tags": [f"tag {i}"]} for i in range(60) for more in "ab"]
    found = reported(labelrace.Tagger("tags", text="body", random_state=0).partial_fit(many).report())
    assert ["tag 0", "2", "–", "–", "–"] in found.rows
    assert sum(len(row) == 5 for row in found.rows) == 51
    assert any(text.startswith("The 50 most frequent tags. ") for text in found.texts)
    assert "img" not in found.tags


def test_the_report_of_a_test(tmp_path):
    tagger = labelrace.Tagger("tags", text="body", random_state=0).partial_fit(rows(300))
    before, held_out = tagger.n_rows_, rows(330)[300:]
    found = reported(tagger.report(held_out))
    measures = measure_tagger(tagger, [as_table(held_out)]).measures()
    assert found.facts()["Micro F1"] == f"{measures['micro_f1']:.3f}"
    assert tagger.n_rows_ == before
    assert repr(tagger.report(held_out)).startswith("30 rows of the table, tagged by the tagger.")
