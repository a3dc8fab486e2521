"""The other side of a service: the same calls from Python, waiting for the answer or as coroutines.

`labelrace.serve.calls` has the requests and reads the answers; here they are sent, by httpx (extra ``serve``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from labelrace.serve.calls import (
    Calls,
    Event,
    EventReader,
    LineReader,
    Reply,
    Request,
    Row,
    Steps,
    T,
    Wait,
    error_of,
    given_headers,
    is_loopback,
    wait_after,
)

if TYPE_CHECKING:
    import httpx

# Seconds without a byte after which a stream of events counts as broken: a service sends something more often.
_SILENCE = 60.0
_ENDED = Reply(0, {}, b"the stream of events ended")


def _import_httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise ImportError("labelrace.Client needs httpx: pip install 'labelrace[serve]'.") from None
    return httpx


def _reply(answer: httpx.Response) -> Reply:
    return Reply(answer.status_code, answer.headers, answer.content)


def _no_reply(error: Exception) -> Reply:
    """Return the reply that stands for a missing one."""
    return Reply(0, {}, (str(error).strip().partition("\n")[0] or type(error).__name__).encode())


class _Client:
    """The parameters and the settings of httpx that both clients share."""

    _sender: ClassVar[str]

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        user: str | None = None,
        timeout: float = 30.0,
        retries: int = 6,
    ) -> None:
        self._calls = Calls(url, retries)
        self.url = self._calls.url
        self._httpx = _import_httpx()
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
            raise ValueError(f"timeout must be a positive number of seconds, got {timeout!r}.")
        self._streaming = self._httpx.Timeout(timeout, read=max(timeout, _SILENCE))
        self._http: Any = getattr(self._httpx, self._sender)(
            headers=given_headers(token, user),
            timeout=timeout,
            # On this machine no proxy is used, and a token is for this address only.
            trust_env=not is_loopback(self.url),
            follow_redirects=False,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def _given(self, request: Request) -> dict[str, Any]:
        """Return the arguments with which httpx sends a request."""
        return {
            "method": request.method,
            "url": self.url + request.path,
            "params": dict(request.query),
            "content": request.content,
            "headers": request.headers,
        }

    def _given_stream(self, path: str) -> dict[str, Any]:
        return {"method": "GET", "url": self.url + path, "headers": {"Accept": "*/*"}, "timeout": self._streaming}


class Client(_Client):
    """A service (`labelrace serve`) from Python.

    A request that fails on its way, or that the service is too busy for, is sent again. A lesson counts once then: it
    has a key of its own, made once for each call. A client can be used by several threads, and as a context
    manager.

    Parameters
    ----------
    url : str
        The address of the service, such as ``"http://127.0.0.1:8080"``.
    token : str, default=None
        The access token, if the service needs one.
    user : str, default=None
        The name shown with the tags that this client gives. With tokens it is the name of the token.
    timeout : float, default=30.0
        Seconds to wait for an answer.
    retries : int, default=6
        How often a request is sent again at most; the pauses get longer, up to ten seconds.

    Examples
    --------
    >>> from labelrace import Client
    >>> client = Client("http://127.0.0.1:8080", user="Ann")
    >>> client
    Client('http://127.0.0.1:8080')
    >>> client.predict([{"id": "T-1", "title": "Oven too hot"}])  # doctest: +SKIP
    [{'id': 'T-1', 'tags': ['oven'], 'probabilities': {'oven': 0.93, 'bread': 0.11}, 'review': False}]
    >>> client.feedback([{"id": "T-1", "tags": ["oven", "thermostat"]}])  # doctest: +SKIP
    {'learned': 1, 'position': 18}
    """

    _sender = "Client"

    def predict(self, rows: Any, explain: bool = False) -> list[Row]:
        """Return for each row its tags, their probabilities, and whether a person should look at it.

        Parameters
        ----------
        rows : list of dicts, data frame or Arrow table
            Rows with an ``id`` wait for their tags from then on.
        explain : bool, default=False
            Whether to return the words and values that contribute to each tag.

        Returns
        -------
        list of dicts
        """
        return self._run(self._calls.predict(rows, explain))

    def learn(self, rows: Any, *, key: str | None = None) -> dict[str, Any]:
        """Teach rows that have their tags in ``tags``; return the number of learned rows, and the position after them.

        Parameters
        ----------
        rows : list of dicts, data frame or Arrow table
            More than 500 rows are sent as several requests, each of which is learned whole or not at all.
        key : str, default=None
            A name for this call, which counts once also if it is made again, for instance by a program that was started
            again. By default every call counts.

        Returns
        -------
        dict
            With ``learned``, how many rows, and ``position``, that of the journal after them; ``pending`` is true where
            they are on disk and not learned yet.
        """
        return self._run(self._calls.teach("/v1/learn", rows, key))

    def feedback(self, rows: Any, *, key: str | None = None) -> dict[str, Any]:
        """Give the right tags of rows that were predicted or learned, by their ids.

        Parameters
        ----------
        rows : list of dicts, data frame or Arrow table
            Each with ``id`` and the right ``tags``, or with tags to ``add`` and to ``remove``. An empty list says that
            no tag applies; ``"tags": None`` withdraws the tags.
        key : str, default=None
            As for `learn`.

        Returns
        -------
        dict
            With ``learned``, how many rows, and ``position``, that of the journal after them; ``pending`` is true where
            they are on disk and not learned yet.
        """
        return self._run(self._calls.teach("/v1/feedback", rows, key))

    def rows(
        self, state: str = "waiting", *, order: str = "newest", search: str = "", tag: str = "", limit: int = 50
    ) -> list[Row]:
        """List rows with their ids: those that wait for tags, in an order.

        Parameters
        ----------
        state : {"waiting", "tagged", "all"}, default="waiting"
        order : {"newest", "oldest", "review", "useful"}, default="newest"
        search : str, default=""
            Words that must be in a row.
        tag : str, default=""
            A tag that a row must have, or be suggested.
        limit : int, default=50
            The largest number of rows.

        Returns
        -------
        list of dicts
        """
        return self._run(self._calls.rows(state, order, search, tag, limit))

    def row(self, id: str | int) -> Row:
        """Return a row, the reasons for its suggested tags, and the history of its tags.

        Parameters
        ----------
        id : str or int

        Returns
        -------
        dict
        """
        return self._run(self._calls.row(id))

    def tags(self, search: str = "", *, limit: int = 1000) -> list[dict[str, Any]]:
        """List tags: how many rows have them, how well they are predicted, their synonyms.

        Parameters
        ----------
        search : str, default=""
            What the tag or a synonym has in it.
        limit : int, default=1000
            How many tags at most.

        Returns
        -------
        list of dicts
        """
        return self._run(self._calls.tags(search, limit))

    def rename(self, names: Mapping[str, str], *, preview: bool = False) -> dict[str, Any]:
        """Rename tags, old names to new ones; with ``preview`` only count the rows that have them.

        Parameters
        ----------
        names : dict from old to new name
        preview : bool, default=False
            Whether only to count the rows that have them.

        Returns
        -------
        dict
        """
        return self._run(self._calls.change_tags("rename", {"names": dict(names)}, preview))

    def merge(self, tags: Sequence[str], into: str, *, preview: bool = False) -> dict[str, Any]:
        """Merge tags into one; with ``preview`` only count the rows that have them.

        Parameters
        ----------
        tags : list of str
        into : str
            One of them, another tag, or a new name.
        preview : bool, default=False
            Whether only to count the rows that have them.

        Returns
        -------
        dict
        """
        return self._run(self._calls.change_tags("merge", {"tags": list(tags), "into": into}, preview))

    def retire(self, tags: Sequence[str], *, preview: bool = False) -> dict[str, Any]:
        """Retire tags, which are no longer predicted; with ``preview`` only count the rows that have them.

        Parameters
        ----------
        tags : list of str
        preview : bool, default=False
            Whether only to count the rows that have them.

        Returns
        -------
        dict
        """
        return self._run(self._calls.change_tags("retire", {"tags": list(tags)}, preview))

    def describe(self, tags: Mapping[str, Mapping[str, Any]], *, preview: bool = False) -> dict[str, Any]:
        """Set ``synonyms``, ``description`` and ``parent`` of tags, which need not have been in a row.

        Parameters
        ----------
        tags : dict from tag to dict
            With ``synonyms``, ``description`` and ``parent``, or some of them.
        preview : bool, default=False
            Whether only to count the rows that have them.

        Returns
        -------
        dict
        """
        return self._run(self._calls.change_tags("describe", {"tags": dict(tags)}, preview))

    def status(self) -> dict[str, Any]:
        """Return the numbers of learned and waiting rows, and the position in the journal.

        Returns
        -------
        dict
        """
        return self._run(self._calls.status())

    def quality(self) -> dict[str, Any]:
        """Return the prequential quality of the suggestions: now, by day, by tag.

        Returns
        -------
        dict
        """
        return self._run(self._calls.quality())

    def events(self) -> Iterator[Event]:
        """Yield events from now on, each with its name and data, until the caller stops.

        A connection that breaks is made again; events in between are lost.

        Yields
        ------
        Event
        """
        failures = 0
        while True:
            reader, reply = EventReader(), _ENDED
            try:
                with self._http.stream(**self._given_stream("/v1/events")) as answer:
                    if answer.status_code != 200:
                        answer.read()
                        reply = _reply(answer)
                    else:
                        for part in answer.iter_bytes():
                            for event in reader.read(part):
                                failures = 0
                                yield event
            except self._httpx.RequestError as error:
                reply = _no_reply(error)
            self._do(wait_after(reply, failures, self._calls.retries, self.url))
            failures += 1

    def export(self) -> Iterator[bytes]:
        """Yield the journal, a line of JSON for each entry; `labelrace serve import` reads them.

        Yields
        ------
        bytes
        """
        reader = LineReader()
        try:
            with self._http.stream(**self._given_stream("/v1/export")) as answer:
                if answer.status_code != 200:
                    answer.read()
                    raise error_of(_reply(answer), self.url)
                for part in answer.iter_bytes():
                    yield from reader.read(part)
                yield from reader.rest()
        except self._httpx.RequestError as error:
            raise error_of(_no_reply(error), self.url) from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        reply: Reply | None = None
        try:
            while True:
                reply = self._do(steps.send(reply))
        except StopIteration as end:
            return end.value

    def _do(self, step: Request | Wait) -> Reply | None:
        """Send a request, or wait."""
        if isinstance(step, Wait):
            time.sleep(step.seconds)
            return None
        try:
            return _reply(self._http.request(**self._given(step)))
        except self._httpx.RequestError as error:
            return _no_reply(error)


class AsyncClient(_Client):
    """A service (`labelrace serve`) from asynchronous Python: the methods of `labelrace.Client`, to be awaited.

    Parameters
    ----------
    url, token, user, timeout, retries
        As for `labelrace.Client`.

    Examples
    --------
    >>> from labelrace import AsyncClient
    >>> async def tag(rows):
    ...     async with AsyncClient("http://127.0.0.1:8080") as client:
    ...         return await client.predict(rows)
    """

    _sender = "AsyncClient"

    async def predict(self, rows: Any, explain: bool = False) -> list[Row]:
        """Return for each row its tags, probabilities, and whether it is for review. See `Client.predict`."""
        return await self._run(self._calls.predict(rows, explain))

    async def learn(self, rows: Any, *, key: str | None = None) -> dict[str, Any]:
        """Teach rows that have their tags in ``tags``. See `Client.learn`."""
        return await self._run(self._calls.teach("/v1/learn", rows, key))

    async def feedback(self, rows: Any, *, key: str | None = None) -> dict[str, Any]:
        """Give the right tags of rows that were predicted or learned, by their ids. See `Client.feedback`."""
        return await self._run(self._calls.teach("/v1/feedback", rows, key))

    async def rows(
        self, state: str = "waiting", *, order: str = "newest", search: str = "", tag: str = "", limit: int = 50
    ) -> list[Row]:
        """List rows with their ids: those that wait for tags, in an order. See `Client.rows`."""
        return await self._run(self._calls.rows(state, order, search, tag, limit))

    async def row(self, id: str | int) -> Row:
        """Return a row, the reasons for its suggested tags, and the history of its tags. See `Client.row`."""
        return await self._run(self._calls.row(id))

    async def tags(self, search: str = "", *, limit: int = 1000) -> list[dict[str, Any]]:
        """List tags: how many rows have them, how well they are predicted, their synonyms. See `Client.tags`."""
        return await self._run(self._calls.tags(search, limit))

    async def rename(self, names: Mapping[str, str], *, preview: bool = False) -> dict[str, Any]:
        """Rename tags, old names to new ones. See `Client.rename`."""
        return await self._run(self._calls.change_tags("rename", {"names": dict(names)}, preview))

    async def merge(self, tags: Sequence[str], into: str, *, preview: bool = False) -> dict[str, Any]:
        """Merge tags into one. See `Client.merge`."""
        return await self._run(self._calls.change_tags("merge", {"tags": list(tags), "into": into}, preview))

    async def retire(self, tags: Sequence[str], *, preview: bool = False) -> dict[str, Any]:
        """Retire tags, which are no longer predicted. See `Client.retire`."""
        return await self._run(self._calls.change_tags("retire", {"tags": list(tags)}, preview))

    async def describe(self, tags: Mapping[str, Mapping[str, Any]], *, preview: bool = False) -> dict[str, Any]:
        """Set ``synonyms``, ``description`` and ``parent`` of tags. See `Client.describe`."""
        return await self._run(self._calls.change_tags("describe", {"tags": dict(tags)}, preview))

    async def status(self) -> dict[str, Any]:
        """Return the numbers of learned and waiting rows, and the position in the journal. See `Client.status`."""
        return await self._run(self._calls.status())

    async def quality(self) -> dict[str, Any]:
        """Return the prequential quality of the suggestions: now, by day, by tag. See `Client.quality`."""
        return await self._run(self._calls.quality())

    async def events(self) -> AsyncIterator[Event]:
        """Yield events from now on, each with its name and data, until the caller stops. See `Client.events`."""
        failures = 0
        while True:
            reader, reply = EventReader(), _ENDED
            try:
                async with self._http.stream(**self._given_stream("/v1/events")) as answer:
                    if answer.status_code != 200:
                        await answer.aread()
                        reply = _reply(answer)
                    else:
                        async for part in answer.aiter_bytes():
                            for event in reader.read(part):
                                failures = 0
                                yield event
            except self._httpx.RequestError as error:
                reply = _no_reply(error)
            await self._do(wait_after(reply, failures, self._calls.retries, self.url))
            failures += 1

    async def export(self) -> AsyncIterator[bytes]:
        """Yield the journal, a line of JSON for each entry. See `Client.export`."""
        reader = LineReader()
        try:
            async with self._http.stream(**self._given_stream("/v1/export")) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    raise error_of(_reply(answer), self.url)
                async for part in answer.aiter_bytes():
                    for line in reader.read(part):
                        yield line
                for line in reader.rest():
                    yield line
        except self._httpx.RequestError as error:
            raise error_of(_no_reply(error), self.url) from error

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, steps: Steps[T]) -> T:
        reply: Reply | None = None
        try:
            while True:
                reply = await self._do(steps.send(reply))
        except StopIteration as end:
            return end.value

    async def _do(self, step: Request | Wait) -> Reply | None:
        """Send a request, or wait."""
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return _reply(await self._http.request(**self._given(step)))
        except self._httpx.RequestError as error:
            return _no_reply(error)
