"""Page calls: the requests for lists, histories, the graph and traces, and for work on a whole namespace."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect.api.client import answers
from recollect.api.client.call import Call, encoded, id_part, namespace_path, query
from recollect.events.errors import InvalidInput
from recollect.events.memory_kinds import MEMORY_KINDS, OTHER_LISTS

if TYPE_CHECKING:
    from recollect.api.as_of import AsOf
    from recollect.api.pages.list_pages import Filters
    from recollect.api.result_types import EventItem, NamespaceItem, Neighbourhood, Page, Trace, TraceSummary
    from recollect.api.retrieval.contract.result import Source
    from recollect.events.integrity.verify import VerifyResult
    from recollect.jobs.conversation.window import Window
    from recollect.jobs.queue.nightly import Compaction
    from recollect.jobs.queue.settle_result import SettleResult
    from recollect.projections.queries.queried_episodes import TierTotals
    from recollect.projections.read_models.replays import ReplayCheck

#: The lists of a namespace: each is a part of a path. The server has their filters.
LISTS = tuple(sorted([*OTHER_LISTS, *(kind.list_name for kind in MEMORY_KINDS)]))


def page(namespace: str, name: str, after: str, limit: int, as_of: AsOf, filters: Filters | None) -> Call[Page[Any]]:
    """Describe `Recollect.list`.

    Raises:
        InvalidInput: no list has this name. InvalidNamespace: the name of the namespace.
    """
    if name not in LISTS:
        raise InvalidInput(f"no list is called {name[:80]!r}; give one of {', '.join(LISTS)}", field="name")
    for filter, value in (filters or {}).items():
        # As a query, these would select everything.
        if value is None or (isinstance(value, Collection) and not value):
            raise InvalidInput("give a value, or leave the filter out", field=filter)
    parameters: dict[str, Any] = {"after": after or None, "limit": limit, "as_of": as_of}
    return Call(
        method="GET",
        path=namespace_path(namespace, name),
        parameters=query({**(filters or {}), **parameters}),
        read=answers.page,
        # The first list of a version builds its read model.
        duration="short" if as_of is None else "long",
    )


def events(namespace: str, after: int, limit: int, as_of: AsOf) -> Call[Page[EventItem]]:
    """Describe `Recollect.events`."""
    parameters = query({"after": after, "limit": limit, "as_of": as_of})
    return Call(method="GET", path=namespace_path(namespace, "events"), parameters=parameters, read=answers.page)


def head(namespace: str) -> Call[int]:
    """Describe the question for the version of the newest event, 0 without one."""
    return Call(method="GET", path=namespace_path(namespace, "version"), read=lambda answer: int(answer["version"]))


def follow(namespace: str, after: int, types: Sequence[str], knowledge: bool) -> Call[None]:
    """Describe the request for the stream of `Recollect.follow`; its answer is read while it comes."""
    parameters = query({"follow": True, "after": after, "types": types, "knowledge": knowledge})
    return Call(method="GET", path=namespace_path(namespace, "events"), parameters=parameters, read=_no_stream)


def _no_stream(_: object) -> None:
    raise TypeError("not a stream")


def history(namespace: str, name: str, memory_id: str, as_of: AsOf) -> Call[Page[Any]]:
    """Describe `Recollect.fact_history` and `preference_history`.

    Parameters:
        name: the list.
    """
    return Call(
        method="GET",
        path=namespace_path(namespace, name, id_part(memory_id, field=f"{name[:-1]}_id"), "history"),
        parameters=query({"as_of": as_of}),
        read=answers.page,
        duration="short" if as_of is None else "long",
    )


def graph(namespace: str, entity: str, depth: int, as_of: AsOf) -> Call[Neighbourhood]:
    """Describe `Recollect.graph`."""
    return Call(
        method="GET",
        path=namespace_path(namespace, "graph"),
        parameters=query({"entity": entity, "depth": depth, "as_of": as_of}),
        read=answers.mapping,
        duration="short" if as_of is None else "long",
    )


def trace(namespace: str, trace_id: str) -> Call[Trace]:
    """Describe `Recollect.trace`."""
    path = namespace_path(namespace, "traces", id_part(trace_id, field="trace_id"))
    return Call(method="GET", path=path, read=answers.mapping)


def traces(namespace: str, after: str, limit: int) -> Call[Page[TraceSummary]]:
    """Describe `Recollect.traces`."""
    parameters = query({"after": after or None, "limit": limit})
    return Call(method="GET", path=namespace_path(namespace, "traces"), parameters=parameters, read=answers.page)


def namespaces(after: str, limit: int) -> Call[Page[NamespaceItem]]:
    """Describe `Recollect.namespaces`."""
    parameters = query({"after": after or None, "limit": limit})
    return Call(method="GET", path="/v1/namespaces", parameters=parameters, read=answers.page)


def version(namespace: str, as_of: AsOf) -> Call[int | None]:
    """Describe `Recollect.version`."""
    return Call(
        method="GET",
        path=namespace_path(namespace, "version"),
        parameters=query({"as_of": as_of}),
        read=lambda answer: None if as_of is None else int(answer["version"]),
    )


def sources(namespace: str, episode_id: str) -> Call[list[Source]]:
    """Describe `Recollect.sources`."""
    path = namespace_path(namespace, "episodes", id_part(episode_id, field="episode_id"), "sources")
    return Call(method="GET", path=path, read=answers.sources)


def tiers(namespace: str) -> Call[dict[str, TierTotals]]:
    """Describe `Recollect.tiers`."""
    return Call(method="GET", path=namespace_path(namespace, "tiers"), read=answers.tiers)


def window(namespace: str, session_id: str, budget_tokens: int) -> Call[Window]:
    """Describe `Recollect.window`; a second call without new events appends no event."""
    return Call(
        method="POST",
        path=namespace_path(namespace, "sessions", id_part(session_id, field="session_id"), "window"),
        body=encoded({"budget_tokens": budget_tokens}),
        read=answers.window,
    )


def compact(namespace: str, now: datetime | str | None, dry_run: bool) -> Call[Compaction]:
    """Describe `Recollect.compact`; a second call at the same time appends no event."""
    return Call(
        method="POST",
        path=namespace_path(namespace, "compact"),
        body=encoded({"now": now, "dry_run": dry_run}),
        read=answers.compaction,
        duration="long",
    )


def settle(namespace: str, timeout_seconds: float | None, now: datetime | str | None) -> Call[SettleResult]:
    """Describe `Recollect.settle`."""
    return Call(
        method="POST",
        path=namespace_path(namespace, "settle"),
        body=encoded({"timeout_seconds": timeout_seconds, "now": now}),
        read=answers.settle_result,
        duration="long",
        work_seconds=timeout_seconds,
    )


def replay(namespace: str, parks: bool) -> Call[int]:
    """Describe `Recollect.replay`."""
    path = namespace_path(namespace, "replay") + ("?parks=true" if parks else "")
    return Call(method="POST", path=path, body=b"{}", read=lambda answer: int(answer["events"]), duration="long")


def check(namespace: str) -> Call[ReplayCheck]:
    """Describe `Recollect.check`."""
    path = namespace_path(namespace, "check")
    return Call(method="POST", path=path, body=b"{}", read=answers.replay_check, duration="long")


def verify(namespace: str) -> Call[VerifyResult]:
    """Describe `Recollect.verify`."""
    return Call(method="GET", path=namespace_path(namespace, "verify"), read=answers.verified, duration="long")


def ready() -> Call[answers.Readiness]:
    """Describe the question whether the server can serve requests."""
    return Call(method="GET", path="/health/ready", read=answers.readiness)


def health() -> Call[dict[str, Any]]:
    """Describe the question for the state of the server."""
    return Call(method="GET", path="/health", read=answers.mapping)


def log_id() -> Call[str]:
    """Describe the question which log the server has."""
    return Call(method="GET", path="/health/live", read=lambda answer: str(answer["log"]))
