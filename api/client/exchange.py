"""Retry policy of the client, independent of the transport: attempts, pauses and time limits of a call.

The synchronous and the asynchronous client send what `exchange` yields, so that both repeat calls in the same way.
"""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Mapping
from http import HTTPStatus
from typing import Any, TypeVar, cast

import httpx2
import orjson
from msgspec import Struct

from recollect.api.client.call import Call
from recollect.api.http_contract import CONTRACT, CONTRACT_HEADER, error_of
from recollect.events.errors import (
    AppendUnknown,
    ContractMismatch,
    RecollectError,
    ServerUnavailable,
    StorageError,
    TooLarge,
    TooManyRequests,
)

Result = TypeVar("Result")

#: The pause after the first attempt, and the longest one; each is twice the one before, less up to a half by chance, so
#: that clients do not return to a server together.
PAUSE_SECONDS = 0.1
PAUSE_SECONDS_MAX = 2.0
#: Seconds in which a call is sent again, however long it may take: a server that is started again is back by then.
REPEAT_SECONDS_MAX = 30.0
#: Seconds in which a connection is made: longer than three lost packets.
_CONNECT_SECONDS_MAX = 5.0
#: Answers that a later attempt may not get: the request came too slowly, a rate, and what a proxy or a disk reports.
_PASSING = frozenset((408, 429, 502, 503, 504))
#: Failures before a request was sent: the server cannot have done anything.
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
#: Failures for which a retrieval has an empty result, and no error: none of them is an error of the caller.
_OUTAGES = (ServerUnavailable, ContractMismatch, StorageError, TooManyRequests)


class Limits(Struct, frozen=True, kw_only=True):
    """The time limits of a client."""

    #: Seconds of a short call with all its attempts; and those in which any call is tried again.
    timeout_seconds: float
    #: Seconds of a call that works on a whole namespace.
    work_timeout_seconds: float
    #: Whether a retrieval without an answer has an empty result, and raises no error.
    fails_open: bool


class Attempt(Struct, frozen=True, kw_only=True):
    """A request to send."""

    call: Call[Any]
    #: `time.monotonic()` seconds at which it ends.
    deadline: float

    def timeout(self) -> httpx2.Timeout:
        """Return the time limits of its steps."""
        left = max(0.001, self.deadline - time.monotonic())
        return httpx2.Timeout(left, connect=min(left, _CONNECT_SECONDS_MAX))


class RetryPause(Struct, frozen=True, kw_only=True):
    """A time to wait."""

    seconds: float


class HttpAnswer(Struct, frozen=True, kw_only=True):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Step = Attempt | RetryPause
Reply = HttpAnswer | httpx2.HTTPError | None


def exchange(call: Call[Result], address: str, limits: Limits) -> Generator[Step, Reply, Result]:
    """Yield what is to be sent, and pauses; return the result of the call.

    An attempt is answered by `send` with the answer of the server, or with the error of the transport.

    Raises:
        RecollectError: the error of the server, or that it was not reached.
    """
    started = time.monotonic()
    try:
        return (yield from _attempts(call, address, limits, started))
    except _OUTAGES as error:
        if call.fallback is None or not limits.fails_open:
            raise
        return call.fallback(error, (time.monotonic() - started) * 1_000)


def _attempts(call: Call[Result], address: str, limits: Limits, started: float) -> Generator[Step, Reply, Result]:
    """Send the call until it is answered, or no time is left."""
    seconds = limits.timeout_seconds if call.duration == "short" else limits.work_timeout_seconds
    if call.work_seconds is not None:
        seconds = limits.timeout_seconds + call.work_seconds
    deadline, repeat_until = started + seconds, started + min(limits.timeout_seconds, REPEAT_SECONDS_MAX)
    # Whether the server may have done what an earlier attempt asked for.
    is_unknown = False
    number = 0
    while True:
        reply = yield Attempt(call=call, deadline=deadline)
        if isinstance(reply, HttpAnswer) and reply.status not in _PASSING:
            return _result(call, address, reply)
        is_ambiguous = _is_ambiguous(reply)
        is_unknown = is_unknown or is_ambiguous
        pause = _pause_seconds(number, reply)
        if (is_ambiguous and not call.is_repeatable) or time.monotonic() + pause >= repeat_until:
            raise _failure(call, address, reply, seconds, is_unknown=is_unknown)
        yield RetryPause(seconds=pause)
        number += 1


def _is_ambiguous(reply: Reply) -> bool:
    """Return whether the server may have done what was asked: its answer was lost, or a proxy answers for it."""
    if isinstance(reply, HttpAnswer):
        return reply.status in (502, 503, 504) and error_of(_decoded(reply.body) or {}) is None
    return not isinstance(reply, _NOT_SENT)


