"""As-of parameters: a past state of the memory, named by a version or a time."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator, TypeAdapter, ValidationError

from recollect.events.envelope import microseconds, now_us
from recollect.events.errors import InvalidInput
from recollect.events.late_pattern import late_pattern

_VERSION = late_pattern(r"[0-9]{1,11}")
# Stricter than pydantic, which accepts seconds since 1970 too: they cannot be distinguished from a version.
_TIME = late_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.]+([Zz]|[+-][0-9]{2}:[0-9]{2})")
_TIME_ADAPTER = TypeAdapter[datetime](AwareDatetime)
_HINT = (
    "give a version, such as 42, or a time with its zone, such as 2026-11-20T09:00:00Z (a + in a URL is written %2B)"
)


def parse_as_of(value: object) -> int | datetime | None:
    """Return `value` as a version or an aware time; None when it is None.

    Parameters:
        value: a whole number from 0 on, an aware datetime, or either of them as text: digits, or RFC 3339.

    Raises:
        InvalidInput: `value` is neither a version nor a time.
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
                return _TIME_ADAPTER.validate_python(value)
            except ValidationError:
                pass
        case _:
            pass
    raise InvalidInput(_HINT, field="as_of")


def parse_past_us(value: object, *, field: str) -> int:
    """Return the time `value` in microseconds since 1970 UTC; the present when it is None.

    Raises:
        InvalidInput: `value` is not a time with a zone, or lies in the future.
    """
    present_us = now_us()
    if value is None:
        return present_us
    try:
        moment = parse_as_of(value)
    except InvalidInput:
        moment = None
    if not isinstance(moment, datetime):
        raise InvalidInput("give a time with its zone, such as 2026-11-20T09:00:00Z", field=field)
    if microseconds(moment) > present_us:
        raise InvalidInput("lies in the future; give the present or a past time", field=field)
    return microseconds(moment)


#: The parameter in Python: a version, an aware time, or either of them as text.
AsOf = int | datetime | str | None
#: The field of a request.
AsOfField = Annotated[int | AwareDatetime | None, BeforeValidator(parse_as_of)]
