"""Text flags: what a text has that ranking compares with a question, such as a time, a number or a name, as bits.

The patterns take 40 µs for a short message and 350 for a long answer, so that the flags of each text are computed once,
with its vectors, or when it is first ranked. A change of them is a change of `TEXT_FLAGS_VERSION`.
"""

from __future__ import annotations

import re
from zlib import crc32

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.answer_type import answer_types
from recollect.projections.text.segments import unsegmented_words
from recollect.projections.text.words import content_words, folded_words, spaced_words

#: Raise it with every change of the flags, so that stored ones are computed again.
TEXT_FLAGS_VERSION = 2

#: Flags of a text, which `ranking.features` combines with the intent of the query. `WORD_COUNT`: its words are
#: counted, and it has a key.
QUESTION, TIME, NUMBER, PREFERENCE, WORD_COUNT, NAMING, CHANGE = 1, 2, 4, 8, 16, 32, 64
#: Layout of the flags of a text: bits 0 to 6 as above, from 7 on the answer types (`AnswerType`), from 16 on which of
#: these bits were computed, from 32 on the number of content words, and from 36 on `text_key`.
TYPES_SHIFT, COMPUTED_SHIFT, WORDS_SHIFT, KEY_SHIFT = 7, 16, 32, 36
ALL_FLAGS = (1 << 15) - 1
#: Content words up to which they are counted.
WORDS_MAX = 8
#: The bits of the number of content words.
WORDS_BITS = (1 << KEY_SHIFT - WORDS_SHIFT) - 1
#: Characters of a text whose words make its key, and keys, so that all flags fit into 63 bits.
_KEYED_CHARS_MAX, _KEYS = 2_000, (1 << 63 - KEY_SHIFT) - 1
#: The beginning of a text, which usually has that many content words.
_BEGINNING_CHARS = 200
#: Characters whose flags are computed: 1 MiB takes 0.1 s, and its beginning has the same ones. By the first 1,000,
#: 74.0 % of the sessions of RealMem are found, instead of 75.2.
_FLAGGED_CHARS_MAX = 32_768

# These are compared with `spaced_words`.
_TIME_WORDS = late_pattern(
    r" (?:noon|midnight|yesterday|today|tomorrow|tonight|last|next|ago|weeks?|weekend|months?|years?|january|february|"
    r"march|april|may|june|july|august|september|october|november|december|summer|winter|spring|fall|autumn|morning|"
    r"recently|since|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:19|20)\d\d)\b",
)
_NUMBER_WORDS = late_pattern(
    r" (?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|once|twice|couple|several|dozen|first|second|third)\b",
)
_PREFERENCE_WORDS = late_pattern(r" (?:prefer\w*|favou?rite|love|like|enjoy|hate|always|never|usually|want)\b")
_NAMING_WORDS = late_pattern(r" (?:called|named|names? (?:s|is|was|are))\b")
#: A statement replaces an earlier one.
_CHANGE_WORDS = late_pattern(
    r" (?:actually|instead|after all|no longer|no more|any ?more|changed|moved (?:me|us|it|to)|now|new|again|update|"
    r"from now|switched|raised|lowered|postponed|rescheduled|cancel\w{0,6}|picked up|is done|correction|not \w+ but)\b",
)
# These are compared with the text. `re` looks for one of a set of characters fast, so that such a set comes first.
_CLOCK_TIME = late_pattern(r"\d(?<!\w\d)\d?:\d\d\b")
_INTRODUCTION = late_pattern(r"[IiCc](?<!\w.)(?i:(?<=i)(?:['’]m| am)|(?<=c)all (?:me|him|her|it|them|us)) [A-Z]")


def text_flags(text: str, required: int = ALL_FLAGS) -> int:
    """Return the flags of a text among those of `required`, in their layout."""
    text = text[:_FLAGGED_CHARS_MAX]
    flags = _word_flags(text, required)
    flags |= answer_types(text, required >> TYPES_SHIFT) << TYPES_SHIFT | required << COMPUTED_SHIFT
    if required & WORD_COUNT:
        flags |= _content_word_count(text) << WORDS_SHIFT | text_key(text) << KEY_SHIFT
    return flags


def text_key(text: str) -> int:
    """Return a number from 1 on that is the same for texts with the same words; few others have the same one."""
    return crc32(keyed_words(text).encode(errors="surrogatepass")) % _KEYS + 1


def keyed_words(text: str) -> str:
    """Return the words of the beginning of a text, case folded; the text when it has none."""
    return " ".join(folded_words(text[:_KEYED_CHARS_MAX])) or text


def _word_flags(text: str, required: int) -> int:
    words = spaced_words(text)
    flags = QUESTION * (required & QUESTION > 0 and is_question(text))
    for flag, pattern, compared in (
        (TIME, _TIME_WORDS, words),
        (TIME, _CLOCK_TIME, text),
        (NUMBER, _NUMBER_WORDS, words),
        (PREFERENCE, _PREFERENCE_WORDS, words),
        (NAMING, _NAMING_WORDS, words),
        (NAMING, _INTRODUCTION, text),
        (CHANGE, _CHANGE_WORDS, words),
    ):
        if required & flag & ~flags and pattern.search(compared) is not None:
            flags |= flag
    return flags


def _content_word_count(text: str) -> int:
    """Return the number of content words of a text, at most `WORDS_MAX`."""
    # Most long texts reach the maximum in their beginning, which is cut between two words.
    if len(text) > _BEGINNING_CHARS:
        beginning = text[: max(text.rfind(" ", 0, _BEGINNING_CHARS), 0)]
        if len(content_words(beginning)) >= WORDS_MAX:
            return WORDS_MAX
    return min(len(content_words(text[:2_000])) + unsegmented_words(text[:2_000]), WORDS_MAX)


def is_question(text: str) -> bool:
    """Return whether a text is a question or a request; a question mark inside a long text does not make it one."""
    if text.rstrip().endswith("?") or ("?" in text and len(text) < 200):
        return True
    return len(text) < _REQUEST_CHARS_MAX and _REQUEST.match(text) is not None


#: A question without its mark, or a request; people who type in a hurry leave the mark out.
_REQUEST = late_pattern(
    r"^(?:(?:and|so|but|ok|well|hey|hi|quick|stupid|silly|please|now|(?:\w{1,20} )?question)[ ,:]{1,3}+){0,4}+"
    r"(?:(?:what|which|who|whose|why|how)(?:['’]s|['’]re|s)?\b(?! (?:i|we) (?:love|like|hate|need|want)\b)|"
    r"(?:when|where)(?:['’]s|s)?\b(?! (?:i|you|we|they|he|she|it|the|my|our|your|his|her|their)\b)|"
    r"(?:can|could|do|does|did|is|are|was|were|should|shall|would|will|may) "
    r"(?:i|you|we|they|he|she|it|the|a|an|my|there|\w{3,20}s)\b|"
    r"(?:explain|summari[sz]e|sum up|(?:summary|recap|overview) of|"
    r"(?:tell|give|show|help) me|write|translate|calculate|convert|suggest|recommend|list|define|recipe for|"
    r"ideas? for|synonym for|another word for)\b)",
    re.I,
)
#: Characters up to which the beginning decides; a longer text says more than it asks.
_REQUEST_CHARS_MAX = 120