def _pause_seconds(number: int, reply: Reply) -> float:
    """Return the pause after the attempt `number`, from 0: that of the server, or one that doubles."""
    if isinstance(reply, HttpAnswer):
        wanted = reply.headers.get("retry-after", "")
        if wanted.isdecimal():
            return float(wanted[:9])
    return min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * 2**number) * random.uniform(0.5, 1)  # noqa: S311 -- not a secret


def _failure(call: Call[Any], address: str, reply: Reply, seconds: float, *, is_unknown: bool) -> RecollectError:
    """Return the error of a call whose attempts have ended."""
    if isinstance(reply, HttpAnswer):
        error = _refusal(call, address, reply)
    elif isinstance(reply, httpx2.TimeoutException):
        error = ServerUnavailable(f"{address} did not answer {call.name} within {seconds:g} seconds{_CHECK}")
    elif isinstance(reply, httpx2.TransportError):
        error = ServerUnavailable(f"{address} cannot be reached for {call.name} ({_reason(reply)}){_CHECK}")
    else:
        error = ContractMismatch(f"{address} sent an answer to {call.name} that is no HTTP ({_reason(reply)})")
    if not is_unknown or isinstance(error, TooManyRequests):
        return error
    if call.event_ids:
        unknown = AppendUnknown(f"{error}. The events may be recorded all the same: send them again with the same ids")
        unknown.event_ids = call.event_ids
        return unknown
    if not call.is_repeatable and isinstance(error, ServerUnavailable):
        return ServerUnavailable(f"{error}. It may have been done all the same, so it was not sent again; look first")
    return error


_CHECK = "; check the address, and that the server runs"


def _reason(error: object) -> str:
    """Return the message of a transport error on one line; its type where it has none."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def _result(call: Call[Result], address: str, answer: HttpAnswer) -> Result:
    """Return the result of a call from its answer; raise the error that it holds."""
    contract = answer.headers.get(CONTRACT_HEADER, "")
    if contract.isdecimal() and int(contract[:9]) != CONTRACT:
        older = "server" if int(contract[:9]) < CONTRACT else "client"
        raise ContractMismatch(
            f"{address} speaks contract {int(contract[:9])} and this client contract {CONTRACT}; upgrade the {older}"
        )
    if answer.status >= HTTPStatus.BAD_REQUEST:
        raise _refusal(call, address, answer)
    content: Any = _decoded(answer.body)
    if answer.status >= HTTPStatus.MULTIPLE_CHOICES or content is None:
        raise ContractMismatch(_foreign(call, address, answer))
    try:
        return call.read(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ContractMismatch(
            f"the answer of {address} to {call.name} has not the fields that this client reads "
            f"({type(error).__name__}: {_reason(error)}); upgrade the older one of both"
        ) from error


def _refusal(call: Call[Any], address: str, answer: HttpAnswer) -> RecollectError:
    """Return the error in an answer, in the class that it has on the server."""
    problem = _decoded(answer.body)
    error = error_of(problem) if isinstance(problem, dict) else None
    if isinstance(error, TooManyRequests) or (error is None and answer.status == HTTPStatus.TOO_MANY_REQUESTS):
        wanted = answer.headers.get("retry-after", "")
        seconds = int(wanted[:9]) if wanted.isdecimal() else 1
        message = str(error) if error is not None else f"{address} refuses {call.name}: too many requests"
        return TooManyRequests(message, retry_seconds=seconds)
    if error is not None:
        return error
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status == HTTPStatus.REQUEST_TIMEOUT:
        detail = str(problem.get("detail", "")) if isinstance(problem, dict) else ""
        return ServerUnavailable(f"{address} answers {call.name} with {detail[:200] or _described(answer)}")
    if answer.status in (413, 414, 431):
        return TooLarge(f"{address} refuses {call.name} as too large; send less at once", field="body")
    if answer.status in (404, 405):
        return ContractMismatch(
            f"{address} has no route {call.name} ({_described(answer)}): it is older than this client, so upgrade the "
            "server; or the address is not that of Recollect"
        )
    return ContractMismatch(_foreign(call, address, answer))


def _foreign(call: Call[Any], address: str, answer: HttpAnswer) -> str:
    """Return the message about an answer that Recollect does not give."""
    place = f" to {answer.headers['location'][:200]}" if "location" in answer.headers else ""
    return (
        f"{address} answers {call.name} with {_described(answer)}{place}, and not as Recollect does; check the "
        "address, and the proxies before it"
    )


def _described(answer: HttpAnswer) -> str:
    """Return the status and the type of an answer."""
    try:
        phrase = f" {HTTPStatus(answer.status).phrase}"
    except ValueError:
        phrase = ""
    return f"{answer.status}{phrase} ({answer.headers.get('content-type', 'no type')[:80]})"


def _decoded(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a body; None for anything else."""
    try:
        content: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return cast("dict[str, Any]", content) if isinstance(content, dict) else None
