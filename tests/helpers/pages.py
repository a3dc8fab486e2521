"""Pages of a service in a browser: a server, and visits of people with names."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import NamedTuple

from helpers.browser import visiting
from helpers.http import listening
from helpers.serving import serving

# How the browser itself tells that a request was refused.
REFUSED = ("Failed to load resource",)


class Site(NamedTuple):
    """A service with its address, and a browser."""

    service: object
    url: str
    browser: object

    @contextmanager
    def visit(self, path="/", who="Ann", live=True, **settings):
        """Yield a page of the service; at the end it has said nothing, and asked no other host."""
        script = f"localStorage.setItem('labelrace.name', {json.dumps(who)})" if who else ""
        with visiting(self.browser, self.url, script=script, **settings) as page:
            page.goto(self.url + path)
            if live:
                page.locator("#live[data-state=live]").wait_for()
            yield page


@contextmanager
def site(browser, folder, lines=()):
    """Yield a service that is served, from nothing, and visited."""
    with serving(folder) as service, listening(service, lines) as port:
        yield Site(service, f"http://127.0.0.1:{port}", browser)
