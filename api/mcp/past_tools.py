"""Past tools: history, timeline, and search and fetch in the form of OpenAI's connectors."""

from __future__ import annotations

from typing import Any

import orjson

from recollect.api.mcp.shown_memories import (
    existing,
    fenced,
    hidden_from,
    memory_text,
    memory_time,
    shortened,
    shown_items,
    shown_memory,
)
from recollect.api.mcp.tool_arguments import FetchArguments, HistoryArguments, SearchArguments, TimelineArguments
from recollect.api.mcp.tool_results import (
    FetchResult,
    HistoryEntry,
    HistoryResult,
    SearchHit,
    SearchResult,
    TimelineEntry,
    TimelineResult,
    ToolAnswer,
)
from recollect.api.mcp.tool_session import ToolSession
from recollect.api.result_types import Episode
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.errors import InvalidInput
from recollect.projections.text.words import WORD

#: Items of a page: as many as a list gives at once.
_PAGE_ITEMS = 1_000
#: Values in the answer of `history`, the latest ones: more of one subject fill a prompt without an answer.
_VALUES_MAX = 30
#: Characters of a title of a hit.
_TITLE_CHARS_MAX = 80


def history(session: ToolSession, arguments: HistoryArguments) -> ToolAnswer:
    """Return the values that held in turn with a fact or a preference, or all about a subject.

    Raises:
        InvalidInput: neither or both are given, or the memory has no history. NotFound: no memory has this id.
    """
    if (arguments.memory_id is None) == (arguments.subject is None):
        raise InvalidInput("give memory_id, or subject", field="memory_id")
    if arguments.memory_id is not None:
        memories = _history_of(session, arguments.memory_id)
    else:
        memories = _memories_about(session, str(arguments.subject))
    memories = shown_items(hidden_from(session), memories)
    entries = [_entry(session, memory) for memory in memories[-_VALUES_MAX:]]
    lines = [_history_line(entry) for entry in entries]
    text = fenced(lines) if lines else "No fact is about this subject; recall searches messages."
    return ToolAnswer(text=text, data=HistoryResult(entries=entries).as_json(), count=len(entries))


def _history_of(session: ToolSession, memory_id: str) -> list[dict[str, Any]]:
    """Return the values that held in turn with a memory."""
    memory = shown_memory(session, memory_id)
    if memory["kind"] == "fact":
        page = session.memory.fact_history(session.namespace, memory_id)
    elif memory["kind"] == "preference":
        page = session.memory.preference_history(session.namespace, memory_id)
    else:
        raise InvalidInput(f"a memory of the kind {memory['kind']} has no history; give its subject", field="memory_id")
    return [{**memory, **item} for item in page["items"]]


def _memories_about(session: ToolSession, subject: str) -> list[dict[str, Any]]:
    """Return the facts and preferences of a subject, or else those that name it, whether they still hold or not.

    The oldest comes first.
    """
    memories = _knowledge(session, {"subject": subject})
    if not memories:
        name = _spaced_words(subject)
        memories = [memory for memory in _knowledge(session, {}) if name in _spaced_words(memory_text(memory))]
    return sorted(memories, key=lambda memory: str(memory["created_at"]))


def _spaced_words(text: str) -> str:
    """Return the words of a text with a space around each, case folded."""
    return f" {' '.join(WORD.findall(text.casefold()))} "


