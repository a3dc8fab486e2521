"""What notebooks get to show, parsed as a browser would: tags, attributes, and tables as texts."""

from __future__ import annotations

from html.parser import HTMLParser

_WITHOUT_END = {"img", "br"}
# Elements that only mark up text, tables and what can be folded away: none of them runs or fetches anything.
_HARMLESS = {
    "div", "style", "code", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "img",
}  # fmt: skip


class Shown(HTMLParser):
    """HTML of a notebook; what does not fit together is an error."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.rows, self.texts, self._open = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in _WITHOUT_END:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "style" in self._open:
            assert "url(" not in data
            assert "@import" not in data
        else:
            self.texts.append(data)
        if {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data

    def check_harmless(self):
        """Check that nothing here runs, and that nothing is fetched from anywhere."""
        assert set(self.tags) <= _HARMLESS
        assert {name for name, _ in self.attributes} <= {"class", "scope", "colspan", "open", "alt", "src"}
        assert all(value.startswith("data:image/png;base64,") for name, value in self.attributes if name == "src")

    def facts(self):
        """Return the rows of two cells, by the first of them."""
        return dict(row for row in self.rows if len(row) == 2)
