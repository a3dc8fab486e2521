"""What holds for every page of the service: names are text, everybody can use it, and it keeps to itself.

Every visit ends with a look at what the page has said and asked for: no message in the console, also none of the
content security policy, and no request to another host.
"""

from __future__ import annotations

import pytest
from helpers.browser import expect, faults
from helpers.http import PREDICT, TEACH, TOKENS
from helpers.pages import REFUSED, site
from helpers.serving import TICKETS, feedback, predict, teach, without_tags

NASTY = "<img src=x onerror=globalThis.hurt=1>"
PAGES = ("/", "/quality", "/tags", "/try", "/docs")

# Controls that are hard to hit with a finger, other than words in a text.
SMALL = """() => [...document.querySelectorAll('button, input, select, nav a')]
  .filter((one) => one.checkVisibility() && !one.closest('.legend, .switch, label:has([type=file])'))
  .map((one) => [one.outerHTML.slice(0, 100), one.getBoundingClientRect()])
  .filter(([, { width, height }]) => width && Math.min(width, height) < 24)"""
# Attributes that would run something, or load it.
ACTIVE = """() => [...document.querySelectorAll('*')].flatMap((one) => [...one.attributes])
  .filter(({ name, value }) => name.startsWith('on') || /^(src|href|action)$/.test(name) && /^\\w+:/.test(value))
  .map(({ name, value }) => `${name}=${value}`)"""


def nasty(number):
    row = {"id": f"{NASTY} {number}", "subject": f"{NASTY} {number}", "body": f"{NASTY} again", NASTY: f"{NASTY} cell"}
    return row | {"price": number, "tags": [NASTY, "login"][: 1 + number % 2]}


@pytest.fixture(scope="module")
def used(browser, tmp_path_factory):
    """Yield a site that has learned 260 rows, some of them nasty; others wait."""
    with site(browser, tmp_path_factory.mktemp("journal")) as opened:
        rows = [nasty(number) if number % 5 == 0 else row for number, row in enumerate(TICKETS[:260])]
        teach(opened.service, rows, 20)
        predict(opened.service, without_tags([*TICKETS[260:280], nasty(300), nasty(301)]))
        feedback(opened.service, {"id": nasty(300)["id"], "tags": ["login"]}, who=NASTY)
        feedback(opened.service, {"id": nasty(300)["id"], "tags": None}, who=NASTY)
        yield opened


def fill(page, path):
    """Bring a page to show what it can show."""
    if path == "/":
        page.locator(".item", has_text=NASTY).first.click()
        page.locator("#row .history").wait_for()
        page.locator(".chip", has_text=NASTY).wait_for()
        page.locator(".chip").first.hover()
    elif path == "/quality":
        page.locator("#chart-rows canvas").wait_for()
    elif path == "/tags":
        page.locator("#body .link", has_text=NASTY).click()
        page.locator("#details .together").wait_for()
        page.locator("#body input").nth(2).check()
    elif path == "/try":
        page.get_by_label("body").fill(f"My invoice {NASTY}")
        page.locator("#answer .pill").first.wait_for()
        table = f"body,tags\nMy invoice {NASTY},{NASTY}\nThe parcel,shipping\n"
        page.locator("#file").set_input_files({"name": f"{NASTY}.csv", "mimeType": "", "buffer": table.encode()})
        page.get_by_role("button", name="Tag 2 rows").click()
        page.get_by_role("button", name="Teach 2 rows").click()
        page.get_by_text("This cannot be taken back").wait_for()


