"""LLM extractor: reads a window of messages with a language model, and converts its statements to items.

The items are those of the rule extractor: facts, and preferences for rules of the assistant. A statement ends or corrects
nothing by itself, so that a wrong answer removes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

from recollect.events.catalogue import FactType
from recollect.events.catalogue.event_base import StatementKind
from recollect.events.instruments import Counter as Metric
from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.message_kinds import is_pasted
from recollect.jobs.extraction.rule_extractor import ExtractedItem, IncomingMessage
from recollect.jobs.extraction.spoken_sentences import Sentence
from recollect.jobs.extraction.standing_instructions import RISKY_STRENGTH, find_instruction, is_risky
from recollect.jobs.llm.grounding import SourceEvidence, SourceLine
from recollect.jobs.llm.model_client import LlmClient
from recollect.jobs.llm_reading.claim_reader import SaysClaim
from recollect.jobs.llm_reading.llm_checks import refusal
from recollect.jobs.llm_reading.llm_conversation import LlmConversation
from recollect.jobs.llm_reading.llm_statement import LlmStatement, parse_statements, split_statement
from recollect.projections.queries.session_queries import EarlierTurn
from recollect.projections.text.sentences import END_SIGNS, split_sentences

_REFUSALS = Metric("recollect_llm_refused_statements", "Statements of language models that were kept out", ("reason",))
#: What an assistant says of itself is less sure than what a user says.
_CONFIDENCE, _ASSISTANT_CONFIDENCE = 0.8, 0.6
#: Words of a sentence that reports what others say: its rule is not the user's own.
_REPORTED = late_pattern(
    r"[\"“”«»]|\b(?:said|says|told|tells|asked|asks|wrote|writes|he|she|they|his|her|their|everyone|people)\b",
    re.IGNORECASE,
)
_TYPES: dict[str, FactType] = {"event": "event", "decision": "decision", "problem": "problem", "task": "task"}
#: Characters of the key of a rule, and the strength of an inactive rule and of an active one.
_KEY_CHARS_MAX = 80
_STRENGTH, _STANDING_STRENGTH = 0.5, 0.9


class Reading(NamedTuple):
    """What a language model has read in a window."""

    items: list[ExtractedItem]
    #: The number of refused statements by reason.
    refused: Mapping[str, int]


def read_window(
    llm: LlmClient,
    namespace: str,
    messages: Sequence[IncomingMessage],
    earlier: Mapping[str | None, Sequence[EarlierTurn]],
    says_claim: SaysClaim | None = None,
) -> Reading | None:
    """Return what the model reads in `messages`; None when it gave no usable answer.

    Parameters:
        earlier: the messages before `messages`, by session.
        says_claim: as in `refusal`.
    """
    conversation = LlmConversation(messages, earlier)
    if not conversation.has_user():
        return Reading([], {})
    statements = llm.ask(namespace, "extract", conversation.lines(), parse_statements)
    if statements is None:
        return None
    items: list[ExtractedItem] = []
    refused: Counter[str] = Counter()
    for statement in statements:
        reason = refusal(statement, conversation, says_claim)
        message = conversation.message(statement.line)
        if reason is None and message is not None:
            items += _items(statement, message)
        else:
            refused[reason or "line"] += 1
    for reason, count in refused.items():
        _REFUSALS.add(reason, amount=count)
    return Reading(items, refused)


def _items(statement: LlmStatement, message: IncomingMessage) -> list[ExtractedItem]:
    """Return the items of a statement that has passed its checks; none for a pasted text."""
    if is_pasted(message.text):
        return []
    if statement.kind == "rule":
        rule = None if message.is_assistant else _rule(statement, message)
        return [] if rule is None else [ExtractedItem("preferences", rule)]
    return [ExtractedItem("facts", fact_item(statement, message))]


def fact_item(statement: LlmStatement, message: IncomingMessage) -> dict[str, Any]:
    """Return the payload of a fact for a statement: the sentence, and the subject, predicate and object in it."""
    subject, predicate, object = split_statement(statement.text, message.speaker)
    item: dict[str, Any] = {
        "subject": subject,
        "predicate": predicate,
        "object": object,
        "statement": statement.text,
        "statement_kind": statement.kind if statement.kind in get_args(StatementKind) else "other",
        "confidence": _ASSISTANT_CONFIDENCE if message.is_assistant else _CONFIDENCE,
        "source_type": "observed",
        "source_events": [message.event_id],
    }
    place = message.text.find(statement.words) if statement.words and message.has_places else -1
    if place >= 0:
        item["evidence"] = [{"event": message.event_id, "start": place, "end": place + len(statement.words)}]
    kind = "commit" if message.is_assistant else _TYPES.get(statement.kind)
    return item if kind is None else item | {"type": kind}


def _rule(statement: LlmStatement, message: IncomingMessage) -> dict[str, Any] | None:
    """Return the preference of a rule for the assistant; None for one that the user reports or has not given.

    It is active only when the rules read it as an instruction, and as harmless.
    """
    text = statement.text.rstrip(END_SIGNS + " ")
    words = statement.words.casefold()
    sentence = next((part for part in split_sentences(message.text) if words in part.casefold()), message.text)
    own = SourceEvidence([SourceLine(message.speaker, message.text, message.sent_at)])
    if not words or _REPORTED.search(sentence) or not own.grounds(text):
        return None
    # The user's own words are read first: `please no emojis` is plainer than "Use no emojis in answers to Ann".
    rule = find_instruction(Sentence(statement.words.rstrip(END_SIGNS + " "), ".")) or find_instruction(
        Sentence(text, ".")
    )
    item: dict[str, Any] = {"category": "communication", "key": text[:_KEY_CHARS_MAX].casefold(), "value": text}
    if rule is None:
        item |= {"strength": RISKY_STRENGTH if is_risky(message.text) else _STRENGTH, "standing": False}
    else:
        item |= {"category": rule.category or "other", "key": rule.topic}
        item |= {"strength": RISKY_STRENGTH if rule.is_risky else _STANDING_STRENGTH, "standing": not rule.is_risky}
    return item | {"subject": message.speaker, "source_events": [message.event_id]}
