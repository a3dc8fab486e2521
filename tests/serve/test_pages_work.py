"""Quality, tags and try in a browser: what they show is what the service knows, and what they do is done."""

from __future__ import annotations

import csv
import io
import random

import pytest
from helpers.browser import expect
from helpers.pages import REFUSED, site
from helpers.serving import TICKETS, predict, teach, without_tags

openpyxl = pytest.importorskip("openpyxl", reason="labelrace[excel] is not installed")


@pytest.fixture(scope="module")
def taught(browser, tmp_path_factory):
    """Yield a site that has learned 200 tickets, for tests that change nothing of them."""
    with site(browser, tmp_path_factory.mktemp("journal")) as opened:
        teach(opened.service, TICKETS[:200], 50)
        yield opened


@pytest.fixture
def tags(browser, tmp_path):
    """Yield a site with tags to change."""
    with site(browser, tmp_path) as opened:
        teach(opened.service, TICKETS[:100], 50)
        yield opened


def rows_of(site, tag):
    return next((one["rows"] for one in site.service.tags()["tags"] if one["tag"] == tag), None)


# --- Quality ----------------------------------------------------------------------------------------------------------


def drifting(n_rows, drift):
    """Make rows of two words that mean two tags; from a row on, they mean others."""
    draw, words = random.Random(0), ["oven", "door", "invoice", "login"]
    for number in range(n_rows):
        said = draw.sample(words, 2)
        turned = [words[words.index(word) - 1] for word in said]
        yield {
            "text": " ".join([*said, *draw.choices(["the", "is", "my", "not"], k=5)]),
            "tags": turned if number >= drift else said,
        }


def test_a_drift_is_a_mark_at_its_row(browser, tmp_path):
    with site(browser, tmp_path) as opened:
        teach(opened.service, list(drifting(3600, 800)), 100)
        quality = opened.service.quality()
        [alarm, drift] = quality["marks"]
        assert (alarm["kind"], drift["kind"]) == ("alarm", "drift")
        assert 8 < alarm["position"] < drift["position"]
        window = next(one["row"] for one in quality["windows"] if one["row"] > drift["row"])
        with opened.visit("/quality") as page:
            chart = page.locator("#chart-rows")
            chart.locator("canvas").wait_for()
            meanings = chart.locator(".hint", has_text="an alarm").inner_text()
            assert "▽: an alarm" in meanings
            assert "▼: a confirmed drift" in meanings
            told = {}
            for _ in quality["windows"]:
                chart.locator(".panel").press("ArrowLeft")
                said = chart.locator(".status").inner_text()
                told |= {what: said for what in ("alarm: the rows may have changed", "drift confirmed") if what in said}
            assert told.keys() == {"alarm: the rows may have changed", "drift confirmed"}
            assert told["drift confirmed"].startswith(f"After {window:,} rows")


def test_numbers_are_those_of_the_service(taught):
    quality = taught.service.quality()
    with taught.visit("/quality") as page:
        shown = dict(
            zip(page.locator(".tiles dt").all_inner_texts(), page.locator(".tiles dd").all_inner_texts(), strict=True)
        )
        for name, title in (
            ("example_f1", "F1"),
            ("precision", "Precision"),
            ("recall", "Recall"),
            ("agreement", "Agreement"),
        ):
            assert shown[title].startswith(f"{100 * quality['recent'][name]:.0f}%")
        best = page.locator("#best tbody th").all_inner_texts()
        assert best == [one["tag"] for one in quality["tags"]["best"]]
        # One day: what was suggested and what was not, together all rows.
        drawn = page.locator("#chart-work rect").evaluate_all(
            "rects => rects.map((one) => parseFloat(one.getAttribute('width')))"
        )
        agreed = quality["agreement"] * quality["tested"]
        assert drawn[0] / sum(drawn) == pytest.approx(agreed / 200, abs=0.01)
        teach(taught.service, TICKETS[200:201])
        page.get_by_role("button", name="1 lesson since: show them").click()
        expect(page.locator(".tiles dd").last).to_contain_text(f"{quality['tested'] + 1}")


