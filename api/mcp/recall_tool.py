"""Recall tool: retrieves memories, and renders them with their ids within a budget of tokens."""

from __future__ import annotations

from typing import Any

from recollect.api.mcp.tool_arguments import RecallArguments
from recollect.api.mcp.tool_results import RecalledMemory, RecallResult, ToolAnswer
from recollect.api.mcp.tool_session import ToolSession
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result_json import ItemJson
from recollect.api.retrieval.contract.time_budget import PARTIAL_SUFFIX
from recollect.projections.text.tokens import cut_at_word, estimate_tokens

#: The share of the budget for the lines with ids, at least; they get what the context leaves.
_IDS_SHARE = 0.3
#: Tokens of the beginning of a text after its id, so that a model can tell the ids apart.
_LABEL_TOKENS = 8
#: Tokens of the budget for each memory, at least. With less, a context has the beginnings of many memories,
#: and no answer. From `_WHOLE_TOKENS` on, the number of memories is that of the settings.
_MEMORY_TOKENS_MIN = 100
_WHOLE_TOKENS = 1_200
_ITEMS_MIN = 3
#: What a model reads about a part of a retrieval that is missing.
_PARTS = {
    "semantic": "memories that use other words than the query; asking again with other words may find more",
    "keyword": "memories by their words",
    "knowledge": "facts and other knowledge",
    "projection": "the newest messages",
}
_IDS_HEADING = "### Best first: probability to belong to the answer, id for correct, forget and history"


def recall(session: ToolSession, arguments: RecallArguments) -> ToolAnswer:
    """Return the memories for a query."""
    retrieved = session.retrieve(_request(arguments, session.speaker))
    items: list[ItemJson] = retrieved["items"]
    degraded = [_missing_part(note) for note in retrieved["degraded"]]
    result = RecallResult(
        facts=_memories([item for item in items if item["kind"] != "episode"], arguments.max_tokens // 2),
        episodes=_memories([item for item in items if item["kind"] == "episode"], arguments.max_tokens // 2),
        trace_id=retrieved["trace_id"],
        degraded=degraded or None,
        reason=retrieved.get("reason"),
    )
    context: str = retrieved["context"]
    notes = "".join(f"\nNot searched: {part}" for part in degraded)
    text = (
        _with_ids(context, items, arguments.max_tokens - estimate_tokens(f"{context}{notes}"))
        if context
        else f"The memory has nothing about this{f': {result.reason}' if result.reason else ''}."
    )
    return ToolAnswer(text=text + notes, data=result.as_json(), count=len(items))


def _missing_part(note: str) -> str:
    """Return what a model should know of a part that is missing: the reason is the operator's matter."""
    part, _, _reason = note.partition(": ")
    if part == "semantic" and note.endswith(PARTIAL_SUFFIX):
        return "the newest messages, by meaning"
    return _PARTS.get(part, "a part of the memory")


def _request(arguments: RecallArguments, speaker: str | None) -> RetrieveRequest:
    """Return the retrieval of a call; raise `InvalidInput` when `as_of` is not a valid time."""
    fields: dict[str, Any] = {
        "query": arguments.query,
        "budget_tokens": int((1 - _IDS_SHARE) * arguments.max_tokens),
        "as_of": arguments.as_of,
        "kinds": arguments.kinds,
        "speaker": speaker,
    }
    if arguments.max_tokens < _WHOLE_TOKENS:
        fields["limit"] = max(_ITEMS_MIN, arguments.max_tokens // _MEMORY_TOKENS_MIN)
    return RetrieveRequest.checked(fields)


def _memories(items: list[ItemJson], tokens_max: int) -> list[RecalledMemory]:
    """Return the first items whose texts fit into a budget; the first one is cut when it does not fit."""
    memories: list[RecalledMemory] = []
    for item in items:
        text: str = item["short"] or item["text"]
        if estimate_tokens(text) > tokens_max:
            if memories:
                break
            text = f"{cut_at_word(text, tokens_max)} …"
        tokens_max -= estimate_tokens(text)
        memories.append(
            RecalledMemory(
                id=item["id"],
                kind=item["kind"],
                text=text,
                when=item["occurred_at"],
                valid_from=item["valid_from"],
                valid_to=item.get("valid_until"),
                source=item["speaker"] or item["provenance"],
                probability=round(item["score"], 2),
                # A window is the message with those around it: the same kind of match.
                matched_by=list(dict.fromkeys(name.removesuffix("_window") for name in item["matched_by"])),
                outdated=item["outdated"] or None,
            )
        )
    return memories


def _with_ids(context: str, items: list[ItemJson], tokens_max: int) -> str:
    """Return the context with the ids of its memories, within its fence: clients may show a model the text alone."""
    lines: list[str] = []
    tokens_max -= estimate_tokens(f"{_IDS_HEADING}\n")
    for item in items:
        text = " ".join(item["text"].split())
        label = text if estimate_tokens(text) <= _LABEL_TOKENS else f"{cut_at_word(text, _LABEL_TOKENS)} …"
        line = f"\n- {item['score']:.2f} {item['id']} = {item['kind']}: {label}"
        tokens_max -= estimate_tokens(line)
        if tokens_max < 0:
            break
        lines.append(line)
    body, newline, closing_tag = context.rpartition("\n")
    return f"{body}\n{_IDS_HEADING}{''.join(lines)}\n{closing_tag}" if newline and lines else context
