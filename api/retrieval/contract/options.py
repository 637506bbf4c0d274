"""Options: the fields of a request as named arguments of `retrieve`, `append_and_retrieve` and `turn`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any, TypedDict

from recollect.api.as_of import AsOf
from recollect.api.retrieval.contract.request import Format, Kind, Mode, Ranking, RetrieveRequest
from recollect.events.errors import InvalidInput
from recollect.events.field_problems import OWNER_NAMES

#: A value of metadata, or several values to match any of.
_MetadataOption = str | int | float | bool | Sequence[str | int | float | bool | None] | None


class _CommonOptions(TypedDict, total=False):
    """The options that every retrieval has; `RetrieveRequest` says what each does."""

    limit: int
    budget_tokens: int
    kinds: Collection[Kind] | None
    since: datetime | str | None
    until: datetime | str | None
    timezone: str | None
    session_id: str | None
    also: Sequence[str]
    mode: Mode
    speaker: str | None
    shared_rules: bool
    format: Format
    window_tokens: int | None
    gate: bool
    ranking: Ranking
    min_trust: int
    no_store: bool
    expand: bool


class TurnOptions(_CommonOptions, total=False):
    """The options of a retrieval for a message that is appended in the same call."""

    metadata: Mapping[str, _MetadataOption]


class RetrieveOptions(TurnOptions, total=False):
    """The options of a retrieval: the fields of `RetrieveRequest` without the query."""

    as_of: AsOf


class AppendOptions(TurnOptions, total=False):
    """The options of `append_and_retrieve`."""

    #: Whether to wait for the embedding model.
    wait: bool


class ConversationOptions(_CommonOptions, total=False):
    """The options of `turn`, which labels messages by its own argument `metadata`."""

    #: Whether to wait for the embedding model.
    wait: bool


def check_options(options: Mapping[str, Any], others: Collection[str]) -> None:
    """Check the options of the retrievals to come, when they are given.

    Parameters:
        others: arguments of the function besides, which a wrong name may mean.

    Raises:
        InvalidInput: there is no such option, which names the nearest one; or a value is wrong.
    """
    names = AppendOptions.__annotations__.keys()
    for name in options.keys() - names:
        near = ["namespace"] if name in OWNER_NAMES else get_close_matches(name, [*names, *others], n=1)
        if near or name in RetrieveRequest.model_fields:
            raise InvalidInput(f"there is no such option{f'; did you mean {near[0]}?' if near else ''}", field=name)
    RetrieveRequest.checked({"query": "", **{name: options[name] for name in options if name != "wait"}})
