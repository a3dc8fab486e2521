"""``labelrace watch``: a service, live in the terminal."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from labelrace.cli import options
from labelrace.cli.messages import as_line
from labelrace.exceptions import ServiceError

if TYPE_CHECKING:
    from labelrace.serve.calls import Event
    from labelrace.serve.client import Client

_BARS = "▁▂▃▄▅▆▇█"
_N_WINDOWS, _N_EVENTS, _N_TAGS = 48, 8, 8
# Seconds between requests for the quality, and between pictures.
_REFRESH, _PICTURE = 5.0, 0.25


def watch(
    url: Annotated[
        str, options.argument(metavar="URL", help="The address of the service, such as http://127.0.0.1:8080.")
    ],
    token_file: Annotated[
        Path | None, options.option(help="A file with the token, in its first line that is not a comment.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print events as lines of JSON, as they come.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Print the current figures, and end.")] = False,
) -> None:
    """Watch a service: rows, tags, waiting rows, the quality of its suggestions, and events, until Ctrl-C.

    [dim]Example:[/dim] labelrace watch http://127.0.0.1:8080
    """
    from labelrace.serve.client import Client

    connect = partial(Client, url, None if token_file is None else read_token(token_file), timeout=10.0, retries=3)
    if not (once or as_json):
        _show(connect)
        return
    with connect() as client:
        if not once:
            for event in client.events():
                typer.echo(json.dumps({"event": event.name, **event.data}))
        elif as_json:
            typer.echo(json.dumps(ask(client)._asdict()))
        else:
            Console().print(View(ask(client)).picture())


def read_token(path: Path) -> str:
    """Return the token of a file: its first line, or the token in the first line of a service's file of tokens."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    words = next((words for words in lines if not words[0].startswith("#")), None)
    if words is None:
        raise ValueError(f"{path} must hold a token, got an empty file.")
    return words[0] if len(words) == 1 else words[1]


class Known(NamedTuple):
    """The state of a service at a time."""

    url: str
    status: dict[str, Any]
    quality: dict[str, Any]
    tags: list[dict[str, Any]]


def ask(client: Client) -> Known:
    """Ask a service for everything that is shown."""
    return Known(client.url, client.status(), client.quality(), client.tags(limit=_N_TAGS))


class View:
    """The picture of a service.

    Parameters
    ----------
    known : Known
    """

    def __init__(self, known: Known) -> None:
        self.known = known
        self._events: deque[Text] = deque(maxlen=_N_EVENTS)
        self._trouble = ""

    def take(self, news: Event | Known | ServiceError) -> None:
        """Take over a new state, an event, or an error."""
        if isinstance(news, ServiceError):
            self._trouble = news.detail
            return
        self._trouble = ""
        if isinstance(news, Known):
            self.known = news
        elif news.name == "position":
            self.known = self.known._replace(status=self.known.status | news.data)
        elif told := _sentence(news):
            line = Text(time.strftime("%H:%M:%S  "), style="dim")
            self._events.append(line.append(as_line(told), style="yellow" if news.name == "mark" else "not dim"))

    def picture(self) -> Group:
        """Return the picture."""
        parts = [self._heading(), Text(), self._numbers(), *self._curve(), *self._frequent()]
        if marks := self.known.quality.get("marks"):
            told = ", ".join(f"{mark['kind']} at row {mark['row']:,}" for mark in marks[-4:])
            parts += [Text(), Text(f"Marks: {told}", style="yellow")]
        parts += [Text(), *self._events] if self._events else []
        return Group(*parts)

    def _heading(self) -> Text:
        heading = Text(f"labelrace at {as_line(self.known.url)}", style="bold")
        return heading.append(f"   {as_line(self._trouble)}", style="red") if self._trouble else heading

    def _numbers(self) -> Table:
        status, quality = self.known.status, self.known.quality.get("recent") or {}
        numbers = {
            "rows learned": f"{status.get('rows', 0):,}",
            "position": f"{status.get('position', 0):,}",
            "tags": f"{status.get('tags', 0):,}",
            "waiting": f"{status.get('waiting', 0):,}",
            "corrected": f"{status.get('corrections', 0):,}",
            "example F1": _share(quality.get("example_f1")),
            "precision": _share(quality.get("precision")),
            "recall": _share(quality.get("recall")),
            "as suggested": _share(quality.get("agreement")),
        }
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
        for name, number in numbers.items():
            # In a narrow terminal names go on two lines, and numbers stay whole.
            table.add_column(name, justify="right", min_width=max(map(len, (*name.split(), number))))
        table.add_row(*numbers.values())
        return table

    def _curve(self) -> list[Text]:
        values = [window.get("example_f1") for window in self.known.quality.get("windows", ())[-_N_WINDOWS:]]
        known = [value for value in values if value is not None]
        if len(known) < 2:
            return []
        return [Text(), Text("F1 over the last rows  ", style="dim").append(sparkline(known), style="not dim green")]

    def _frequent(self) -> list[Text | Table]:
        if not self.known.tags:
            return []
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("tag", max_width=40, no_wrap=True)
        for name in ("rows", "F1", "recent F1", ""):
            table.add_column(name, justify="right")
        for tag in self.known.tags:
            numbers = f"{tag['rows']:,}", _share(tag.get("f1")), _share(tag.get("recent_f1")), tag.get("trend", "")
            table.add_row(Text(as_line(tag["tag"])), *numbers)
        return [Text(), table]


