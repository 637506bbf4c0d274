"""Displayed lines: what memory says of the messages of a conversation of one person."""

from __future__ import annotations

from datetime import UTC, datetime

from recollect.jobs.extraction.conversation_state import ConversationState
from recollect.jobs.extraction.extraction_job import FACT_CONFIDENCE_MIN
from recollect.jobs.extraction.rule_extractor import IncomingMessage, extract_by_rules
from recollect.jobs.extraction.statements import Embed
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.statement_lines import fact_line, preference_line, relationship_line

_SAID_AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


def displayed(*messages: str, speaker: str = "Ann", embed: Embed | None = None, to_assistant: bool = True) -> list[str]:
    """Return the facts, preferences and relationships of messages as memory displays them."""
    before: list[PriorStatement] = []
    conversation = ConversationState()
    conversation.has_assistant = to_assistant
    lines: list[str] = []
    for number, text in enumerate(messages):
        message = IncomingMessage(f"m{number}", "s1", speaker, text, _SAID_AT, is_assistant=False)
        for kind, item in extract_by_rules(message, before, conversation=conversation, embed=embed):
            if kind == "facts" and item["confidence"] >= FACT_CONFIDENCE_MIN:
                lines.append(fact_line(item["subject"], item["predicate"], item["object"]))
            elif kind == "preferences" and "standing" not in item:
                lines.append(preference_line(item["subject"], item["category"], item["key"], item["value"]))
            elif kind == "relationships":
                lines.append(relationship_line(item["source"], item["type"], item["target"]))
    return lines