def _knowledge(session: ToolSession, filters: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the facts and preferences that match filters."""
    memories: list[dict[str, Any]] = []
    for name, kind in (("facts", "fact"), ("preferences", "preference")):
        page = session.memory.list(session.namespace, name, limit=_PAGE_ITEMS, filters=filters)
        memories += [{"kind": kind, **item} for item in page["items"]]
    return memories


def _entry(session: ToolSession, memory: dict[str, Any]) -> HistoryEntry:
    """Return a value with the message that states it."""
    sources: list[str] = memory["source_events"] or []
    source = existing(session, sources[0]) if sources else None
    return HistoryEntry(
        id=memory["id"],
        text=memory_text(memory),
        status=memory["status"],
        valid_from=memory["valid_from"] or memory["created_at"],
        valid_to=memory["valid_until"],
        superseded_by=memory["superseded_by"],
        source=None
        if source is None or source["kind"] != "episode"
        else f"{memory_time(source)[:10]} {source.get('speaker') or ''}: {memory_text(source)}",
    )


def _history_line(entry: HistoryEntry) -> str:
    until = f" until {entry.valid_to[:10]}" if entry.valid_to else ""
    source = f" — {entry.source}" if entry.source else ""
    return f"- {entry.text} ({entry.status}, since {(entry.valid_from or '')[:10]}{until}; id {entry.id}){source}"


def timeline(session: ToolSession, arguments: TimelineArguments) -> ToolAnswer:
    """Return episodes of a time in their order; without `since` and `after` the latest ones."""
    filters: dict[str, Any] = {"status": "active"}
    if arguments.since is not None:
        filters["since"] = arguments.since
    if arguments.until is not None:
        filters["until"] = arguments.until
    if arguments.tier is not None:
        filters["tier"] = arguments.tier
    if arguments.since is None and not arguments.after:
        items, following = _latest(session, filters, arguments.limit), None
    else:
        page = session.memory.episodes(session.namespace, after=arguments.after, limit=arguments.limit, filters=filters)
        items, following = shown_items(hidden_from(session), page["items"]), page["next"]
    entries = [
        TimelineEntry(
            id=item["id"],
            when=item["occurred_at"],
            speaker=item["speaker"],
            tier=item["tier"],
            text=shortened(item["short"] or item["text"]),
        )
        for item in items
    ]
    lines = [f"- {entry.when[:16]} {entry.speaker or entry.tier}: {entry.text} (id {entry.id})" for entry in entries]
    text = fenced(lines) if lines else "Nothing was recorded in this time."
    more = f"\nMore: after={following}" if following else ""
    result = TimelineResult(episodes=entries, next=following)
    return ToolAnswer(text=text + more, data=result.as_json(), count=len(entries))


def _latest(session: ToolSession, filters: dict[str, Any], limit: int) -> list[Episode]:
    """Return the last `limit` episodes in order. Lists go forward, so it reads from further and further back."""
    head = session.memory.parts.log.head(session.namespace).version
    hidden = hidden_from(session)
    versions = 2 * limit
    while True:
        start = max(0, head - versions)
        items: list[Episode] = []
        after: str | None = str(start)
        while after is not None:
            page = session.memory.episodes(session.namespace, after=after, limit=_PAGE_ITEMS, filters=filters)
            items, after = [*items, *shown_items(hidden, page["items"])][-limit:], page["next"]
        if len(items) == limit or start == 0:
            return items
        versions *= 4


def search(session: ToolSession, arguments: SearchArguments) -> ToolAnswer:
    """Return hits for a query in the form of OpenAI's connectors."""
    retrieved = session.retrieve(RetrieveRequest(query=arguments.query, speaker=session.speaker))
    hits = [
        SearchHit(id=item["id"], title=shortened(item["text"])[:_TITLE_CHARS_MAX], url=_uri(item["id"]))
        for item in retrieved["items"]
    ]
    data = SearchResult(results=hits).as_json()
    return ToolAnswer(text=orjson.dumps(data).decode(), data=data, count=len(hits))


def fetch(session: ToolSession, arguments: FetchArguments) -> ToolAnswer:
    """Return a memory by its id in the form of OpenAI's connectors; raise `NotFound` when there is none."""
    memory = shown_memory(session, arguments.id)
    result = FetchResult(
        id=arguments.id,
        title=memory_text(memory)[:_TITLE_CHARS_MAX],
        text=str(memory.get("text") or memory_text(memory)),
        url=_uri(arguments.id),
        metadata={"kind": memory["kind"], "when": memory_time(memory)},
    )
    data = result.as_json()
    return ToolAnswer(text=orjson.dumps(data).decode(), data=data, count=1)


def _uri(memory_id: str) -> str:
    return f"recollect://memory/{memory_id}"
