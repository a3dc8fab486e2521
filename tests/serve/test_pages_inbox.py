"""The inbox in a browser: rows are tagged by keyboard, and the tagger learns at once."""

from __future__ import annotations

import pytest
from helpers.browser import expect
from helpers.pages import REFUSED, site
from helpers.serving import TICKETS, predict, teach, without_tags

from labelrace.serve.lessons import Lesson


@pytest.fixture
def fresh(browser, tmp_path):
    """Yield a site that knows nothing."""
    with site(browser, tmp_path) as opened:
        yield opened


@pytest.fixture
def inbox(fresh):
    """Yield a site that has learned 200 tickets; three wait, the last of them on top."""
    teach(fresh.service, TICKETS[:200], 50)
    predict(fresh.service, without_tags(TICKETS[200:203]))
    return fresh


TOP, MIDDLE, BOTTOM = (TICKETS[at]["id"] for at in (202, 201, 200))


def in_hand(page, id):
    """Wait until a row is in hand, with what the service says of it."""
    page.locator("#row .id", has_text=id).wait_for()
    page.locator(f"#row:has(.id:text-is('{id}')) .chips li").first.wait_for()


def chosen(page):
    """Return the tags that are chosen for the row in hand."""
    return page.locator(".chip[aria-pressed=true] .tag-name").all_inner_texts()


def until_tagged(site, page, id):
    """Wait until the page says that a row is saved, and return its tags as the service has them."""
    page.locator(".toast", has_text=f"{id}: ").wait_for()
    return site.service.row(id)["tags"]


def test_tagging_a_row_by_keyboard_changes_the_next_suggestion(fresh):
    rows = [{"id": f"R-{at}", "text": f"the {what} is broken"} for at, what in enumerate(["oven", "oven", "oven"])]
    predict(fresh.service, rows)
    assert fresh.service.row("R-1")["suggested"]["tags"] == []
    with fresh.visit() as page:
        in_hand(page, "R-2")
        assert page.get_by_text("No tag is suggested").is_visible()
        page.keyboard.press("t")
        page.keyboard.type("kitchen")
        assert page.locator(".options li").all_text_contents() == ["kitchennew tag"]
        # The first takes the marked tag, the second accepts.
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        in_hand(page, "R-1")
        page.locator(".chip[aria-pressed=true]", has_text="kitchen").wait_for()
        page.keyboard.press("Enter")
        in_hand(page, "R-0")
        assert until_tagged(fresh, page, "R-1") == ["kitchen"]
    assert fresh.service.row("R-2")["tags"] == ["kitchen"]
    assert fresh.service.row("R-2")["who"] == "Ann"


def test_tags_are_removed_and_added_by_name_synonym_and_anew(inbox):
    described = {"billing": {"synonyms": ["money matters"], "description": ""}}
    inbox.service.teach([Lesson("describe", {"tags": described})])
    with inbox.visit() as page:
        in_hand(page, TOP)
        # What is suggested goes, as far as it is chosen, whatever it is.
        for _ in chosen(page):
            page.locator(".chip[aria-pressed=true]").first.press("Space")
        assert chosen(page) == []
        for typed, listed in (("ship", "shipping"), ("money", "billing"), ("Oven <door>", "Oven <door>")):
            page.keyboard.press("/")
            page.keyboard.type(typed)
            assert listed in page.locator(".options li").first.inner_text()
            page.keyboard.press("Enter")
            page.keyboard.press("Escape")
        assert set(chosen(page)) == {"shipping", "billing", "Oven <door>"}
        page.keyboard.press("Enter")
        assert set(until_tagged(inbox, page, TOP)) == {"shipping", "billing", "Oven <door>"}
        in_hand(page, MIDDLE)
        # The digits choose, and take back.
        first = page.locator(".chip .tag-name").first.inner_text()
        was = first in chosen(page)
        page.keyboard.press("1")
        assert (first in chosen(page)) != was


def test_what_was_said_is_taken_back(inbox):
    with inbox.visit() as page:
        in_hand(page, TOP)
        page.keyboard.press("t")
        page.keyboard.type("shipping")
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        in_hand(page, MIDDLE)
        assert "shipping" in until_tagged(inbox, page, TOP)
        page.keyboard.press("Escape")
        page.keyboard.press("u")
        in_hand(page, TOP)
        page.locator(".toast", has_text="taken back").wait_for()
        # Nothing offers to undo what was undone.
        assert page.locator(".toast button").count() == 0
        assert "shipping" in chosen(page)
    row = inbox.service.row(TOP)
    assert (row["state"], row["tags"], len(row["history"])) == ("waiting", None, 2)


def test_a_row_is_in_sight_on_a_phone_when_it_is_taken_back(inbox):
    with inbox.visit(width=390) as page:
        in_hand(page, TOP)
        page.locator("#accept").click()
        in_hand(page, MIDDLE)
        # The row in hand is half below the bar at the top.
        page.evaluate("scrollTo(0, document.querySelector('#desk').offsetTop - 30)")
        button = page.locator(".toast button")
        assert button.evaluate("(one) => one.getClientRects().length && one.offsetHeight < 50")
        button.click()
        in_hand(page, TOP)
        bar, desk = (page.locator(one).bounding_box() for one in (".bar", "#desk"))
        assert desk["y"] >= bar["y"] + bar["height"]


