"""Forget requests: reads from a message what its sender asks the assistant to forget.

A sentence asks when it has a verb of forgetting whose subject is the assistant: `I always forget my keys`, `don't forget
the milk` and `I deleted my account` ask for nothing. What is named are things of the speaker (`my salary`), clauses
(`that I was fired`) and what follows `about`; whether anything of that is known decides what is forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from recollect.jobs.extraction.own_words import own_words
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.stems import content_stems

#: Characters of a message that are read, and of a sentence: a request is short.
_TEXT_CHARS_MAX = 2_000
_SENTENCE_CHARS_MAX = 300

_FORGET = (
    r"forget(?:ting)?|forgot(?:ten)?|unlearn|unremember|vergiss|vergessen|vergesse|olvid(?:a|e|ar|ad)(?:lo|la)?|"
    r"olvída(?:lo|la|te)?|oubli(?:e[sz]?|er)"
)
_DELETE = (
    r"delet(?:e|ed|ing)|eras(?:e|ed|ing)|remov(?:e|ed|ing)|wip(?:e|ed|ing)|scrub|purge|lösch(?:e|en)?|entfern(?:e|en)?|"
    r"borr(?:a|e|ar)(?:lo|la)?|elimin(?:a|e|ar)|effac(?:e[sz]?|er)|supprim(?:e[sz]?|er)"
)
_KEEP = (
    r"remember(?:ing)?|keep(?:ing)?|know|stor(?:e|ing)|sav(?:e|ing)|retain(?:ing)?|memori[sz](?:e|ing)|recuerdes|guardes|retiens|"
    r"garde|merken?|merk dir"
)
_NOT = r"(?:don't|do not|not|never|no|ne|nicht|stop|without|doesn't|didn't)"
_REQUEST = re.compile(
    rf"(?<![\w'])(?:(?P<verb>{_FORGET})|(?P<delete>{_DELETE})|{_NOT} (?:have to |need to |want you to )?(?P<keep>{_KEEP})|"
    rf"(?:merk|merke) dir nicht|(?P<gone>(?:from|out of) your (?:memory|mind|head|notes|database)))(?![\w'])",
    re.IGNORECASE,
)
#: What precedes the verb when its subject is not the assistant, or when it is negated or asked about.
_OTHER_SUBJECT = re.compile(
    r"\b(?:don't|do not|dont|never|didn't|won't|wouldn't|can't|cannot|not|no|n'|ne|nicht|nunca|did|have|has|had|do)"
    r"(?: (?:you|we|i|ever|to|just|me|te)){0,4}\s?$|"
    r"\b(?:i|we|he|she|they|it|who|people|ich|wir|er|sie|yo|je|on|il|elle)(?:'d|'ve|'ll|'s)?"
    r"(?: (?!(?:want|like|prefer|need|ask|rather|wish|beg|be)\b)[\w']{1,30}){0,3}\s?$",
    re.IGNORECASE,
)
#: Words by which the speaker asks the assistant.
_ASKS = re.compile(
    r"\b(?:want|like|prefer|need|ask|wish|beg|grateful|mind|rather|would you|could you|can you|will you|can u|please|pls)\b",
    re.I,
)
_NEGATED_AFTER = re.compile(r"^\W{0,2}(?:nicht|pas|not)\b", re.IGNORECASE)
#: A thing of a text or a program, or something to be done.
_TASK = re.compile(
    r"^\W{0,3}to \w|\b(?:from|in|at|on) (?:this|that|these|the (?!kids|bank)|my \w{1,30} ?(?:file|list|form|code))",
    re.I,
)
_MEMORY = re.compile(
    r"\b(?:from|in|out of) (?:your|the) (?:memory|memories|mind|head|notes|records?|database|brain)\b", re.I
)
_END = (
    r"(?=[,.;:!?()—–]|\b(?:and|or|nor|as well as|please|pls|already|right|now|from|would|could|should|stays?|is|are|was|gone|forgotten|deleted|"
    r"vergessen|löschen|gesagt|habe|olvidar|borrar|oublier|effacer|und|y|et|bitte|stp|i|you)\b|$)"
)
_OWN_THING = re.compile(
    rf"\b(?:my|our|her own|mein(?:e|en|em|er|es)?|unser\w{{0,2}}|mis?|nuestr[oa]s?|mon|ma|mes|notre) (?P<thing>[\w'’-]{{1,30}}(?: [\w'’-]{{1,30}}){{0,4}}?) ?{_END}",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"\b(?:that|how (?:much|many|old|tall|often)(?: \w{1,30})?|how|who|whom|where|which|what|when|dass|wie viel|que|cuánto|combien)"
    r" (?P<clause>(?:\w{1,30} ){0,2}(?:i|i'm|i've|we|my|our|ich|meine?|wir|mi|je|j'ai|mon|ma|mes)\b.{2,80}?)(?:[,.;!?]|$|\band (?:don't|forget|delete|erase)\b)",
    re.IGNORECASE,
)
#: Clauses that only speak of telling: `what I said to you about`.
_SAYING = re.compile(
    r"\b(?:that |what |everything |anything |all |the thing |the bit )?(?:i|we)(?:'ve| have| had| just| ever)* "
    r"(?:told|said|mentioned|wrote|shared|gave)(?: to)?(?: you)?\b",
    re.IGNORECASE,
)
_WIDE = re.compile(r"\b(?:everything|anything|all|whatever|alles|todo|tout)\b", re.IGNORECASE)
_ABOUT = re.compile(
    rf"\b(?:about|on|of|über|sobre|sur|forget|wipe|erase|delete|remove) (?P<about>[A-Z][\w'-]{{1,30}}(?: [A-Z][\w'-]{{1,30}})?) ?{_END}"
)
_JUST_SAID = re.compile(
    r"\b(?:what|the thing|everything) (?:i|we)(?:'ve| have)?(?: just)? (?:told|said|wrote|sent|mentioned)(?: you| to you)?(?: just)?"
    r"(?: now)?\W*$|\bmy (?:last|previous) (?:message|sentence)\b",
    re.IGNORECASE,
)
_FORGET_IT = re.compile(r"\bforget (?:about )?it\b", re.IGNORECASE)
_QUOTE = re.compile(r"[\"“”]")
_SUBJECT = re.compile(r"\b(?:i|we|he|she|they|it|who)\s?$", re.IGNORECASE)
_CLAUSE_BREAK = re.compile(r"[,.;:!?—–]| and | so ")
_NAME = re.compile(r"\b[A-Z][\w'-]{1,40}")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_CJK_VERB = re.compile(r"忘记|忘掉|忘了|忘れて|消して|削除|删除|删掉|刪|(?:别|不要)(?:记|保存)|覚えないで")
_CJK_NEGATED = re.compile(r"(?:别|不要|不会|没有?|总是?|老是?|常)(?:.{0,3})忘|忘れないで|忘れました|忘れちゃ|忘れた")
_CJK_THING = re.compile(r"(?:我的?|私の|うちの|僕の|俺の)(?P<thing>[^，。？！、はをのがにも的忘删把\s]{1,12})")
#: Words of requests that name nothing.
_EMPTY = frozenset(
    content_stems(
        "forget delete erase remove wipe memory please everything anything what name story bit thing matter message sentence "
        "mind word words kindly gone strike get rid thx pls stp damn bitte info information detail details fact part stuff"
    )
) - content_stems("name")


_ASKING = content_stems(
    "want like need would rather prefer wish beg grateful mind ask ok okay hey hi actually quick favour favor sorry just "
    "bitte könntest kannst podrías puedes por favor pourriez vous tu peux le la lo ce et und y bien also"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRequest:
    """What a message asks to forget."""

    #: The words that name it; empty: it is not named.
    words: str
    #: Stems of these words; of a language without spaces the words themselves.
    stems: frozenset[str]
    #: Whether all about it is meant: `everything about Paul`.
    wide: bool = False
    #: Whether it belongs to the speaker: `my salary`.
    own: bool = False
    #: Whether it is a clause: `that I was fired`.
    clause: bool = False
    #: Whether the statement just before is meant: `forget what I just said`.
    previous: bool = False


def forget_requests(text: str, speaker: str) -> list[ForgetRequest]:
    """Return what a message of `speaker` asks to forget; a request that names nothing is not clear."""
    if not may_request(text):
        return []
    own = own_words(text[:_TEXT_CHARS_MAX], speaker).replace("’", "'")
    requests: dict[frozenset[str], ForgetRequest] = {}
    before = ""
    for sentence in split_sentences(own):
        for request in _of_sentence(sentence.strip(), before):
            requests.setdefault(request.stems, request)
        before = sentence
    named = [request for request in requests.values() if request.stems or request.previous]
    return named or [*requests.values()]


def is_request_alone(text: str, speaker: str) -> bool:
    """Return whether each sentence of a message asks to forget, or says next to nothing."""
    sentences = split_sentences(text[:_TEXT_CHARS_MAX].replace("’", "'"))
    return all(len(content_stems(sentence)) <= 1 or forget_requests(sentence, speaker) for sentence in sentences)


#: A part of each verb above.
_MAY = re.compile(
    r"forg[eo]t|unlearn|remember|vergess|vergiss|olvid|olvíd|oubli|keep|know|stor|sav|retain|memori|merk|recuerd|guard|retien|"
    r"garde|delet|eras|remov|wip|scrub|purg|lösch|entfern|borr|elimin|effac|supprim|忘|删|刪|记|消|削除|覚",
    re.IGNORECASE,
)


def may_request(text: str) -> bool:
    """Return whether a text may ask to forget; cheap, since it is asked for each message."""
    return _MAY.search(text[:_TEXT_CHARS_MAX]) is not None


def _of_sentence(sentence: str, before: str) -> Iterator[ForgetRequest]:
    """Yield the requests of a sentence; a pronoun such as `it` names what the sentence before names."""
    if len(sentence) > _SENTENCE_CHARS_MAX:
        return
    if _CJK.search(sentence):
        if _CJK_VERB.search(sentence) and not _CJK_NEGATED.search(sentence):
            things = [match["thing"] for match in _CJK_THING.finditer(sentence)]
            things = things or [match["thing"] for match in _CJK_THING.finditer(before)]
            yield from (ForgetRequest(words=it, stems=frozenset((it,)), own=True) for it in things if len(it) > 1)
        return
    match = next((it for it in _REQUEST.finditer(sentence) if _is_request(sentence, it)), None)
    if match is None:
        return
    plain = " ".join(_MEMORY.sub("", sentence).split())
    if _JUST_SAID.search(plain):
        yield ForgetRequest(words="", stems=frozenset(), previous=True)
        return
    named = [*_named(plain)]
    if not named and before and len(content_stems(plain) - _EMPTY) <= 2:
        named = [*_named(before)]
        if not named and not match["verb"]:
            named = [ForgetRequest(words="", stems=frozenset())]
    if not named and match["verb"] and not _FORGET_IT.search(sentence):
        named = [ForgetRequest(words="", stems=frozenset())]
    yield from named


def _is_request(sentence: str, match: re.Match[str]) -> bool:
    """Return whether a verb of forgetting in a sentence is what the assistant is asked to do."""
    before, after = sentence[: match.start()], sentence[match.end() :]
    if _NEGATED_AFTER.match(after) or _QUOTE.search(before):
        return False
    if match["keep"] is None and _OTHER_SUBJECT.search(before) and not _ASKS.search(before):
        return False
    if match["keep"] is not None and "want" not in match[0] and _SUBJECT.search(before):
        return False
    if _TASK.search(_MEMORY.sub("", after)):
        return False
    # `This holiday will delete my savings` and `tailors like to forget`: the assistant is not the subject.
    clause = _CLAUSE_BREAK.split(_without_names(before))[-1]
    return all(len(it) < 3 for it in content_stems(clause.lower()) - _EMPTY - _ASKING)


def _without_names(text: str) -> str:
    """Return a text without what it names."""
    return _NAME.sub(" ", _OWN_THING.sub(" ", _CLAUSE.sub(" ", _SAYING.sub(" ", text))))


def _named(sentence: str) -> Iterator[ForgetRequest]:
    """Yield what a sentence names: clauses, things of the speaker, and names."""
    wide = _WIDE.search(sentence) is not None
    rest = _SAYING.sub(" ", sentence)
    taken: list[tuple[int, int]] = []
    for match in _CLAUSE.finditer(rest):
        stems = content_stems(match["clause"].lower()) - _EMPTY
        if stems:
            taken.append(match.span())
            yield ForgetRequest(words=match["clause"], stems=stems, own=True, clause=True)
    verb = _REQUEST.search(rest)
    for match in _OWN_THING.finditer(rest):
        between = rest[verb.end() : match.start()] if verb is not None and verb.end() <= match.start() else ""
        if content_stems(_without_names(between).lower()) - _EMPTY:
            # `remove page 4 of the text about my court case`
            continue
        stems = content_stems(match["thing"].lower()) - _EMPTY
        if stems and not any(start <= match.start() < end for start, end in taken):
            yield ForgetRequest(words=match[0].strip(), stems=stems, wide=wide, own=True)
    if not taken:
        for match in _ABOUT.finditer(rest):
            yield ForgetRequest(words=match["about"], stems=content_stems(match["about"].lower()), wide=True)
