"""Limited HTTP client: refuses the answer of a language model's server when it is too large.

A server that is broken or not the expected one may send without end; the answer would fill the memory of the process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

#: Bytes of an answer. Ten thousand tokens are about 40 kB, and a reasoning model may send its reasoning as well.
BYTES_MAX = 4 << 20


class _LimitedStream(httpx2.AsyncByteStream):
    """The body of a response, which fails after `BYTES_MAX`."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > BYTES_MAX:
                raise httpx2.ReadError(f"the answer has more than {BYTES_MAX} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _ask_for_plain_bytes(request: httpx2.Request) -> None:
    # A few bytes of a compressed body may be gigabytes.
    request.headers["Accept-Encoding"] = "identity"


async def _limit(response: httpx2.Response) -> None:
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise httpx2.ReadError("the answer is compressed, which the request excludes")
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _LimitedStream(response.stream)


def limited_client() -> httpx2.AsyncClient:
    """Return a client whose answers have at most `BYTES_MAX` bytes; it uses the proxies of the environment."""
    # Hooks and not a transport, because a client with its own transport ignores the proxies.
    return httpx2.AsyncClient(event_hooks={"request": [_ask_for_plain_bytes], "response": [_limit]})