@pytest.mark.parametrize("path", PAGES)
def test_everybody_can_use_it(used, path):
    with used.visit(path, live=path != "/docs") as page:
        fill(page, path)
        assert faults(page) == []
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size({"width": 390, "height": 800})
        expect(page.locator("main")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.evaluate(SMALL) == []
        assert faults(page) == []


@pytest.mark.parametrize("path", PAGES)
def test_names_and_texts_are_text(used, path):
    with used.visit(path, who=NASTY, live=path != "/docs") as page:
        fill(page, path)
        if path != "/docs":
            assert page.locator("main").inner_text().count(NASTY) > 1
            assert NASTY in page.locator("#person").inner_text()
        assert page.locator("img").count() == 0
        assert page.evaluate(ACTIVE) == []
        assert page.evaluate("globalThis.hurt") is None


def test_nasty_names_in_dialogs_and_messages_are_text(used):
    with used.visit("/tags") as page:
        fill(page, "/tags")
        page.get_by_role("button", name="Rename …").click()
        page.get_by_label("New name").fill(NASTY + NASTY)
        page.get_by_text("will have the new name").wait_for()
        assert NASTY in page.locator("#change-title").inner_text()
        assert faults(page) == []
        page.get_by_role("button", name="Cancel").click()
        page.locator("#body input").nth(1).check()
        page.get_by_role("button", name="Merge …").click()
        page.get_by_text("The tagger cannot tell them apart again").wait_for()
        page.keyboard.type("<img")
        assert NASTY in page.locator(".options").inner_text()
        assert page.locator("img").count() == 0


@pytest.mark.parametrize("path", PAGES[:-1])
def test_a_service_that_knows_nothing_says_what_to_do(browser, tmp_path, path):
    with site(browser, tmp_path) as opened, opened.visit(path, who="") as page:
        said = {
            "/": "No row waits.",
            "/quality": "Nothing has been tested yet",
            "/tags": "There is no tag yet",
            "/try": "Paste one",
        }
        page.get_by_text(said[path]).first.wait_for()
        if path == "/":
            assert "/v1/predict" in page.locator("#empty pre").inner_text()
        if path == "/try":
            page.locator("textarea").fill("hello")
            page.get_by_text("The tagger knows no tag yet").wait_for()
        assert faults(page) == []
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_theme_that_was_chosen_is_that_of_all_pages(used):
    with used.visit("/tags") as page:
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.locator("#theme").click()
        dark = page.evaluate(ground)
        assert dark != light
        page.get_by_role("link", name="Quality").click()
        page.locator("#chart-rows canvas").wait_for()
        assert page.evaluate(ground) == dark


@pytest.fixture(scope="module")
def guarded(browser, tmp_path_factory):
    """Yield a site that needs tokens."""
    with site(browser, tmp_path_factory.mktemp("journal"), TOKENS) as opened:
        teach(opened.service, TICKETS[:60], 20)
        predict(opened.service, without_tags(TICKETS[60:62]))
        yield opened


def give(page, token):
    page.get_by_role("textbox", name="Token").fill(token)
    page.keyboard.press("Enter")


def test_a_token_is_asked_for_until_it_is_known(guarded):
    with guarded.visit(live=False, allowed=REFUSED) as page:
        page.get_by_text("This service asks who comes in").wait_for()
        assert faults(page) == []
        # It is no dialog to go round.
        page.keyboard.press("Escape")
        give(page, "not a token that is known")
        page.get_by_text("That token is not known here").wait_for()
        give(page, TEACH)
        page.locator("#live[data-state=live]").wait_for()
        page.locator(".chip").first.wait_for()
        page.locator("#accept").click()
        page.locator(".toast", has_text=TICKETS[61]["id"]).wait_for()
    # The token says who it was, whatever the page says.
    assert guarded.service.row(TICKETS[61]["id"])["who"] == "Theo"


def test_a_token_that_may_only_predict_cannot_teach_and_the_page_says_so(guarded):
    before = guarded.service.status()["position"]
    with guarded.visit(live=False, allowed=REFUSED) as page:
        give(page, PREDICT)
        page.get_by_text("This needs the role teach, the token has predict.").wait_for()
        assert page.locator(".item").count() == 0
        page.get_by_role("link", name="Tags").click()
        page.locator("#body .link").first.click()
        page.get_by_label("Description").fill("mine")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("This needs the role teach").wait_for()
        page.get_by_role("button", name="Retire …").last.click()
        page.get_by_text("This needs the role admin").wait_for()
        assert page.locator("#confirm").is_disabled()
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("link", name="Try").click()
        page.get_by_label("body").fill("My invoice")
        page.locator("#answer .pill").first.wait_for()
    assert guarded.service.status()["position"] == before
