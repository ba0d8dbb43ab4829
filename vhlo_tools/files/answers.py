"""Bounds of HTTP answers: no more of one is taken than was asked for, and none is awaited for ever.

The libraries of all stores read answers by aiohttp, which reads a body of any size, and of a byte a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final

import aiohttp

#: The bytes of an answer that is no part of an object, such as a page of a listing, with a thousand keys of a kilobyte.
_ANSWER: Final = 1 << 24
#: The bytes of an answer that refuses a request.
_REFUSAL: Final = 1 << 20
#: The seconds that a request may take, with all that the libraries repeat of it, and the bytes of an object that must
#: come or go in each second beside.
SECONDS = 300
_SLOWEST: Final = 1 << 16

#: The bytes that are wanted of an answer, and the answers that have come.
_REQUEST: Final[ContextVar[tuple[int, list[aiohttp.ClientResponse]]]] = ContextVar("_REQUEST")


class OversizeError(Exception):
    """An answer is longer than what was asked for."""


async def bounded(work: Callable[[], Awaitable[Any]], *, wanted: int = _ANSWER, sent: int = 0) -> Any:
    """Do a request for up to ``wanted`` bytes, or one that sends bytes of an object."""
    came: list[aiohttp.ClientResponse] = []
    _REQUEST.set((wanted, came))
    size = sent if wanted == _ANSWER else wanted
    try:
        async with asyncio.timeout(SECONDS + size / _SLOWEST):
            return await work()
    except BaseException:
        # Not every library closes what it does not read to the end.
        for response in came:
            response.close()
        raise


class _Response(aiohttp.ClientResponse):  # type: ignore[misc]
    @property
    def headers(self) -> Any:
        """Leave out that the body was compressed: what is read is bounded, and a library would decompress it again."""
        found = super().headers.copy()
        found.popall("Content-Encoding", None)
        return found

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        """Bound the body before anybody reads of it."""
        return bound(await super().start(connection))


def bound(response: aiohttp.ClientResponse, *, is_object: bool = True) -> aiohttp.ClientResponse:
    """A request may bring others with it, such as one for credentials, whose answers are no part of an object."""
    # The session of a library may be used by others too, for what is no request of ours.
    wanted, came = _REQUEST.get((_ANSWER, []))
    most = wanted if is_object else _ANSWER
    response.content = _Body(response.content, most if response.status < 300 else _REFUSAL)
    came.append(response)
    return response


#: The ``response_class`` of a session.
BOUNDED: Final[Any] = _Response


class _Body:
    """The body of an answer, as its reader knows it, and an error where it goes on."""

    def __init__(self, body: aiohttp.StreamReader, left: int) -> None:
        self._body, self._left = body, left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)

    async def read(self, size: int = -1) -> bytes:
        found = bytearray()
        while size:
            piece = await self._body.read(min(size, self._left + 1) if size > 0 else self._left + 1)
            self._left -= len(piece)
            if self._left < 0:
                raise OversizeError
            found += piece
            if not piece or size > 0:
                break
        return bytes(found)
