"""Instructions: recognises texts that try to command an assistant, by weighted patterns.

Patterns find crude attacks only: on texts of others they found 25 to 57 % of blatant ones and none that is disguised as
a task. So they decide nothing about what a user says, and only what waits for a review of what others wrote.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from recollect.events.intake.part_search import PartSearch
from recollect.events.intake.payload_lines import line_numbers
from recollect.events.late_pattern import late_pattern

#: The sum of weights from which a text looks like instructions.
INSTRUCTIONS_MIN = 3
#: Characters of a text that are read: instructions for a machine are where it reads them.
_CHARS_MAX = 50_000
#: Characters of a text that is searched as a whole.
_SHORT_CHARS = 400
_TAG_BLOCK = late_pattern("[\U000e0020-\U000e007f]{4}")
_UNSEEN = late_pattern("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
#: The beginning of an HTML character reference, which may encode any letter.
_REFERENCE = late_pattern("&")
_REFERENCE_OR_TAG_BLOCK = late_pattern(f"&|{_TAG_BLOCK.pattern}")
_SENTENCE = late_pattern(r"[^.!?\n]{1,2000}[.!?\n]{0,3}|[.!?\n]{1,3}")


class _Rule(NamedTuple):
    """A pattern and its weight. A text that matches has one of the rule's words, so that other texts are skipped."""

    name: str
    weight: int
    #: The places of its words in `_WORDS`.
    numbers: frozenset[int]
    pattern: re.Pattern[str]
    #: Characters of a match, at most.
    chars_max: int


#: The words of all rules, in their order.
_words: list[str] = []


def _rule(name: str, weight: int, chars_max: int, words: str | tuple[str, ...], pattern: str) -> _Rule:
    start = len(_words)
    _words.extend(words.split("|") if isinstance(words, str) else words)
    return _Rule(name, weight, frozenset(range(start, len(_words))), late_pattern(pattern, re.IGNORECASE), chars_max)


