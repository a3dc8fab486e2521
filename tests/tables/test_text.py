"""Words of texts: HTML is stripped in linear time, and words are whole in every script."""

from __future__ import annotations

import time

import pytest

from labelrace.tables.text import MAX_CHARACTERS, count_words, strip_html


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<p>Fish &amp; <b class='x'>chips</b></p>", ["Fish", "&", "chips"]),
        ("<!-- not\n<p>this</p> -->but<!---->this", ["but", "this"]),
        ("a<script type='x'>if (1 < 2) no()</script >b<STYLE>p {}</style>c", ["a", "b", "c"]),
        ("a<script><!-- no() --></script>b", ["a", "b"]),
        ("<scripts>kept</scripts> 1 < 2, a <b and b> c", ["kept", "1", "<", "2,", "a", "c"]),
        ("<!-- no end", ["<!--", "no", "end"]),
        ("<script>no end", ["no", "end"]),
        ("<br/>&#101;gg&#x67;", ["eggg"]),
        ("x&#" + "1" * 10_000 + ";y", ["x\ufffdy"]),
    ],
)
def test_what_is_visible(page, words):
    assert strip_html(page).split() == words


@pytest.mark.parametrize("part", ["<!--", "<script>", "<style>", "<script><style>", "<a ", "<!-- -->", "&#1", "</script "])
def test_stripping_takes_linear_time(part):
    start = time.process_time()
    strip_html(part * (MAX_CHARACTERS // len(part)) + "</style>")
    assert time.process_time() - start < 1


def test_words_of_html():
    assert count_words(["<p>Two <i>eggs</i></p>"], is_html=True).words == ["two", "eggs"]
