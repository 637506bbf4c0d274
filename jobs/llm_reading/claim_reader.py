"""Claim reader: the probability that a line states what a language model's sentence claims.

An encoder reads the line, with a few lines before it, and the sentence as one text; a small network compares the vectors
of the quoted words and of the sentence. The lines have names in place of the first person: `my dad` of Ann is
`Ann's dad`. `ops/train/claims` trains both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.rule_extractor import IncomingMessage
from recollect.jobs.llm_reading.llm_conversation import LlmConversation
from recollect.jobs.llm_reading.llm_statement import LlmStatement
from recollect.projections.embeddings.embedder import Embedder
from recollect.projections.embeddings.reading_encoder import (
    LOAD_SECONDS_MAX,
    Embed,
    embedding_by,
    without_model_signs,
)
from recollect.projections.embeddings.stretches import Spans, TokenEmbedding
from recollect.projections.projection_settings import CLAIMS_MODEL

Floats = NDArray[np.float32]
#: Returns the probability that its line says what a statement claims.
SaysClaim = Callable[[LlmStatement, LlmConversation], float]
#: Characters of a line that are read, around the quoted words; of each line before it; and of these together.
_LINE_CHARS_MAX, _BEFORE_LINE_CHARS_MAX, _BEFORE_CHARS_MAX = 300, 140, 200
_LINES_BEFORE_MAX = 3
#: Words of the first person; each group is named after the suffix of the speaker's name that replaces it.
_FIRST_PERSON = late_pattern(
    r"\b(?:(?P<is>(?:i|we)['’]?(?:m|re)\b|im\b)|(?P<has>(?:i|we)['’]ve\b|ive\b)|(?P<will>(?:i|we)['’]ll\b)|(?P<would>(?:i|we)['’]d\b)|"
    r"(?P<owns>(?:my|our|mine|ours|mein\w{0,2}|unser\w{0,2}|mis?|mon|ma|mes)\b)|"
    r"(?:i|me|we|us|myself|ich|mich|mir|wir|uns|yo|je|moi)\b)",
    re.IGNORECASE,
)
_BEHIND_NAME = {None: "", "owns": "'s"}
_SEPARATOR = " [SEP] "


class ClaimText(NamedTuple):
    """A line and a sentence as one text, with the places of the quoted words and of the sentence as (start, end)."""

    text: str
    quoted: tuple[int, int]
    claim: tuple[int, int]


def claim_text(statement: LlmStatement, conversation: LlmConversation) -> ClaimText:
    """Return the text by which the encoder reads a statement of an existing line."""
    message = conversation.messages[statement.line - 1]
    text, words, claim = (without_model_signs(it) for it in (message.text, statement.words, statement.text))
    start = max(0, text.casefold().find(words.casefold()))
    first, last = 0, len(text)
    if len(text) > _LINE_CHARS_MAX:
        first = max(0, min(start + len(words) // 2 - _LINE_CHARS_MAX * 2 // 3, len(text) - _LINE_CHARS_MAX))
        last = first + _LINE_CHARS_MAX
    begins, ends = max(start, first), min(start + len(words), last)
    parts = (text[first:begins], text[begins:ends], text[ends:last])
    lead, quoted, rest = (_with_name(part, message.speaker) for part in parts)
    lead = without_model_signs(f"{_lines_before(message, conversation, statement.line)}{message.speaker}: {lead}")
    source = f"{lead}{quoted}{rest}"
    whole = f"{source}{_SEPARATOR}{claim}"
    return ClaimText(whole, (len(lead), len(lead) + len(quoted)), (len(source) + len(_SEPARATOR) - 1, len(whole)))


def _lines_before(message: IncomingMessage, conversation: LlmConversation, line: int) -> str:
    """Return the lines right before a line, as far as there is room."""
    said = [(it.speaker, it.text) for it in conversation.session_lines(message.session_id, line - 1)]
    before = ""
    for speaker, text in reversed(said[-_LINES_BEFORE_MAX:]):
        shown = f"{speaker}: {_with_name(text[-_BEFORE_LINE_CHARS_MAX:], speaker)} / "
        if len(before) + len(shown) > _BEFORE_CHARS_MAX:
            break
        before = shown + before
    return before


def _with_name(text: str, speaker: str) -> str:
    """Return a text with the speaker's name in place of the words of the first person."""

    def named(match: re.Match[str]) -> str:
        group = match.lastgroup
        return speaker + _BEHIND_NAME.get(group, f" {group}")

    return _FIRST_PERSON.sub(named, text)


def tokens_inside(spans: Spans, start: int, end: int) -> list[bool]:
    """Return which tokens are in a part of a text; all that have characters where the part has none."""
    inside = [first < after and first >= start and after <= end for first, after in spans]
    return inside if any(inside) else [first < after for first, after in spans]


def claim_inputs(quoted: Floats, claim: Floats, whole: Floats) -> Floats:
    """Return the inputs of the network for the mean vectors of the quoted words, the sentence and the whole text."""
    return np.concatenate([quoted, claim, whole, np.abs(quoted - claim), quoted * claim])


def claim_reader(embedder: Embedder) -> SaysClaim | None:
    """Return the reading of statements; None unless the default embedding model is in use and ready."""
    embed = embedding_by(CLAIMS_MODEL, embedder, LOAD_SECONDS_MAX)
    if embed is None:
        return None
    return lambda statement, conversation: _probability(claim_text(statement, conversation), embed)


def _probability(read: ClaimText, embed: Embed) -> float:
    weights = _weights()
    [embedding] = embed([read.text])
    quoted, claim = (_mean(embedding, tokens_inside(embedding.spans, *place)) for place in (read.quoted, read.claim))
    inputs = claim_inputs(quoted, claim, embedding.vector)
    hidden = np.maximum(weights["hidden.weight"] @ inputs + weights["hidden.bias"], 0)
    return float(1 / (1 + np.exp(-(weights["output.weight"] @ hidden + weights["output.bias"])[0])))


def _mean(embedding: TokenEmbedding, inside: list[bool]) -> Floats:
    """Return the mean vector of some tokens; that of the text where it is in a script that the model does not know."""
    return embedding.tokens[inside].mean(axis=0) if any(inside) else embedding.vector


@cache
def _weights() -> dict[str, Floats]:
    """Return the weights of the network: a hidden layer and one output."""
    arrays: dict[str, Any] = dict(np.load(BytesIO(files(__package__).joinpath("claim_weights.npz").read_bytes())))
    return {name: array.astype(np.float32) for name, array in arrays.items()}