_GAP = r"[^.!?\n]{0,60}?"
_RULES = (
    _rule(
        "override",
        3,
        90,
        "instruct|rule|prompt|guidelines|directions|anweisung|regeln|vorgaben|instrucc|reglas|consigne|istruzioni"
        "|instru|poleceni|инструк",
        rf"(?:ignor\w{{0,6}}|disregard|forget|overrid\w{{1,3}}|bypass|missachte\w?|vergiss|olvida|oubliez?)\b{_GAP}"
        r"\b(?:instruct\w{0,8}|rules?|prompts?|guidelines|directions|anweisung\w{0,3}|regeln|vorgaben|instrucci\w{0,5}"
        r"|reglas|consignes|istruzioni|instru[cç]\w{0,6}|polecenia|инструкци\w)\b",
    ),
    _rule(
        "template",
        3,
        20,
        # Roles alone are in every message.
        ("<|", "[inst", "[/inst", "<<sys", "<</sys", "recalled-memory", "###"),
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext)\|?>|\[/?inst\]|<</?sys>>|</?recalled-memory"
        r"|###\s?(?:system|instruction)",
    ),
    _rule(
        "transfer",
        3,
        210,
        "http|@|account|iban|dropbox|bcc",
        rf"\b(?:send|forward|transfer|wire|upload|leak|exfiltrate|leite|schicke?|sende|überweise?|envía|envoyez?)\b"
        r"[^.!?\n]{0,40}?\b(?:all|every|any|each|contacts?|invoices?|passwords?|money|payments?|credentials"
        r"|secrets?|tokens?"
        r"|conversations?|histor(?:y|ies)|alle|jede[nrs]?|geld|todos|toutes?|dinero|argent)\b"
        rf"{_GAP}(?:https?://|[\w.+-]{{1,40}}@[\w-]{{1,40}}|\baccount \d|\biban\b)"
        rf"|\b(?:put|add|set)\b{_GAP}@{_GAP}\bbcc\b|\bbcc\b{_GAP}@",
    ),
    _rule(
        "role",
        2,
        30,
        "you are|you're|act as|bist|ahora eres|tu es|system|developer",
        r"\b(?:you are|you're) (?:now|no longer|an? (?:unrestricted|uncensored|evil))\b|\bact as (?:an? |my )"
        r"|\bdu bist (?:jetzt|ab jetzt|nun)\b|\bahora eres\b|\btu es maintenant\b"
        r"|(?:^|[\n\"'(>])[ \t]{0,4}(?:system|developer)(?: prompt| message| note)?[ \t]{0,2}:|</?system>",
    ),
    _rule(
        "address",
        2,
        40,
        " ai|assistant|chatbot|language model|llm| bot| agent| ki|ai:|ai,",
        r"\b(?:(?:note|message|attention|instructions?) (?:to|for) (?:the |all |any )?|if you are an? |dear |hey "
        r"|liebe )"
        r"(?:ai|assistant|chatbot|language model|llm|bot|agent|ki)\b"
        r"|\b(?:ai|assistants?|chatbots?|language models?|llms?|ki)\b:?,? (?:must|should|shall|has to|have to"
        r"|please|always|muss)\b",
    ),
    _rule(
        "conceal",
        2,
        140,
        "tell|mention|inform|reveal|warn|alert|notify|nutzer|show",
        r"\b(?:do not|don['’]?t|never|without) (?:tell|telling|mention|mentioning|inform|informing|reveal|show"
        r"|warn|alert"
        r"|notify)(?:ing)?\b(?: (?:this|it|about))?(?: to)?(?: the)? ?(?:user|customer|reader|owner|anyone|human"
        r"|him|her|them"
        r"|me\b|others?|competitors?|other \w{1,20})"
        rf"|\bsag\w?\b{_GAP}\bnutzer\b{_GAP}\bnichts?\b",
    ),
    _rule(
        "standing",
        2,
        95,
        "always|never|whenever|from now|future|every time|immer|niemal|ab jetzt|ab sofort|nun an|siempre|toujours"
        "|desde|désormais",
        rf"\b(?:always|never|whenever|from now on|in (?:the )?future|every time|immer|niemals?|ab jetzt|ab sofort"
        rf"|von nun an"
        rf"|siempre|toujours|desde ahora|désormais)\b{_GAP}"
        r"\b(?:recommend|answer|reply|respond|say|tell|promote|praise|advise|empfiehl|empfehle|antworte|responde"
        r"|réponds"
        r"|recomienda|recommande|forward|send|transfer|start (?:every|each) (?:answer|reply)|call (?:me|the user))\b",
    ),
    _rule(
        "memory",
        2,
        80,
        "memory|rule|instruction|preference| fact",
        r"\b(?:remember|save|store|add|keep|memori[sz]e|merke? dir)\b[^.!?\n]{0,40}?\b(?:as (?:an? |the "
        r")?(?:permanent |standing "
        r"|system )?(?:rule|instruction|preference|fact)|(?:in|to|into) (?:your |long[- ]term |permanent )?memory)\b"
        r"|\bupdate your (?:memory|instructions|rules)\b",
    ),
    _rule(
        "prompt",
        2,
        40,
        "prompt|instructions",
        r"\b(?:reveal|print|show|repeat|output|leak) (?:me )?(?:your |the )(?:system |hidden |initial )?(?:prompt"
        r"|instructions)\b",
    ),
    _rule(
        "mode",
        2,
        20,
        " mode|jailb|unrestricted|uncensored",
        r"\b(?:developer|god|admin|root|dan|debug|unrestricted) mode\b|\bjailbr\w{1,8}|\b(?:unrestricted|uncensored)\b",
    ),
    _rule("hidden", 2, 20, "display:|visibility:|font-size:", r"display:\s?none|visibility:\s?hidden|font-size:\s?0"),
)


_WORDS = PartSearch(_words)
#: Words of the rule `address` that its pattern also takes at the beginning of a line or after a sign.
_ADDRESSED = PartSearch(("ai", "bot", "agent", "ki"))
#: The place in `_RULES` of the rule of each word.
_RULE_OF_WORD = [
    next(place for place, rule in enumerate(_RULES) if word in rule.numbers) for word in range(len(_words))
]


def instruction_score(text: str) -> int:
    """Return the sum of the weights of the patterns that `text` matches; 0 when it cannot reach `INSTRUCTIONS_MIN`."""
    plain = _plain(text)
    rules = _candidates(plain)
    hidden = INSTRUCTIONS_MIN if not text.isascii() and _TAG_BLOCK.search(text) else 0
    if hidden + sum(rule.weight for rule in rules) < INSTRUCTIONS_MIN:
        return 0
    return hidden + sum(rule.weight for rule in _matching(rules, plain))


def looks_like_instructions(text: str) -> bool:
    """Return whether `text` looks like instructions for an assistant."""
    return instruction_score(text) >= INSTRUCTIONS_MIN