# --- Tags -------------------------------------------------------------------------------------------------------------


def test_a_tag_is_renamed_after_a_look_at_what_it_touches(tags):
    rows = rows_of(tags, "billing")
    with tags.visit("/tags", allowed=REFUSED) as page:
        page.locator("#body .link", has_text="billing").click()
        page.get_by_role("button", name="Rename …").click()
        page.get_by_label("New name").fill("login")
        expect(page.locator("#touches.error")).to_contain_text("login")
        assert page.locator("#confirm").is_disabled()
        page.get_by_label("New name").fill("invoices")
        page.get_by_text(f"{rows} rows will have the new name.").wait_for()
        assert rows_of(tags, "billing") == rows
        page.locator("#confirm").click()
        page.locator("#details h2", has_text="invoices").wait_for()
        assert page.locator("#body .link", has_text="billing").count() == 0
    assert (rows_of(tags, "invoices"), rows_of(tags, "billing")) == (rows, None)


def test_tags_are_merged_and_retired_after_a_look_at_what_it_touches(tags):
    returns, mobile = rows_of(tags, "returns"), rows_of(tags, "mobile")
    either = sum(bool({"returns", "mobile"} & set(row["tags"])) for row in TICKETS[:100])
    smaller = min(returns, mobile)
    into = "returns" if returns >= mobile else "mobile"
    with tags.visit("/tags") as page:
        for tag in ("returns", "mobile"):
            page.get_by_label(f"Choose {tag}").check()
        page.get_by_role("button", name="Merge …").click()
        told = f"{smaller} rows will have “{into}” instead, which is in {either} rows then."
        expect(page.locator("#touches")).to_contain_text(told)
        page.get_by_role("combobox", name="Into another tag").fill("hardware")
        page.keyboard.press("Enter")
        expect(page.locator("#touches")).to_contain_text(f"{returns + mobile} rows will have “hardware” instead")
        assert rows_of(tags, "returns") == returns
        page.locator("#confirm").click()
        page.locator("#details h2", has_text="hardware").wait_for()
        assert (rows_of(tags, "returns"), rows_of(tags, "hardware")) == (None, either)
        page.get_by_role("button", name="Retire …").last.click()
        expect(page.locator("#touches")).to_contain_text("rows had it.")
        page.locator("#confirm").click()
        page.locator(".toast", has_text="hardware: retired").wait_for()
    assert rows_of(tags, "hardware") is None


def test_what_can_be_done_with_chosen_tags_is_in_sight_on_a_phone(tags):
    with tags.visit("/tags", width=390) as page:
        page.locator("#body input").last.check()
        expect(page.get_by_role("button", name="Merge …")).to_be_in_viewport()
        expect(page.get_by_role("button", name="Clear")).to_be_in_viewport()
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_tag_is_described_and_found_by_its_synonym(tags):
    with tags.visit("/tags") as page:
        page.locator("#body .link", has_text="shipping").click()
        page.locator("#details").get_by_label("Synonyms").fill("courier, zeppelin ")
        page.get_by_label("Description").fill("Where is it?")
        page.get_by_role("button", name="Save").click()
        page.locator(".toast", has_text="shipping: saved").wait_for()
        page.locator("#search").fill("zepp")
        expect(page.locator("#body .link")).to_have_text(["shipping"])
        page.locator("#search").fill("")
        page.get_by_role("button", name="New tag").click()
        page.get_by_role("textbox", name="Name", exact=True).fill("balloons")
        page.get_by_role("button", name="Add").click()
        page.locator("#details h2", has_text="balloons").wait_for()
        # Clicks on headings sort.
        page.get_by_role("button", name="Tag", exact=True).click()
        names = page.locator("#body .link").all_inner_texts()
        assert names == sorted(names)
    known = {one["tag"]: one for one in tags.service.tags()["tags"]}
    assert known["shipping"]["synonyms"] == ["courier", "zeppelin"]
    assert known["shipping"]["description"] == "Where is it?"
    assert known["balloons"]["rows"] == 0


