"""The page as text: it stands alone, and no name becomes markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from labelrace.base.printing import printable
from labelrace.report import summarize
from labelrace.report.charts import Chart, Panel, Ranks, Series, bars, critical_differences, heat_map, panels
from labelrace.report.document import Document, Section
from labelrace.report.page import render_page
from labelrace.report.run_report import report_document

HOSTILE = "</script><script>alert(1)</script><img src=http://x.invalid onerror=alert(2)>\"' \u2028 {{ 7 * 7 }}"


class Page(HTMLParser):
    """What a page consists of."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self._open = [], [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in {"meta", "link", "input", "br", "img"}:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    def handle_startendtag(self, tag, attrs):
        raise AssertionError(f"<{tag}/> is not HTML")


def page_of(manifest, records):
    return render_page(report_document(summarize(manifest, records)))


def hostile_run(make):
    manifest, records = make.race(batches=4, runs=1, measures=("micro_f1",), models={HOSTILE: (0.4, 0.1, 0.1)})
    manifest["source"]["name"] = HOSTILE
    manifest["source"]["checksum"] = HOSTILE
    manifest["models"][0]["parameters"] = {HOSTILE: HOSTILE}
    manifest["measures"] = ["micro_f1", HOSTILE]
    records.append({"kind": "failed", "model": HOSTILE, "run": 1, "error": HOSTILE})
    return manifest, records


def test_page_is_well_formed_and_has_its_parts(race):
    page = Page(page_of(*race))
    assert page._open == []
    assert page.tags.count("h1") == 1
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {"results", "chart-curves", "labels", "chart-labels", "chart-seconds", "theme", "data"} <= set(ids)
    assert page.tags.count("option") == 3


@pytest.mark.parametrize("kind", ["usual", "hostile"])
def test_page_asks_for_nothing(make, race, kind):
    text = page_of(*(race if kind == "usual" else hostile_run(make)))
    page = Page(text)
    for tag, name, value in page.attributes:
        assert not name.startswith("on")
        if name in {"src", "href", "action", "data", "poster", "srcset", "formaction"}:
            assert value.startswith("data:"), (tag, name, value)
    assert not {"img", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert "@import" not in text
    assert not re.search(r"url\(\s*['\"]?http", text)
    script = page.texts["script"][-1]
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts)\b", script)


def test_hostile_names_stay_text(make):
    text = page_of(*hostile_run(make))
    page = Page(text)
    assert page.tags.count("script") == 2
    assert "{{ 7 * 7 }}" in text
    data = json.loads(page.texts["script"][0])
    assert data["curves"]["views"][0][0]["series"][0]["name"] == printable(HOSTILE)
    assert any(HOSTILE in cell for cell in page.texts["h1"])


def test_policy_lets_only_our_script_run(race):
    page = Page(page_of(*race))
    policy = next(value for tag, name, value in page.attributes if tag == "meta" and "default-src" in value)
    digest = base64.b64encode(hashlib.sha256(page.texts["script"][-1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def page_of_charts(*charts):
    """Return a page of charts alone."""
    return Page(render_page(Document("page", "enron", "", "", [Section("Charts", charts=charts)], records={})))


def test_diagrams_have_the_colours_of_the_theme():
    page = page_of_charts(
        Chart("bars", "enron: bars", bars(["race"], {"learn": [1.0]}, ["1 s"])),
        Chart("ratios", "enron: ratios", heat_map(["race", "obr"], ["enron"], [[-1.0, None]])),
        Chart("ranks", "enron: ranks", critical_differences([Ranks("all", {"a": 1.0, "b": 2.0, "c": 3.0}, 1.5)])),
    )
    shapes = [value for tag, name, value in page.attributes if name == "style" and tag in {"rect", "text", "line"}]
    assert any("var(--ink)" in style for style in shapes)
    assert any("var(--color-0)" in style for style in shapes)
    assert any("var(--cold)" in style for style in shapes)
    assert not any("#" in style for style in shapes)
    labels = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert labels == ["enron: bars", "enron: ratios", "enron: ranks"]
    assert {"race", "1 s", "\N{MINUS SIGN}1.00", "CD = 1.50"} <= set(page.texts["text"])


def test_a_page_without_panels_has_no_library():
    diagram = Chart("bars", "bars", bars(["race"], {"learn": [1.0]}, ["1 s"]))
    lines = Chart("lines", "lines", panels([Panel("", [Series("race", [1, 2], [0.1, 0.2])])]))
    assert "uPlot" not in page_of_charts(diagram).texts["script"][-1]
    assert "uPlot" in page_of_charts(diagram, lines).texts["script"][-1]


def test_panels_stand_in_the_page_as_data():
    series = [
        Series("race", [1, 2], [0.123456789, None], 0),
        Series("obr", [1, 2], [0.5, 1.0], 8, tips=["a", "b\x1b"], marker="o"),
        Series("", [1.5], [0.7], 8, line=False, marker="s"),
    ]
    page = page_of_charts(Chart("lines", "lines", panels([Panel("x", series), Panel("y", series)], across=2)))
    drawn = json.loads(page.texts["script"][0])["lines"]
    assert drawn["xs"] == [[1, 2], [1.5]]
    first, second, unnamed = drawn["views"][0][1]["series"]
    assert (first["x"], first["y"]) == (0, [0.12346, None])
    # The ninth colour is the first one, with another pattern.
    assert (second["color"], second["dash"], second["tips"]) == (0, [2, 3], ["a", "b"])
    assert (unnamed["x"], unnamed["entry"]) == (1, 1)
    assert page.texts["span"].count("race") == 1


def test_the_page_of_a_run_draws_itself(race, monkeypatch):
    # Importing matplotlib takes longer than a short run.
    monkeypatch.setattr("labelrace.report.matplotlib_figures.new_figure", None)
    page = Page(page_of(*race))
    assert {"chart-labels", "times"} <= {value for _, name, value in page.attributes if name == "id"}
    labels = json.loads(page.texts["script"][0])["labels"]
    dots, *trends = labels["views"][0][0]["series"]
    shares = labels["xs"][dots["x"]]
    assert shares == sorted(shares)
    assert len(dots["tips"]) == len(dots["y"]) == len(shares) == 53
    assert len(trends) == 6
    assert all(set(labels["xs"][trend["x"]]) <= set(shares) for trend in trends)
    assert page.tags.count("rect") == 12


def test_label_names_are_shown(race):
    manifest, records = race
    names = [f"topic {number}" for number in range(53)]
    manifest["source"]["label_names"] = names
    page = Page(page_of(manifest, records))
    listed = [text for text in page.texts["span"] if text.startswith("topic ")]
    assert len(listed) == 16
    assert set(listed) <= set(names)


def test_size(make):
    text = page_of(*make.race(batches=100, runs=2))
    assert len(text.encode()) < 500_000


def test_best_and_missing_values_are_shown(make, race):
    manifest, records = race
    records = [record for record in records if record["model"] != "obr"]
    text = page_of(manifest, records)
    assert "Not started: obr." in text
    assert "0 of 3 runs" in text
    assert 'class="best"' in text


@pytest.mark.parametrize("records", [[], "one"])
def test_page_of_little(make, records):
    manifest = make.manifest(["race"], ["micro_f1"])
    records = records and [make.batch("race", 1, {"micro_f1": None}), make.batch("race", 2, {"micro_f1": 0.5})]
    page = Page(page_of(manifest, records))
    assert page._open == []
    assert "labels" not in [value for _, name, value in page.attributes if name == "id"]