def any_looks_like_instructions(texts: Sequence[str]) -> bool:
    """Return whether one of the texts of an event looks like instructions.

    Together they match every pattern that one of them matches, so most events are read once.
    """
    together = "\n".join(texts)
    if len(together) <= _CHARS_MAX and not looks_like_instructions(together):
        return False
    return any(map(looks_like_instructions, texts))


def may_look_like_instructions(payload: str) -> bool:
    """Return whether a text in a JSON payload can look like instructions; cheap, for most cannot.

    JSON writes other letters than ASCII, and all words of the rules, as they are in the texts.
    """
    if not payload.isascii() or "&" in payload:
        # Some letters and references are read as others.
        return True
    return sum(rule.weight for rule in _candidates(payload)) >= INSTRUCTIONS_MIN


def lines_like_instructions(payloads: str) -> set[int]:
    """Return the numbers of the lines, each a payload, with a text that can look like instructions, in one pass."""
    hidden = _REFERENCE if payloads.isascii() else _REFERENCE_OR_TAG_BLOCK
    numbers = set(line_numbers(payloads, (match.start() for match in hidden.finditer(payloads))))
    folded = _readable(payloads).casefold()
    rules: dict[int, set[int]] = {}
    matches = _WORDS.matches(folded)
    for (word, _, _), number in zip(matches, line_numbers(folded, (end for _, _, end in matches)), strict=True):
        rules.setdefault(number, set()).add(_RULE_OF_WORD[word])
    weights = {number: sum(_RULES[rule].weight for rule in own) for number, own in rules.items()}
    return numbers.union(number for number, weight in weights.items() if weight >= INSTRUCTIONS_MIN)


def without_instructions(text: str) -> str:
    """Return `text` with a mark in place of each sentence that has a part in its instructions."""
    parts = [part[0] for part in _SENTENCE.finditer(text)]
    return "".join(
        f"{part[: len(part) - len(part.lstrip())]}[withheld: instructions]" if _matches_any(part) else part
        for part in parts
    )


def _plain(text: str) -> str:
    """Return the text that is read: without width, codes and unseen signs."""
    text = text[:_CHARS_MAX]
    if text.isascii() and "&" not in text:
        return text
    return _readable(html.unescape(text))


def _readable(text: str) -> str:
    """Return a text in one form of each letter, without unseen signs; its lines stay."""
    return text if text.isascii() else _UNSEEN.sub("", unicodedata.normalize("NFKC", text))


def _candidates(plain: str) -> list[_Rule]:
    """Return the rules that have a word in common with a text."""
    folded = plain.casefold()
    numbers = _WORDS.numbers(folded)
    # Most texts have no word, or those of one rule.
    return [rule for rule in _RULES if not rule.numbers.isdisjoint(numbers)] if numbers else []


def _matching(rules: Sequence[_Rule], plain: str) -> Iterator[_Rule]:
    """Yield the rules whose patterns a text matches.

    A match has one of the rule's words, so the patterns, which take 0.05 to 0.3 µs for a character, are searched around
    these words alone.
    """
    folded = plain.casefold()
    if len(plain) <= _SHORT_CHARS or len(folded) != len(plain) or "ı" in folded:
        # In the others than short ones, the words have other places, or letters that only a pattern takes for theirs.
        yield from (rule for rule in rules if rule.pattern.search(plain))
        return
    matches = _WORDS.matches(folded)
    for rule in rules:
        places = [(start, end) for word, start, end in matches if word in rule.numbers]
        if rule.name == "address":
            places += [(start, end) for _, start, end in _ADDRESSED.matches(folded)]
            places.sort(key=itemgetter(1))
        parts = _around(places, rule.chars_max)
        # A pattern may match at the end of a part what goes on behind it.
        if any(rule.pattern.search(plain, *part) for part in parts) and rule.pattern.search(plain):
            yield rule


def _around(places: Sequence[tuple[int, int]], chars_max: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text that have all matches of up to `chars_max` characters with a word at one of `places`.

    The parts are ascending and apart, as the ends of the words are ascending.
    """
    begin, until = 0, 0
    for start, end in places:
        # A word may begin with a space that the match does not have.
        low = max(0, end - chars_max - 1)
        if low > until:
            if until:
                yield begin, until
            begin = low
        until = max(until, start + chars_max + 1)
    if until:
        yield begin, until


def _matches_any(text: str) -> bool:
    """Return whether `text` matches a pattern."""
    plain = _plain(text)
    return any(rule.pattern.search(plain) for rule in _candidates(plain))
