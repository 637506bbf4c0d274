"""Sentence content: cleans a sentence of markup, and estimates how much of it is worth remembering.

Numbers, names, dates and decisions are what people ask for later. Greetings, politeness, headings and the offers of an
assistant are not.
"""

from __future__ import annotations

import re

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.words import distinct_words

#: Signs of Markdown before a sentence: headings, quotations, list items.
_MARKS = late_pattern(r"\A(?:\s*+(?:#{1,6}\s|>\s|[-*•+–]\s|\(?\d{1,3}[.)]\s))++\s*+")
#: A link, whose address is left out.
_LINK = late_pattern(r"\[([^\[\]]{1,200})\]\([^()\s]{1,500}\)")
#: A heading; a line in bold, which is one as well; a rule or the border of a table.
_HEADING = late_pattern(
    r"\A(?:\s*+#{1,6}\s|\s*+(?:[-*•+–]\s++|\d{1,3}[.)]\s++)?\*\*[^*]{1,200}\*\*\s*+:?\s*+\Z|[\s\-=_*|:+]*+\Z)"
)
#: A gap in a template.
_PLACEHOLDER = late_pattern(
    r"\[(?:your|insert|name|date|company|recipient|address|link)\b[^\[\]]{0,80}\]", re.IGNORECASE
)
#: Marks of a sentence without its words that is not a statement: "Mental clarity:".
_LABEL_WORDS_MAX = 6

#: A block of code; one that is not closed ends with the text.
_CODE_BLOCK = late_pattern(r"```.*?(?:```|\Z)", re.DOTALL)
#: Signs of a line of code, markup or a table.
_CODE = late_pattern(r"[{}|\\]|</?\w|\w\(\w|\s={1,3}\s|;$|^(?:return|import|def|class|pip install|const|let|var) ")
_NUMBER = late_pattern(r"\d")
_NAME = late_pattern(r"(?<=[\w,;] )[A-ZÀ-Þ][\wÀ-ÿ]+")
# The patterns below are searched in lower case: without IGNORECASE, `re` skips branches by their first letter, which
# takes a quarter of the time.
_DAY = late_pattern(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|"
    r"november|december|birthday|anniversary|deadline|tomorrow|next (?:week|month|year|spring|summer|autumn|winter))\b"
)
#: Words of decisions, events and lasting states.
_DECISION = late_pattern(
    r"\b(?:decided?|decision|agreed|booked|chose|chosen|signed|bought|sold|paid|ordered|cancel+ed|moved?|moving|starts?|"
    r"started|quit|hired|promised|plan(?:ned|s)?|will|won't|going to|remember|forget|from now on|no longer|instead|"
    r"actually|name is|called|lives?|works?|prefers?|favou?rite|always|never|allerg\w{0,4}|diagnosed|married|engaged|"
    r"separated|born|died|lost|broke|broken|won|passed|failed|reference|contract|appointment|address|password|code)\b"
)
_PERSONAL = late_pattern(r"\b(?:i|i'm|i've|my|me|we|our|us|ich|mein\w{0,2}|wir|unser\w{0,2})\b")
#: Politeness, applause and the offers of an assistant.
_CHATTER = late_pattern(
    r"\b(?:thank(?:s| you)|you're welcome|let me know|happy to (?:help|assist)|feel free|how (?:can|may) i|"
    r"(?:great|good|excellent) (?:question|choice|idea|job|point|to hear)|sounds (?:great|good|like|amazing)|good luck|"
    r"congratulations|congrats|have a (?:great|nice|good|lovely)|(?:hope|glad) (?:this|that|you|to)|"
    r"here (?:is|are|'s) (?:a|an|some|the|your|my)|would you like|do you (?:want|need)|i (?:understand|apologi[sz]e)|"
    r"take care|see you|talk (?:to you )?soon|ha(?:ha)+|lol|wow|hello|hi|hey|good (?:morning|evening|night))\b"
)
#: The first words of questions and requests, which end without a question mark in a chat.
_REQUEST = late_pattern(
    r"(?:what|how|who|where|when|why|which|do|does|did|can|could|should|would|is|are|give|tell|show|write|explain|list)\b"
)
#: Distinct words from which more words add nothing to the content of a sentence.
_WORDS_FULL = 12
#: Factors of chatter, of code, of questions and of exclamations.
_CHATTER_FACTOR = 0.3
_CODE_FACTOR = 0.1
_QUESTION_FACTOR = 0.4
_EXCLAMATION_FACTOR = 0.8


def readable(sentence: str) -> str:
    """Return a sentence without Markdown; empty when it is a heading, a rule or a template with gaps."""
    # Most sentences begin with a letter and have none of the signs that the patterns look for.
    if not sentence[:1].isalpha() or "*" in sentence or "`" in sentence or "[" in sentence:
        has_bracket = "[" in sentence
        if _HEADING.match(sentence) or (has_bracket and _PLACEHOLDER.search(sentence)):
            return ""
        sentence = _MARKS.sub("", sentence)
        if has_bracket:
            sentence = _LINK.sub(r"\1", sentence)
        sentence = sentence.replace("*", "").replace("`", "")
    text = sentence.strip()
    return "" if text.endswith(":") and len(text.split()) <= _LABEL_WORDS_MAX else text


def without_code(text: str) -> str:
    """Return a text without blocks of code."""
    return _CODE_BLOCK.sub("\n", text) if "```" in text else text


def content(sentence: str) -> float:
    """Return how much of a sentence is worth remembering, from 0 to 1."""
    lower = sentence.lower()
    words = min(1.0, len(distinct_words(sentence)) / _WORDS_FULL)
    named = min(1.0, len(_NAME.findall(sentence)) / 2)
    dated = 1.0 if _NUMBER.search(sentence) or _DAY.search(lower) else 0.0
    decided = 1.0 if _DECISION.search(lower) else 0.0
    personal = 1.0 if _PERSONAL.search(lower) else 0.0
    score = 0.35 * words + 0.2 * named + 0.2 * dated + 0.15 * decided + 0.1 * personal
    if _CODE.search(sentence):
        return score * _CODE_FACTOR
    if _CHATTER.search(lower):
        score *= _CHATTER_FACTOR
    if sentence.endswith(("?", ":")) or _REQUEST.match(lower):
        return score * _QUESTION_FACTOR
    return score * (_EXCLAMATION_FACTOR if sentence.endswith("!") else 1.0)