def test_that_no_tag_applies_is_said_twice(inbox):
    with inbox.visit() as page:
        in_hand(page, TOP)
        for _ in chosen(page):
            page.locator(".chip[aria-pressed=true]").first.press("Space")
        page.locator("#row").focus()
        page.keyboard.press("Enter")
        page.get_by_text("Press Enter once more").wait_for()
        assert inbox.service.row(TOP)["state"] == "waiting"
        page.keyboard.press("Enter")
        assert until_tagged(inbox, page, TOP) == []


def test_two_browsers_see_what_the_other_does(inbox):
    with inbox.visit() as ann:
        in_hand(ann, TOP)
        with inbox.visit(who="Ben") as ben:
            # What Ann has open is shown so, and is not the first row that Ben gets.
            ben.locator(".item", has_text="Ann is here").wait_for()
            in_hand(ben, MIDDLE)
            ann.locator(".item", has_text="Ben is here").wait_for()
            ben.locator(".item", has_text="Ann is here").click()
            ben.get_by_text("Ann has this row open, too.").wait_for()
            ben.keyboard.press("t")
            ben.keyboard.type("shipping")
            ben.keyboard.press("Enter")
            ben.keyboard.press("Enter")
            ann.get_by_text("Ben has just tagged this row: ").wait_for()
            assert "shipping" in ann.locator(".notice").inner_text()
            assert ann.locator(".item", has_text="✓ Ben:").count() == 1
        predict(inbox.service, without_tags(TICKETS[203:204]))
        teach(inbox.service, TICKETS[204:206])
        ann.get_by_role("button", name="Show 1 new row").click()
        in_hand(ann, TICKETS[203]["id"])
        ann.locator("#waiting", has_text="3").wait_for()


def test_what_could_not_be_saved_is_said_and_stays_chosen(inbox):
    with inbox.visit(allowed=REFUSED) as page:
        in_hand(page, TOP)
        page.route("**/v1/feedback", lambda route: route.fulfill(status=507, json={"detail": "The disk is full."}))
        page.keyboard.press("t")
        page.keyboard.type("new one")
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        page.locator(".toast", has_text=f"{TOP} is not saved. The disk is full.").wait_for()
        page.unroute("**/v1/feedback")
        page.locator(".item", has_text=page.locator(".item .title").first.inner_text()).first.click()
        in_hand(page, TOP)
        assert "new one" in chosen(page)
        page.locator("#accept").click()
        assert "new one" in until_tagged(inbox, page, TOP)


def test_words_that_speak_for_tags_are_marked_on_demand(inbox):
    predict(inbox.service, [{"id": "W-1", "subject": "Invoice", "body": "My invoice shows a wrong charge."}])
    with inbox.visit() as page:
        in_hand(page, "W-1")
        page.locator("#row mark", has_text="invoice").first.wait_for()
        assert page.locator("#row mark").first.get_attribute("title") == "speaks for billing"
        page.locator(".chip", has_text="billing").hover()
        page.get_by_text("For billing: invoice").wait_for()
        page.keyboard.press("w")
        assert page.locator("#row mark").count() == 0


def test_values_of_categories_are_marked_whatever_characters_they_have(fresh):
    areas = {"it-desk": "laptop", "c++ [x]/z": "network", "über (uns)": "website"}
    rows = [
        {
            "id": f"R-{at}",
            "area": area,
            "floor": at % 3,
            "subject": "Help",
            "text": f"number {at} is broken",
            "tags": [tag],
        }
        for at, (area, tag) in enumerate([*areas.items()] * 20)
    ]
    teach(fresh.service, rows)
    predict(fresh.service, without_tags([row | {"id": row["area"]} for row in rows[:3]]))
    with fresh.visit() as page:
        for area in reversed(areas):
            in_hand(page, area)
            expect(page.locator("#row .row-facts mark", has_text=area)).to_have_text(area)
            assert chosen(page) == [areas[area]]
            if area == "it-desk":
                # A number has no word: it is told by the name of its column.
                page.locator(".chip", has_text="laptop").hover()
                expect(page.locator("#why")).to_contain_text("floor (+")
                expect(page.locator("#why")).to_contain_text("it-desk (+")
            page.keyboard.press("Enter")
            until_tagged(fresh, page, area)
    assert fresh.service.row("it-desk")["tags"] == ["laptop"]


def test_rows_are_found_and_ordered(inbox):
    predict(inbox.service, [{"id": "S-1", "subject": "Rarely said", "body": "zanzibar"}])
    with inbox.visit() as page:
        in_hand(page, "S-1")
        page.keyboard.press("s")
        # Letters are no keys here.
        page.keyboard.type("zanzibar")
        expect(page.locator(".item")).to_have_count(1)
        page.locator("#search").fill("")
        expect(page.locator(".item")).to_have_count(4)
        for label, order in (("Review first", "review"), ("Most useful", "useful"), ("Newest", "newest")):
            with page.expect_response(lambda answer, order=order: f"order={order}" in answer.url) as asked:
                page.get_by_role("radio", name=label).check()
            ids = [row["id"] for row in asked.value.json()["rows"]]
            in_hand(page, ids[0])
            assert ids == [row["id"] for row in inbox.service.rows(order=order)["rows"]]


def test_single_keys_can_be_switched_off(inbox):
    with inbox.visit() as page:
        in_hand(page, TOP)
        page.keyboard.press("?")
        page.get_by_label("Use single keys").uncheck()
        page.keyboard.press("Escape")
        before = chosen(page)
        page.keyboard.press("1")
        page.keyboard.press("j")
        assert chosen(page) == before
        in_hand(page, TOP)
        page.reload()
        in_hand(page, TOP)
        page.keyboard.press("j")
        in_hand(page, TOP)
