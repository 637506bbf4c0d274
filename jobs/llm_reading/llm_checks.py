"""LLM checks: returns why a statement of a language model is not what its line says.

The quoted words must be in the line, the session must have the names of the sentence, and the line its numbers and
dates. Whether the line says the rest (whom it is about, whether it is done or only wished for, denied or ended) is read
by `claim_reader.py`; without the default embedding model it is not checked.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Literal

from recollect.events.late_pattern import late_pattern
from recollect.jobs.llm.grounding import name_words, without_dates
from recollect.jobs.llm_reading.claim_reader import SaysClaim
from recollect.jobs.llm_reading.llm_conversation import LlmConversation
from recollect.jobs.llm_reading.llm_statement import EXAMPLE_NAME, LlmStatement
from recollect.projections.text.segments import is_unsegmented_script
from recollect.projections.text.words import WORD

#: Why a statement is refused. The counter of refusals has them as its label.
Refusal = Literal[
    "line", "example", "secret", "copy", "assistant", "words", "pronoun", "name", "date", "number", "claim"
]  # fmt: skip
#: The probability that the line says it, from which a statement is kept: of sentences about held-out chats it keeps 85 to
#: 91 % of the right ones and 33 to 43 % of the wrong ones (`ops/train/claims`).
CLAIM_MIN = 0.4
#: A sentence that needs its conversation: it begins with a pronoun, has one of the first person, or asks.
_HANGING = late_pattern(
    r"^(?:We|My|Our|He|She|It|They|You|Your|His|Her|Their|This|That|Someone)\b|\b(?:I|I['’]\w{1,2}|my|me)\b|\?$"
)
_QUOTED = late_pattern(r"[\"“„«]([^\"“”„«»]{12,300})[\"”“»]")
_NUMERAL = late_pattern(r"\d+(?:[.,:]\d+)*k?\b|\d+")
_THOUSANDS_MARK = late_pattern(r"[,.](?=\d{3}\b)")
_ROUND_END = late_pattern(r"000$|k$|:00$")
_NUMBER_WORDS = {
    word: str(offset)
    for offset, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
_ARTICLES = frozenset("the a an der die das ein eine el la los las un una le les l il lo gli".split())
#: Words of a statement; fewer only name a thing.
_WORDS_MIN = 3
#: Share of the quoted words that the line has; a model sets right a spelling, or leaves a word out.
_QUOTED_SHARE_MIN = 0.75


def refusal(statement: LlmStatement, conversation: LlmConversation, says_claim: SaysClaim | None) -> Refusal | None:
    """Return why a statement is refused; None when its line says it as far as the checks can see.

    Parameters:
        says_claim: None: nothing reads whether the line says the sentence.
    """
    message, text = conversation.message(statement.line), statement.text
    if message is None:
        return "line"
    if EXAMPLE_NAME in text.casefold():
        return "example"
    if "[redacted" in text:
        return "secret"
    is_rule = statement.kind == "rule"
    if not is_rule and _is_copy(text, conversation):
        return "copy"
    own = (message.speaker.casefold(), "the assistant", "assistant")
    if message.is_assistant and not text.casefold().startswith(own):
        return "assistant"
    if not _has_words(message.text.casefold(), (statement.words or text).casefold().strip(" .…,;!?")):
        return "words"
    if _HANGING.search(_QUOTED.sub(" ", text)) and not is_rule:
        return "pronoun"
    reason = _not_given(statement, conversation)
    if reason is None and not is_rule and says_claim is not None and says_claim(statement, conversation) < CLAIM_MIN:
        return "claim"
    return reason


def _is_copy(text: str, conversation: LlmConversation) -> bool:
    """Return whether a sentence only repeats a line, as small models do: `Ann: no, never`, or has no content: `yes`."""
    words = WORD.findall(text)
    says_nothing = len(words) < _WORDS_MIN and not any(map(is_unsegmented_script, words))
    return says_nothing or text.casefold().startswith(
        tuple(f"{it.speaker.casefold()}:" for it in conversation.messages)
    )


def _has_words(line: str, quoted: str) -> bool:
    """Return whether a line has quoted words, or most of them."""
    wanted = set(WORD.findall(quoted))
    return quoted in line or len(wanted & set(WORD.findall(line))) >= max(1, _QUOTED_SHARE_MIN * len(wanted))


def _not_given(statement: LlmStatement, conversation: LlmConversation) -> Refusal | None:
    """Return which of its names, dates and numbers a sentence has from nowhere."""
    line = conversation.line(statement.line)
    dates = line.dates_of(statement.text)
    bare = without_dates(statement.text, dates)
    if not _has_names(bare, statement, conversation):
        return "name"
    if not all(line.has_day(date) for date in dates):
        return "date"
    return None if _has_numbers(bare, line.text, line.years()) else "number"


def _has_names(text: str, statement: LlmStatement, conversation: LlmConversation) -> bool:
    """Return whether the session has each name of a sentence. A rule begins with a verb, which is not a name."""
    session = conversation.session(statement.line)
    return all(
        session.has_name_or_part(word)
        for offset, word in name_words(text)
        if offset or not (statement.kind == "rule" or word.casefold() in _ARTICLES)
    )


def _numbers(text: str) -> set[str]:
    """Return the numbers of a text; `68k`, `68,000` and `68 thousand` are 68."""
    digits = (_THOUSANDS_MARK.sub("", number) for number in _NUMERAL.findall(text.casefold()))
    return {_ROUND_END.sub("", number).lstrip("0") or "0" for number in digits}


def _has_numbers(sentence: str, evidence: str, years: Set[str]) -> bool:
    """Return whether the lines have the numbers of a sentence, in digits or words."""
    said, stated = set(WORD.findall(evidence.casefold())), set(WORD.findall(sentence.casefold()))
    given = _numbers(evidence) | _numbers(" ".join(years)) | {_NUMBER_WORDS[it] for it in said & _NUMBER_WORDS.keys()}
    # "One" is mostly a pronoun.
    spelt = {_NUMBER_WORDS[word] for word in stated & _NUMBER_WORDS.keys() if word != "one"}
    return given.issuperset(_numbers(sentence) | spelt)