def sparkline(values: Sequence[float]) -> str:
    """Draw shares as bars, one character each, between the lowest and the highest of them.

    Examples
    --------
    >>> sparkline([0.2, 0.4, 0.5, 0.6])
    '▁▅▆█'
    """
    low, high = min(values), max(values)
    # Small changes are shown as small.
    span = max(high - low, 0.1)
    top = len(_BARS) - 1
    return "".join(_BARS[round(top * (value - low) / span)] for value in values)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _sentence(event: Event) -> str:
    """Return an event in words; empty for one that is not shown."""
    data = event.data
    if event.name == "row":
        by = f" by {data['who']}" if data.get("who") else ""
        return f"{data.get('id')}: {'tagged' if data.get('state') == 'tagged' else 'waits for its tags'}{by}"
    if event.name == "open":
        return f"{data.get('id')}: opened by {data['open_by']}" if data.get("open_by") else ""
    if event.name == "mark":
        return f"{'Drift confirmed' if data.get('kind') == 'drift' else 'Alarm'} at row {data.get('row')}"
    return ""


def _show(connect: Callable[[], Client]) -> None:
    """Show a service until Ctrl-C; without a terminal, print events as lines."""
    console = Console()
    if not console.is_terminal:
        for event in connect().events():
            if told := _sentence(event):
                typer.echo(as_line(told))
        return
    view, news = View(ask(connect())), queue.SimpleQueue[Event | Known | ServiceError]()
    # Each has a client of its own, which ends with the process: nothing is closed while another thread reads.
    for work in (_follow, _ask_again):
        threading.Thread(target=work, args=(connect(), news.put), daemon=True).start()
    with Live(view.picture(), console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(_PICTURE)
            while not news.empty():
                view.take(news.get())
            live.update(view.picture(), refresh=True)


def _follow(client: Client, tell: Callable[[Any], None]) -> None:
    """Pass events on; a service that is gone may come back."""
    while True:
        try:
            for event in client.events():
                tell(event)
        except ServiceError as error:
            tell(error)
            time.sleep(_PICTURE)


def _ask_again(client: Client, tell: Callable[[Any], None]) -> None:
    """Ask now and then for what events do not have."""
    while True:
        time.sleep(_REFRESH)
        try:
            tell(ask(client))
        except ServiceError as error:
            tell(error)
