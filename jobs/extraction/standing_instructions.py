"""Standing instructions: finds what a user tells the assistant to do, or never to do, in every conversation from now on.

An instruction is an imperative to the assistant about how it works: a form that says so, with a verb of what assistants
do. "Always look on the bright side" and "whenever I come here, I bring it" are none. Pasted texts such as mails, pages
and logs give instructions to other people.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.jobs.extraction.message_kinds import PLEASE
from recollect.jobs.extraction.sentences import Sentence
from recollect.projections.text.words import STOP_WORDS, WORD

#: What an assistant does with answers, code, files and tools. "Keep going", "keep it up" and "give up" are said to people.
_ACTS = (
    r"(?:answer|respond|reply|write|talk(?! about)|speak|use|call(?! it a day)|address|include|cite|ask|remind|check|confirm|"
    r"explain|show|format|avoid|mention|assume|recommend|suggest|send|add|start|begin|end|quote|list|treat|refer|greet|share|"
    r"delete|push|commit|run|deploy|translate|summari[sz]e|convert|spell|sign|put|tell (?:me|us)|read|open|remember to|"
    r"give(?! up| in\b)|make sure|keep(?! (?:going|it up|at it|on|up|trying|fighting|smiling|pushing|dreaming|in touch))|"
    r"be (?:more |less |very )?(?:brief|concise|short|formal|informal|polite|direct|honest|critical|strict|precise|funny|casual))\b"
)
_FROM_NOW = (
    r"(?:from now on|from (?:today|here) on|in (?:the )?future|going forward|for all (?:my|future) \w+|every time|next time|"
    r"in (?:all|every|each of) (?:your|my) \w+)"
)
#: The forms of an instruction, at the beginning of a sentence.
_INSTRUCTION = re.compile(
    rf"^{PLEASE}(?:"
    rf"(?:always|never|only|do not ever|never ever) (?:please )?{_ACTS}"
    rf"|{_FROM_NOW},? {PLEASE}(?:always |never |only |do not |just )?{_ACTS}"
    r"|(?:keep|make) (?:your (?:answers?|repl(?:y|ies)|responses?|messages?|code|explanations?|summar(?:y|ies))|"
    r"(?:all (?:the )?|the )(?:answers|replies|responses|messages|explanations|summaries))\b"
    r"|(?:answer|respond|reply|write|talk|speak)(?: to me| me)? (?:only |always )?(?:in|with) \w"
    r"|(?:call|address) me (?:as )?(?!back\b|when\b|if\b|later\b|tomorrow\b|at\b|on\b|a\b|an\b|crazy\b)\w"
    r"|no (?:more )?(?:emojis?|bullet points|bullets|tables|headings|markdown|exclamation marks|small talk|jargon|lists)\b"
    r"|(?:short|brief|concise|long|detailed) (?:answers|replies|responses)\b"
    r")",
    re.IGNORECASE,
)
#: A request that is about the task at hand unless it is brief, `answer in German`, or says that it is for good.
_TASK_FORM = re.compile(rf"^{PLEASE}(?:answer|respond|reply|write|talk|speak)\b", re.IGNORECASE)
#: What not to do: it is about the task at hand unless it is about style, or says that it is for good.
_PROHIBITION = re.compile(
    rf"^{PLEASE}(?:do not|stop) (?:us(?:e|ing)|send(?:ing)?|add(?:ing)?|writ(?:e|ing)|call(?:ing)? me|start(?:ing)?|"
    r"answer(?:ing)?|remind(?:ing)?|apologi[sz](?:e|ing)|explain(?:ing)?|recommend(?:ing)?|suggest(?:ing)?|repeat(?:ing)?|"
    r"ask(?:ing)? me)\b",
    re.IGNORECASE,
)
_FOR_GOOD = re.compile(
    r"\b(?:any ?more|again|ever|apologi[sz]\w{1,3}|(?:with|to) me|in (?:your|the) (?:answers|replies|messages|code))\b",
    re.IGNORECASE,
)
#: "Whenever I ask for code, use Python".
_ON_REQUEST = re.compile(
    rf"^(?:whenever|every time|each time|when|if) (?:i|we) (?:ask|say|write|send|mention|tell|request|want|paste|share)\b"
    rf".{{1,80}}?, (?:then )?{PLEASE}(?:always |never |only |do not )?{_ACTS}",
    re.IGNORECASE,
)
#: At the end of a request, which makes it hold from then on.
_ENDING = re.compile(rf"^{PLEASE}(?:only |do not |just )?{_ACTS}.{{1,120}}? {_FROM_NOW}$", re.IGNORECASE)
#: A sentence in which the speaker tells of something: "in the future I am going to".
_NARRATED = re.compile(
    r"^(?:in (?:the )?future|every time|next time|going forward),? (?:i|we|he|she|they|it)\b", re.IGNORECASE
)
#: What has consequences outside the conversation, or is for the profit of others: one text is not enough for it.
_RISKY = re.compile(
    r"\b(?:pay|transfer|wire|send|forward|buy|order|purchase|book|delete|erase|hide|conceal|keep (?:it |this |that )?(?:a )?secret|"
    r"do not tell|recommend|promote|advertise|share|upload|post|invest|bcc|cc|password|token|key|credit card|account|link|url|https?)\b|\w@\w",
    re.IGNORECASE,
)
#: "Send me a summary" and "do not share my number" are harmless.
_HARMLESS = re.compile(
    r"\b(?:send|give|recommend|suggest|remind) (?:me|us)\b|\b(?:never|do not(?: ever)?|stop)\b|"
    r"\b(?:ask|check|confirm|warn)(?: me| with me)? (?:first|before)\b",
    re.IGNORECASE,
)
#: What makes an instruction hold for every conversation.
_PERMANENT = re.compile(
    r"\b(?:always|never|from now|from (?:today|here) on|in (?:the )?future|going forward|any ?more|every|each|whenever|all|"
    r"call me|address me|again|ever|when(?:ever)? (?:i|we))\b",
    re.IGNORECASE,
)
#: Characters from which on a message is mostly about one task.
_TASK_CHARS_MIN = 250
#: The topics of instructions that exclude each other: a newer one replaces the older one.
_TOPICS = (
    ("form of address", re.compile(r"\b(?:call|address) me\b", re.IGNORECASE)),
    (
        "language",
        re.compile(
            r"\b(?:in|only|use|speak|write) (?:\w+ )?(?:english|german|french|spanish|italian|portuguese|dutch|polish|russian|"
            r"chinese|japanese|korean|turkish|arabic|hindi|ukrainian|swedish|czech|greek)\b",
            re.IGNORECASE,
        ),
    ),
    ("bullet points", re.compile(r"\bbullet(?:s|ed|[ -]points?)\b", re.IGNORECASE)),
    ("emojis", re.compile(r"\bemoji", re.IGNORECASE)),
    ("tables", re.compile(r"\btables?\b", re.IGNORECASE)),
    ("markdown", re.compile(r"\bmarkdown\b", re.IGNORECASE)),
    (
        "length of answers",
        re.compile(
            r"\b(?:short|brief|concise|long|detailed|length|words|sentences|paragraphs?|elaborate)\b", re.IGNORECASE
        ),
    ),
    ("tone", re.compile(r"\b(?:formal|informal|casual|polite|direct|honest|critical|funny|tone)\b", re.IGNORECASE)),
    ("units", re.compile(r"\b(?:metric|imperial|celsius|fahrenheit|kilomet|miles|units)\b", re.IGNORECASE)),
)
_FORMATTING = frozenset(("bullet points", "emojis", "tables", "markdown", "units"))
_KEY_WORDS_MAX = 8
#: Sentences that a copied page runs together: `in English.Share`.
_RUN_ON = re.compile(r"[a-z]\.(?!NET\b|JS\b)[^\W\d_a-z]")
#: Words for what is spoken of: the prohibition ends with the task.
_OF_THE_TASK = re.compile(r"\b(?:it|this|that|them|these|those)\b|, just\b", re.IGNORECASE)
#: Words of an instruction that needs no word for `always`; a longer one describes a task.
_BRIEF_WORDS_MAX = 8


class StandingInstruction(NamedTuple):
    """An instruction, and what it is about."""

    text: str
    #: Instructions with the same topic replace each other.
    topic: str
    #: The category of a preference that fits its topic; None for a topic of its own.
    category: str | None
    #: Whether it needs the consent of the caller, so that it is kept and not obeyed.
    is_risky: bool


def is_risky(text: str) -> bool:
    """Return whether an instruction has consequences outside the conversation, or is for the profit of others."""
    return _RISKY.search(text) is not None and _HARMLESS.search(text) is None


def find_instruction(sentence: Sentence, *, message_chars: int = 0) -> StandingInstruction | None:
    """Return the standing instruction that a sentence gives to the assistant; None when it gives none.

    Parameters:
        message_chars: the length of the message; in a long one, `answer in English` is about the task at hand.
    """
    text = sentence.text
    if message_chars > _TASK_CHARS_MIN and _PERMANENT.search(text) is None:
        return None
    if sentence.is_question or '"' in text or _NARRATED.match(text) or _RUN_ON.search(text):
        return None
    if len(text.split()) > _BRIEF_WORDS_MAX and _TASK_FORM.match(text) and _PERMANENT.search(text) is None:
        return None
    topic = next((name for name, pattern in _TOPICS if pattern.search(text)), None)
    if not any(form.match(text) for form in (_INSTRUCTION, _ON_REQUEST, _ENDING)):
        is_for_good = (topic is not None or _FOR_GOOD.search(text) is not None) and not _OF_THE_TASK.search(text)
        if not is_for_good or _PROHIBITION.match(text) is None:
            return None
    return instruction_of(text)


def instruction_of(text: str) -> StandingInstruction:
    """Return a sentence that is a standing instruction with its topic."""
    topic = next((name for name, pattern in _TOPICS if pattern.search(text)), None)
    if topic is not None:
        category = "formatting" if topic in _FORMATTING else "communication"
        return StandingInstruction(text, topic, category, is_risky(text))
    words = [word for word in WORD.findall(text.casefold()) if word not in STOP_WORDS]
    return StandingInstruction(text, " ".join(words[:_KEY_WORDS_MAX]) or text[:80].casefold(), None, is_risky(text))
