"""Connection: the httpx2 helpers that the synchronous and the asynchronous client share."""

from __future__ import annotations

import logging
import time
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2

from recollect.api.client.exchange import Attempt, HttpAnswer
from recollect.events.errors import InvalidInput
from recollect.events.late_pattern import late_pattern
from recollect.events.storage.namespace_folder import folder_name

#: Seconds of a call with all its attempts: a retrieval takes under one, and an embedding model loads in a few.
TIMEOUT_SECONDS = 10.0
#: Seconds of a call that works on a whole namespace: a replay of a million events takes minutes.
WORK_TIMEOUT_SECONDS = 3_600.0
#: Connections of a client; the server refuses more than 512 of all clients together.
_CONNECTIONS_MAX = 100
#: Seconds after which an idle connection is not used again. The server closes it after five.
_IDLE_SECONDS_MAX = 4.0
#: Bytes of an answer: the export of a namespace with a million messages. More would fill the memory of a bot.
ANSWER_BYTES_MAX = 1 << 30
#: What is before a namespace in the URLs of a server.
_NAMESPACES = "/v1/namespaces/"
_TOKEN = late_pattern(r"[\x21-\x7e]{1,1000}")


def hide_names(record: logging.LogRecord) -> bool:
    """Take namespaces, ids and query parameters out of the URLs in a line of httpx2, which logs each request."""
    if isinstance(record.args, tuple):
        record.args = tuple(_without_names(each) if isinstance(each, httpx2.URL) else each for each in record.args)
    return True


def _without_names(url: httpx2.URL) -> object:
    before, mark, after = str(url).partition(_NAMESPACES)
    name, _, rest = after.partition("?")[0].partition("/")
    return f"{before}{mark}{folder_name(unquote(name))[:12]}/{rest.partition('/')[0]}" if mark else url


logging.getLogger("httpx2").addFilter(hide_names)


def checked_url(url: str) -> str:
    """Return the address of a server without a slash at its end.

    Raises:
        InvalidInput: it is not one of http or https, or holds more than the address.
    """
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        raise InvalidInput(_ADDRESS, field="url") from None
    if not is_address:
        raise InvalidInput(_ADDRESS, field="url")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("holds a name or a password; give the token as `token`", field="url")
    if parts.query or parts.fragment:
        raise InvalidInput("has a query; give the address alone", field="url")
    return url.rstrip("/")


_ADDRESS = "give the address of a server, such as http://127.0.0.1:8787"


def pool_options(url: str, token: str | None) -> dict[str, Any]:
    """Return the options of an HTTP client for the server at `url`.

    Raises:
        InvalidInput: the token cannot be sent. The message is without it.
    """
    # A few bytes of a compressed body may be gigabytes.
    headers = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "recollect"}
    if token is not None:
        if not _TOKEN.fullmatch(token):
            raise InvalidInput("is not a token: those of `recollect token create` begin with rcl_", field="token")
        headers["authorization"] = f"Bearer {token}"
    limits = httpx2.Limits(
        max_connections=_CONNECTIONS_MAX,
        max_keepalive_connections=_CONNECTIONS_MAX,
        keepalive_expiry=_IDLE_SECONDS_MAX,
    )
    # No proxy of the environment reaches this machine.
    return {"headers": headers, "limits": limits, "follow_redirects": False, "trust_env": not _is_local(url)}


def _is_local(url: str) -> bool:
    """Return whether the address is one of this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def sent_options(attempt: Attempt, url: str) -> dict[str, Any]:
    """Return the options of the request of an attempt."""
    call = attempt.call
    options: dict[str, Any] = {"method": call.method, "url": url + call.path, "timeout": attempt.timeout()}
    if call.parameters:
        options["params"] = list(call.parameters)
    if call.body is not None:
        options |= {"content": call.body, "headers": {"content-type": "application/json"}}
    return options


class Body:
    """The body of an answer while it arrives, within its limits of time and size."""

    def __init__(self, attempt: Attempt) -> None:
        self._deadline = attempt.deadline
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        """Add a part.

        Raises:
            ReadTimeout: the time of the attempt is over. ReadError: the body is over `ANSWER_BYTES_MAX`.
        """
        self._parts.append(part)
        self._size += len(part)
        if self._size > ANSWER_BYTES_MAX:
            raise httpx2.ReadError(f"the answer has more than {ANSWER_BYTES_MAX:,} bytes")
        if time.monotonic() > self._deadline:
            raise httpx2.ReadTimeout("out of time")

    def answer(self, response: httpx2.Response) -> HttpAnswer:
        """Return the answer once the body is complete."""
        return HttpAnswer(status=response.status_code, headers=response.headers, body=b"".join(self._parts))