# --- Try --------------------------------------------------------------------------------------------------------------


def as_csv(rows):
    written = io.StringIO()
    table = csv.DictWriter(written, ["subject", "body", "tags"])
    table.writeheader()
    table.writerows(
        {"subject": row["subject"], "body": row["body"], "tags": ";".join(row.get("tags") or ())} for row in rows
    )
    return "rows.csv", written.getvalue().encode()


def as_excel(rows):
    book, written = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["subject", "body", "tags"])
    for row in rows:
        book.active.append([row["subject"], row["body"], ";".join(row.get("tags") or ())])
    book.save(written)
    return "rows.xlsx", written.getvalue()


def read(path):
    """Return the rows of a file, as dicts."""
    if path.suffix == ".xlsx":
        head, *lines = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
        return [dict(zip(head, line, strict=True)) for line in lines]
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def choose(page, name, content):
    page.locator("#file").set_input_files({"name": name, "mimeType": "", "buffer": content})


def test_a_text_is_tagged_while_it_is_written(taught):
    row = {"subject": "Refund", "body": "My invoice is wrong."}
    expected = predict(taught.service, [row])["rows"][0]
    position = taught.service.status()["position"]
    with taught.visit("/try") as page:
        page.get_by_label("subject").fill(row["subject"])
        page.get_by_label("body").fill(row["body"])
        page.locator(".echo", has_text="My invoice is wrong.").wait_for()
        shown = page.locator(".pill.chosen span:not(.dot)").all_inner_texts()
        assert shown == expected["tags"] != []
    assert taught.service.status()["position"] == position


@pytest.mark.parametrize(("kind", "back"), [(as_csv, "Excel"), (as_excel, "CSV")])
def test_a_file_comes_back_tagged(taught, tmp_path, kind, back):
    rows = without_tags(TICKETS[300:330])
    asked = [{name: row[name] for name in ("subject", "body")} for row in rows]
    expected = [one["tags"] for one in predict(taught.service, asked)["rows"]]
    with taught.visit("/try") as page:
        choose(page, *kind(rows))
        page.get_by_role("button", name="Tag 30 rows").click()
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Download {back}").click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
    assert path.name == f"rows-tagged{'.xlsx' if back == 'Excel' else '.csv'}"
    found = read(path)
    assert [row["body"] for row in found] == [row["body"] for row in rows]
    assert [list(filter(None, (row["tags"] or "").split(";"))) for row in found] == expected


def test_a_tagged_file_is_taught(tags):
    before = tags.service.status()["rows"]
    with tags.visit("/try") as page:
        choose(page, *as_csv([*TICKETS[400:420], *without_tags(TICKETS[420:425])]))
        page.get_by_text("25 rows, 20 of them with tags").wait_for()
        page.get_by_role("button", name="Teach 20 rows").click()
        page.get_by_role("button", name="Cancel").click()
        assert tags.service.status()["rows"] == before
        page.get_by_role("button", name="Teach 20 rows").click()
        page.get_by_role("button", name="Teach", exact=True).click()
        page.locator(".toast", has_text="20 rows learned").wait_for()
    assert tags.service.status()["rows"] == before + 20


def test_a_file_that_cannot_be_read_is_refused_with_a_reason(taught):
    with taught.visit("/try", allowed=REFUSED) as page:
        choose(page, "rows.xlsx", b"no Excel at all")
        page.locator(".toast.error").wait_for()
        choose(page, "rows.pdf", b"%PDF")
        page.locator(".toast.error", has_text=".pdf").wait_for()
        choose(page, *as_csv(TICKETS[:2]))
        page.get_by_role("button", name="Tag 2 rows").wait_for()
