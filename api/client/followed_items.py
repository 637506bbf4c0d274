"""Followed items: the position of a client in a stream of server-sent events, and the items that its parts complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any, cast

import httpx2
import orjson

from recollect.api.client import page_calls
from recollect.api.client.call import Call
from recollect.api.client.connection import sent_options
from recollect.api.client.exchange import Attempt
from recollect.api.http_contract import CONTRACT, CONTRACT_HEADER, error_of
from recollect.events.errors import ContractMismatch
from recollect.events.limits import EVENT_BYTES_MAX

#: Bytes of an item: characters of an event may be six bytes in JSON.
_ITEM_BYTES_MAX = 8 * EVENT_BYTES_MAX
#: Time limits of a connection. The server sends a comment every 15 seconds; without three of them it is lost.
_TIMEOUT = httpx2.Timeout(45.0, connect=5.0)
#: Seconds before a connection that has ended is made again, so that a server that ends each at once is not flooded.
PAUSE_SECONDS = 0.5
#: Digits of the id of an item, a version of the log.
_ID_CHARS_MAX = 12
_END = b"\n\n"


class FollowedItems:
    """The items of a namespace after a position, over one connection after another.

    Parameters:
        after: the position before the first item.

    Raises:
        InvalidNamespace: the name is wrong.
    """

    def __init__(self, namespace: str, after: int, types: Sequence[str], *, knowledge: bool) -> None:
        self._namespace, self._types, self._knowledge = namespace, types, knowledge
        #: Every item up to this position is handled.
        self._position = after
        self._rest = bytearray()
        self.call()

    def call(self) -> Call[None]:
        """Describe the request for the items after the position, and begin a new connection."""
        self._rest.clear()
        return page_calls.follow(self._namespace, self._position, self._types, self._knowledge)

    def add(self, part: bytes) -> Iterator[dict[str, Any]]:
        """Yield the items that a part of the stream completes; one is handled when the next is asked for.

        Raises:
            RecollectError: the server sent it as its last item. ContractMismatch: it is not an item of Recollect.
        """
        searched = max(0, len(self._rest) - 1)
        self._rest += part
        end = self._rest.rfind(_END, searched)
        if end < 0:
            if len(self._rest) > _ITEM_BYTES_MAX:
                raise ContractMismatch(f"the server sent an item of more than {_ITEM_BYTES_MAX:,} bytes")
            return
        frames, self._rest = self._rest[:end], self._rest[end + len(_END) :]
        for frame in bytes(frames).split(_END):
            # A comment, ":", keeps the connection open.
            fields = dict(line.split(b": ", 1) for line in frame.split(b"\n") if b": " in line)
            if b"data" not in fields:
                continue
            item = _item(fields[b"data"])
            if fields.get(b"event") == b"error":
                raise error_of(item) or ContractMismatch(f"the server ended the stream: {str(item)[:200]}")
            yield item
            # Several items may have a position; the last one has it as its id.
            id = fields.get(b"id", b"")
            self._position = int(id) if id.isdigit() and len(id) <= _ID_CHARS_MAX else self._position


def stream_options(attempt: Attempt, url: str) -> dict[str, Any]:
    """Return the options of the request for a stream."""
    return sent_options(attempt, url) | {"timeout": _TIMEOUT}


def is_stream(response: httpx2.Response) -> bool:
    """Return whether a response is a stream of this version of Recollect."""
    return (
        response.status_code == HTTPStatus.OK
        and response.headers.get("content-type", "").startswith("text/event-stream")
        and response.headers.get(CONTRACT_HEADER, str(CONTRACT)) == str(CONTRACT)
    )


def _item(data: bytes) -> dict[str, Any]:
    try:
        item: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        item = None
    if not isinstance(item, dict):
        raise ContractMismatch("the server sent an item that is not a JSON object; check the proxies before it")
    return cast("dict[str, Any]", item)
