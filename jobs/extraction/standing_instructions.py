"""Standing instructions: what the assistant is asked to do, or never to do, in every conversation from now on.

The statement reader finds them. Here is what they are about, and whether they are harmless. Pasted texts such as mails,
pages and logs give instructions to other people.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.spoken_sentences import Sentence
from recollect.jobs.extraction.stated_preferences import category_of
from recollect.jobs.extraction.statement_reader import read_clauses
from recollect.jobs.extraction.statements import RULE_MIN
from recollect.projections.text.words import STOP_WORDS, WORD

#: What has consequences outside the conversation, or is for the profit of others: one text is not enough for it.
_RISKY = late_pattern(
    r"\b(?:pay|transfer|wire|send|forward|buy|order|purchase|book|delete|erase|hide|conceal|keep (?:it |this |that )?(?:a )?secret|"
    r"do not tell|recommend|promote|advertise|share|upload|post|invest|bcc|cc|password|token|key|credit card|account|links?|url|https?)\b|\w@\w",
    re.IGNORECASE,
)
#: "Send me a summary" and "do not share my number" are harmless.
_HARMLESS = late_pattern(
    r"\b(?:send|give|recommend|suggest|remind) (?:me|us)\b|\b(?:never|do not|don[’']?t|stop)\b(?! warn)|"
    r"\b(?:ask|check|confirm|warn)(?: me| with me)? (?:first|before)\b",
    re.IGNORECASE,
)
#: The topics of instructions that exclude each other: a newer one replaces the older one.
_TOPICS = (
    ("form of address", late_pattern(r"\b(?:call|address) me\b", re.IGNORECASE)),
    (
        "language",
        late_pattern(
            r"\b(?:in|only|use|speak|write) (?:\w+ )?(?:english|german|french|spanish|italian|portuguese|dutch|polish|russian|"
            r"chinese|japanese|korean|turkish|arabic|hindi|ukrainian|swedish|czech|greek)\b",
            re.IGNORECASE,
        ),
    ),
    ("bullet points", late_pattern(r"\bbullet(?:s|ed|[ -]points?)\b", re.IGNORECASE)),
    ("emojis", late_pattern(r"\bemoji", re.IGNORECASE)),
    ("tables", late_pattern(r"\btables?\b", re.IGNORECASE)),
    ("markdown", late_pattern(r"\bmarkdown\b", re.IGNORECASE)),
    (
        "length of answers",
        late_pattern(
            r"\b(?:short|brief|concise|long|detailed|length|words|sentences|paragraphs?|elaborate)\b", re.IGNORECASE
        ),
    ),
    ("tone", late_pattern(r"\b(?:formal|informal|casual|polite|direct|honest|critical|funny|tone)\b", re.IGNORECASE)),
    ("units", late_pattern(r"\b(?:metric|imperial|celsius|fahrenheit|kilomet|miles|units)\b", re.IGNORECASE)),
)
#: The strength of an instruction that is kept and not obeyed.
RISKY_STRENGTH = 0.3
_FORMATTING = frozenset(("bullet points", "emojis", "tables", "markdown", "units"))
_KEY_WORDS_MAX = 8


class StandingInstruction(NamedTuple):
    """An instruction, and what it is about."""

    text: str
    #: Instructions with the same topic replace each other.
    topic: str
    #: The category of a preference that fits its topic; None for a topic of its own.
    category: str | None
    #: Whether it needs the consent of the caller, so that it is kept and not obeyed.
    is_risky: bool

    def preference(self, speaker: str, probability: float) -> dict[str, Any]:
        """Return it as a preference of its speaker, without sources; a risky one is not active.

        Parameters:
            probability: that it is an instruction.
        """
        return {
            "category": self.category or category_of(self.text),
            "key": self.topic,
            "value": self.text,
            "strength": round(probability, 3) if not self.is_risky else RISKY_STRENGTH,
            "standing": not self.is_risky,
            "subject": speaker,
            "source_type": "observed",
        }


def is_risky(text: str) -> bool:
    """Return whether an instruction has consequences outside the conversation, or is for the profit of others."""
    return _RISKY.search(text) is not None and _HARMLESS.search(text) is None


def find_instruction(sentence: Sentence) -> StandingInstruction | None:
    """Return the standing instruction that a sentence gives to the assistant by its words; None when it gives none."""
    read = read_clauses(sentence.said or sentence.text, to_assistant=True)
    is_rule = any(part.probabilities["act"]["rules"] >= RULE_MIN for part in read)
    return instruction_of(sentence.text) if is_rule else None


def instruction_of(text: str) -> StandingInstruction:
    """Return a sentence that is a standing instruction with its topic."""
    topic = next((name for name, pattern in _TOPICS if pattern.search(text)), None)
    if topic is not None:
        category = "formatting" if topic in _FORMATTING else "communication"
        return StandingInstruction(text, topic, category, is_risky(text))
    words = [word for word in WORD.findall(text.casefold()) if word not in STOP_WORDS]
    return StandingInstruction(text, " ".join(words[:_KEY_WORDS_MAX]) or text[:80].casefold(), None, is_risky(text))
