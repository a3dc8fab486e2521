"""The page in a browser: it draws, answers, and keeps to itself."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from helpers.browser import visiting

from labelrace.report import summarize
from labelrace.report.charts import Chart, Panel, Series, heat_map, panels
from labelrace.report.document import Document, Section, write_document
from labelrace.report.run_report import report_document

# How many pixels of a chart have been drawn on, and in how many colours.
INK = """selector => {
  const canvas = document.querySelector(selector + ' canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  let drawn = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] > 200) { drawn += 1; seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]); }
  }
  return [drawn, seen.size];
}"""
IMAGE = "selector => document.querySelector(selector + ' canvas').toDataURL()"


@pytest.fixture
def visit(browser, tmp_path):
    """Return a function that opens the page of a run; afterwards nothing may have been said or asked for."""
    with ExitStack() as opened:

        def open_page(run, width=1280, scheme="light"):
            document = run if isinstance(run, Document) else report_document(summarize(*run))
            url = write_document(document, tmp_path, formats=["html"])[f"{document.name}.html"].as_uri()
            page = opened.enter_context(visiting(browser, url, width=width, color_scheme=scheme))
            page.goto(url)
            return page

        yield open_page


def first_column(page):
    return page.locator("#results tbody th .label").all_inner_texts()


def test_every_switch(visit, make):
    page = visit(make.race(batches=20, runs=2))
    drawn, colors = page.evaluate(INK, "#chart-curves")
    assert drawn > 5000
    assert colors > 6
    seen = {page.evaluate(IMAGE, "#chart-curves")}
    for kind in ("Per batch", "Cumulative", "Windowed"):
        page.get_by_role("radio", name=kind).check()
        seen.add(page.evaluate(IMAGE, "#chart-curves"))
    assert len(seen) == 3
    for measure in range(len(make.measures)):
        page.locator(".panel-choice").select_option(index=measure)
        assert page.evaluate(INK, "#chart-curves")[0] > 5000
    page.locator("summary").click()
    assert page.get_by_text('"batch_size": 100').is_visible()


def test_curves_end_at_the_tables_values(visit, race):
    page = visit(race)
    page.get_by_role("radio", name="Cumulative").check()
    shown = page.locator("#chart-curves .legend .number").all_inner_texts()
    heading = page.locator("#results thead th").all_inner_texts()
    index = next(i for i, text in enumerate(heading) if text.startswith("Micro F1"))
    cells = page.locator(f"#results tbody td:nth-child({index + 1}) .value").all_inner_texts()
    assert shown == cells


def test_hover_and_keys_tell_values(visit, race):
    page = visit(race)
    element, status = page.locator("#chart-curves .panel"), page.locator("#chart-curves .status")
    before = page.locator("#chart-curves .legend .number").all_inner_texts()
    element.press("ArrowLeft")
    first = status.inner_text()
    element.press("ArrowLeft")
    assert first.startswith("At row")
    assert status.inner_text() not in ("", first)
    element.hover(position={"x": 200, "y": 200})
    assert page.locator("#chart-curves .legend .number").all_inner_texts() != before


def test_labels_are_told_by_hover_and_keys(visit, race):
    page = visit(race)
    element, status = page.locator("#chart-labels .panel"), page.locator("#chart-labels .status")
    drawn, colors = page.evaluate(INK, "#chart-labels")
    assert drawn > 1000
    assert colors > 3
    element.press("ArrowLeft")
    last = status.inner_text()
    assert " of rows: " in last
    element.press("ArrowLeft")
    assert status.inner_text() not in ("", last)
    page.mouse.move(0, 0)
    full = page.evaluate(IMAGE, "#chart-labels")
    page.locator("#chart-labels .legend button").first.click()
    page.wait_for_function(f"full => ({IMAGE})('#chart-labels') !== full", arg=full)
    assert page.locator("#chart-seconds rect").first.bounding_box()["width"] > 100


def test_panels_side_by_side_share_a_legend(visit):
    sizes = [10, 100, 1000]
    shown = [
        Panel(name, [Series("race", sizes, [0, y, 2 * y], 0, marker="o"), Series("obr", sizes, [1, 2, y], 1)], log="x")
        for name, y in (("seconds", 3), ("bytes", 7))
    ]
    dots = Series("agrees", [0.1, 0.1, 0.6], [0.1, 0.3, 0.5], 0, line=False, marker="o", tips=["a", "b", "c"])
    square = Series("", [0.4], [0.2], 0, [0.1], line=False, marker="s", hollow=True, tips=["d"])
    scatter = Panel("", [dots, square], x_range=(0, 1), y_range=(0, 1), diagonal=True)
    charts = [
        Chart("growth", "Growth", panels(shown, across=2)),
        Chart("scatter", "Scatter", panels([scatter])),
        Chart("ratios", "Ratios", heat_map(["a", "b"], ["c"], [[1.0, -1.0]])),
    ]
    page = visit(Document("bench", "Bench", "", "", [Section("Charts", charts=charts)], records={}))
    left, right = page.locator("#chart-growth .panel").all()
    assert left.bounding_box()["y"] == right.bounding_box()["y"]
    right.press("ArrowRight")
    right.press("ArrowRight")
    assert page.locator("#chart-growth .status").inner_text() == "x = 100"
    assert page.locator("#chart-growth .legend .number").all_inner_texts() == ["7.000", "2.000"]
    left.press("ArrowLeft")
    assert page.locator("#chart-growth .legend .number").all_inner_texts() == ["6.000", "3.000"]
    said = []
    for _ in range(4):
        page.locator("#chart-scatter .panel").press("ArrowRight")
        said.append(page.locator("#chart-scatter .status").inner_text())
    assert said == ["a", "b", "d", "c"]
    page.mouse.move(0, 0)
    full = page.evaluate(IMAGE, "#chart-scatter")
    page.locator("#chart-scatter .legend button").click()
    page.mouse.move(0, 0)
    page.wait_for_function(f"full => ({IMAGE})('#chart-scatter') !== full", arg=full)
    assert page.locator("#chart-ratios rect").first.bounding_box()["width"] > 300


def test_what_happened_is_told_at_its_row(visit, race):
    manifest, records = race
    plain = visit((manifest, records)).evaluate(IMAGE, "#chart-curves")
    for record in records:
        if record["kind"] == "labels":
            record |= {"rows": 6000, "first": [0, *[6050] * 12, *[None] * 40]}
        if record["kind"] == "batch" and record["model"] == "obr":
            record |= {"alarms": int(record["batch"] >= 40), "drifts": int(record["batch"] >= 60)}
    page = visit((manifest, records))
    assert page.evaluate(IMAGE, "#chart-curves") != plain
    page.locator("#chart-curves .panel").press("ArrowLeft")
    page.locator("#chart-curves .panel").press("ArrowLeft")
    assert page.locator("#chart-curves .status").inner_text() == (
        "At row 6,100; 12 labels appeared: 1, 2, 3, 4, 5, 6, 7, 8, …; drift confirmed: obr"
    )


def test_legend_hides_models(visit, race):
    page = visit(race)
    full = page.evaluate(IMAGE, "#chart-curves")
    button = page.locator("#chart-curves .legend button").first
    button.click()
    page.mouse.move(0, 0)
    assert button.get_attribute("aria-pressed") == "false"
    page.wait_for_function(f"full => ({IMAGE})('#chart-curves') !== full", arg=full)
    button.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"


def test_sorting(visit, race):
    manifest, records = race
    page = visit((manifest, [record for record in records if record["model"] != "obr"]))
    heading = page.locator("#results thead th").filter(has_text="Time")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    order = first_column(page)
    assert [order[0], order[-2]] == ["majority", "oecc"]
    # What has no value stays last, whichever way.
    assert order[-1].startswith("obr")
    heading.locator("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert first_column(page)[0] == "oecc"
    assert first_column(page)[-1].startswith("obr")
    page.locator("#results thead button").first.click()
    assert first_column(page) == sorted(first_column(page))
    assert heading.get_attribute("aria-sort") == "none"


def test_dark_and_light(visit, race):
    ground = "getComputedStyle(document.body).backgroundColor"
    page = visit(race)
    light, picture = page.evaluate(ground), page.evaluate(IMAGE, "#chart-curves")
    page.get_by_role("button", name="Dark theme").click()
    assert page.evaluate(ground) != light
    assert page.evaluate(IMAGE, "#chart-curves") != picture
    page.get_by_role("button", name="Light theme").click()
    assert page.evaluate(ground) == light
    system = visit(race, scheme="dark")
    assert system.evaluate(ground) != light
    assert system.get_by_role("button", name="Light theme").is_visible()


def test_a_phone_does_not_scroll_sideways(visit, make):
    models = {"race-with-" + "a-very-long-name-" * 3: (0.4, 0.1, 0.1), "x" * 60: (0.4, 0.1, 0.1), **make.models}
    page = visit(make.race(batches=8, runs=2, models=models), width=360)
    page.locator("summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate("document.querySelector('#chart-curves canvas').getBoundingClientRect().right") <= 360
    page.set_viewport_size({"width": 700, "height": 800})
    page.wait_for_function("() => document.querySelector('#chart-curves .uplot').getBoundingClientRect().width > 600")


def test_print_is_light_and_narrow(visit, race):
    page = visit(race, scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    width = "document.querySelector('#chart-curves .uplot').getBoundingClientRect().width"
    assert page.evaluate(width) < 700
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(width) > 1000
    assert page.evaluate("document.documentElement.dataset.theme === undefined")


@pytest.mark.parametrize("batches", [0, 1])
def test_little_data(visit, make, batches):
    manifest = make.manifest(["race"], ["micro_f1"])
    page = visit((manifest, [make.batch("race", 1, {"micro_f1": 0.5})] * batches))
    if batches:
        assert page.evaluate(INK, "#chart-curves")[0] > 100
        assert page.locator("#chart-curves .legend .number").inner_text() == "0.500"
    else:
        assert page.get_by_text("No batch was tested.").is_visible()


def test_names_are_text(visit, make):
    name = "</script><img src=x onerror=alert(1)><b>bold</b>"
    page = visit(
        make.race(batches=4, runs=1, measures=("micro_f1",), models={name: (0.4, 0.1, 0.1), "b": (0.3, 0.1, 0.1)})
    )
    assert first_column(page)[0] == name
    assert page.locator("#chart-curves .legend .label").first.inner_text() == name
    assert page.locator("img").count() == 0
