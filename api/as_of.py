"""A moment of the past, as callers name it: a version, or a time."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator, TypeAdapter, ValidationError

from recollect.events.envelope import microseconds, now_us
from recollect.events.errors import InvalidInput

_VERSION = re.compile(r"[0-9]{1,11}")
# What else pydantic takes for a time, such as seconds since 1970, looks too much like a version.
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.]+([Zz]|[+-][0-9]{2}:[0-9]{2})")
_TIMES = TypeAdapter[datetime](AwareDatetime)
_WANTED = (
    "give a version, such as 42, or a time with its zone, such as 2026-11-20T09:00:00Z (a + in a URL is written %2B)"
)


def parse_as_of(value: object) -> int | datetime | None:
    """Return the version or the aware time that `value` names; None when it is None.

    Parameters:
        value: a whole number from 0 on, an aware datetime, or either of them as text: digits, or RFC 3339.

    Raises:
        InvalidInput: it is neither.
    """
    match value:
        case None:
            return None
        case bool():
            pass
        case int() if 0 <= value < 10**11:
            return value
        case datetime() if value.tzinfo is not None:
            return value
        case str() if _VERSION.fullmatch(value):
            return int(value)
        case str() if _TIME.fullmatch(value):
            try:
                return _TIMES.validate_python(value)
            except ValidationError:
                pass
        case _:
            pass
    raise InvalidInput(_WANTED, field="as_of")


def parse_past_us(value: object, *, field: str) -> int:
    """Return the time that `value` names, in microseconds since 1970 UTC; the present for None.

    Raises:
        InvalidInput: it is no time with a zone, or lies in the future.
    """
    present_us = now_us()
    if value is None:
        return present_us
    try:
        found = parse_as_of(value)
    except InvalidInput:
        found = None
    if not isinstance(found, datetime):
        raise InvalidInput("give a time with its zone, such as 2026-11-20T09:00:00Z", field=field)
    if microseconds(found) > present_us:
        raise InvalidInput("lies in the future: nothing is due then yet", field=field)
    return microseconds(found)


#: What callers of Python may give: a version, an aware time, or either of them as text.
AsOf = int | datetime | str | None
#: The same as a field of a request.
AsOfField = Annotated[int | AwareDatetime | None, BeforeValidator(parse_as_of)]
