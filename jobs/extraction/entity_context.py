"""Entity context: what the words around and within a name say about the type of thing that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from recollect.jobs.extraction import vocabulary

#: Characters before and after a name that are read: five or six words. It bounds the time of the patterns.
_BEFORE_CHARS = 48
_AFTER_CHARS = 32

_RELATIVES = "|".join((*vocabulary.RELATIONS, "friends", "kid", "kids", "sons", "daughters", "sisters", "brothers"))
_MORE_PETS = (
    "pet",
    "doggo",
    "pup",
    "guinea pig",
    "gecko",
    "ferret",
    "chinchilla",
    "mouse",
    "rat",
    "pony",
    "hen",
    "parakeet",
    "budgie",
)
_PETS = "|".join(
    f"{pet}s?" if not pet.endswith("y") else f"{pet}|{pet[:-1]}ies" for pet in (*vocabulary.PETS, *_MORE_PETS)
)


_PET = re.compile(rf"\b(?:{_PETS})\b", re.IGNORECASE)
#: The words before the name of what the sentence before speaks of.
_ITS_NAME = re.compile(
    r"(?:^|\W)(?:(?:her|his|its|their) names?(?:'s| is| are|:)|(?:she|he|it) is (?:called|named)) $", re.IGNORECASE
)


class TypeEvidence(NamedTuple):
    """Evidence for the type of an entity."""

    #: An entity type of the catalogue.
    type: str
    #: 0 to 1: the share of such names that have the type.
    confidence: float


def _before(type: str, confidence: float, pattern: str) -> tuple[TypeEvidence, re.Pattern[str]]:
    """Return evidence from the words before a name."""
    return TypeEvidence(type, confidence), re.compile(rf"(?:^|[\s\"(])(?:{pattern}) [\"(]?$", re.IGNORECASE)


def _after(type: str, confidence: float, pattern: str) -> tuple[TypeEvidence, re.Pattern[str]]:
    """Return evidence from the words after a name."""
    return TypeEvidence(type, confidence), re.compile(rf"(?:{pattern})(?!\w)")


_BEFORE = (
    _before("animal", 0.95, rf"(?:{_PETS}),?(?: (?:is |are )?(?:named|called)| is| was| are)?"),
    _before("animal", 0.9, rf"(?:{_PETS})'s name is"),
    _before("animal", 0.6, r"walk(?:ed|ing)?|adopted|petting|cuddl(?:e|ed|ing)(?: with)?"),
    _before("person", 0.95, rf"(?:my|his|her|their|our|your|\w+'s) (?:\w+ )?(?:{_RELATIVES}),?(?: (?:is )?(?:named|called)| is)?"),
    _before("person", 0.95, rf"(?:{_RELATIVES})'s name is"),
    _before("person", 0.95, r"(?:a |an |the )?(?:guy|girl|boy|man|woman|person|someone|somebody|kid|lady|baby) (?:is )?(?:named|called)"),
    _before("person", 0.9, r"(?:mr|mrs|ms|miss|dr|prof|professor|doctor|coach|aunt|uncle|grandma|grandpa|sir)\.?"),
    _before("person", 0.9, r"(?:my name is|i am called|call me|name's|this is my friend)"),
    _before("person", 0.6, r"(?:told|tell|asked|married|marry|dating|texted|hugged|talk(?:ed|ing)? (?:to|with)|spoke (?:to|with)|met up with|meeting with)"),
    _before("person", 0.5, r"(?:hey|hi|hello|dear|thanks|thank you|congrats|congratulations|sorry|bye),?"),
    _before("person", 0.45, r"(?:met|meet|meeting|called|with|me and|thanked|helped|help|invited?)"),
    _before("location", 0.9, r"(?:(?:live|lives|lived|living|stay|stayed|staying|grew up|born|raised|based|located) (?:\w+ )?(?:in|near))"),
    _before("location", 0.85, r"(?:mov(?:e|es|ed|ing)|relocat(?:e|ed|ing)|trips?|travel(?:l?ed|l?ing|s)?|fl(?:y|ew|ies|ying)|flights?|road ?trip|drove|"
            r"vacation|holidays?|train|bus) (?:back )?(?:to|from|in|around)"),
    _before("location", 0.8, r"(?:apartment|house|flat|hotel|city|town|village|country|beach|place|restaurant|caf[eé]|park|state|capital) (?:in|of|near)"),
    _before("location", 0.45, r"(?:in|near|around|across|from|visit(?:ed|ing)?|been to|going to|went to|go to)"),
    _before("organization", 0.9, r"(?:work(?:s|ed|ing)?|job|intern(?:ed|ing|ship)?|interview(?:ed|ing)?|employed|position|role|career) (?:at|for)"),
    _before("organization", 0.85, r"(?:hired by|employed by|offer from|enrol?led (?:at|in)|(?:stud(?:y|ies|ied|ying)|student|degree) (?:at|from)|"
            r"graduated from|(?:ceo|founder|director|employee) (?:of|at)|sponsored by|compan(?:y|ies) (?:called|named|like))"),
    _before("organization", 0.5, r"(?:join|joined|volunteer(?:ed|ing)? (?:at|for|with)|interview with|sponsorship (?:with|from)|deal with)"),
    _before("tool", 0.85, r"(?:(?:app|apps|website|platform|software|library|framework|tools?|program|language|database) ?(?:called|named|like|such as)?)"),
    _before("tool", 0.6, r"(?:us(?:e|es|ed|ing)|via|install(?:ed|ing)?|download(?:ed|ing)?|switch(?:ed|ing)? to|learn(?:ed|ing)?|coding in|written in)"),
    _before("product", 0.6, r"(?:bought|buy|buying|ordered|sold|drives?|drove|own|wearing|play(?:ed|s|ing)?)(?: (?:a|an|my|the|some))?(?: (?:new|old|used))?"),
    _before("work", 0.9, r"(?:(?:book|novel|movie|film|song|album|series|tv show|musical|podcast|poem|painting|story|video ?game)s?,?"
            r" ?(?:called|titled|named|like|is)?|titled|entitled)"),
    _before("work", 0.6, r"(?:(?:re-?)?read|reading|watched|watching|re-?watch(?:ed|ing)?|listen(?:ed|ing)? to)"),
    _before("event", 0.8, r"(?:(?:event|festival|conference|tournament|convention|workshop|concert) (?:called|named))"),
)  # fmt: skip
_AFTER = (
    _after("person", 0.95, rf"(?:,| is| was) (?:my|his|her|our|their) (?:\w+ )?(?:{_RELATIVES})"),
    _after("person", 0.8, rf"'s (?:birthday|wedding|funeral|graduation|\w+ ?(?:party)|{_RELATIVES}|parents|husband|wife|kids|boyfriend|girlfriend|advice)"),
    _after("person", 0.7, r" and I"),
    _after("person", 0.6, r" (?:just |also |always |really |once |has |had |have )?(?:said|says|told|tells|asked|asks|thinks|thought|texted|called me|"
           r"mentioned|suggested|recommended|taught|helped|invited|agreed|laughed|smiled|married|works|worked|cooked|bought|wrote|writes|teaches|showed|shared|"
           r"announced|wants|wanted|hopes|promised|insisted|reminded|offered|introduced|broke up|proposed|gave me|got (?:married|engaged|promoted))"),
    _after("person", 0.45, r" (?:loves?|loved|likes?|liked|went|came|got|is coming|visited|moved|lives|lived|made|knows|knew|seems|looked|feels|felt|"
           r"is (?:so|very|really|such|doing|planning|going|turning|getting)|and her|and his|will|would|who|whose)"),
    _after("animal", 0.95, rf"(?:,| is| was) (?:my|our|his|her|the|a|an) (?:[\w-]+ ){{0,2}}(?:{_PETS})"),
    _after("animal", 0.9, r" (?:barks?|barked|barking|meows?|meowed|purrs?|purred|purring|wags?|chewed|chases?|sheds)"),
    _after("location", 0.6, r", (?:[A-Z][A-Z]|USA|UK)"),
    _after("tool", 0.8, r" (?:app|api|library|plugin|framework|account|database|server|software|sdk)"),
    _after("product", 0.7, r" (?:console|phone|laptop|camera|bike|car|shoes|sneakers|headphones|guitar)"),
    _after("work", 0.7, r" (?:books?|movies?|films?|series|novel|soundtrack|trilogy|album)|\" by"),
    _after("organization", 0.8, r" (?:employees|headquarters|ceo|hired|acquired|stock|shares|internship)"),
    _after("event", 0.7, r" (?:weekend|celebrations?|festivities|party|dinner)"),
)  # fmt: skip


def _by_word(**words: str) -> dict[str, str]:
    """Return the type of each word of the lists."""
    return {word: type for type, listed in words.items() for word in listed.split()}


#: Last words of names that tell the type: `Central Park`.
_LAST_WORDS = _by_word(
    location="""
        street avenue road lane boulevard park lake beach island islands river mountain mountains mount city bridge valley airport
        station square garden gardens forest falls canyon coast bay hill hills bar cafe café restaurant diner bistro hotel
        village town county museum library stadium arena theater theatre plaza mall market trail desert ocean sea castle
        cathedral temple tower zoo library gym studio peninsula harbor harbour
    """,
    organization="""
        inc ltd limited llc plc gmbh ag corp holdings corporation company university college school academy institute hospital church
        association foundation society agency group council committee department ministry union team clinic centre center
        club league bank airlines shelter nonprofit charity organization organisation
    """,
    event="""
        day festival conference parade marathon tournament championship championships cup olympics fair workshop summit week
        concert expo convention eve carnival gala race games competition conf hackathon meetup
    """,
    product="series guitar console phone",
    tool="app api sdk",
)
#: First words of names that tell the type: `Lake Tahoe`, `University of Porto`.
_FIRST_WORDS = _by_word(
    location="lake mount mt fort port san santa los las el north south east west rio isle cape st saint",
    organization="university bank college ministry department institute",
)
#: Days that have a name.
_HOLIDAYS = frozenset(
    "christmas easter thanksgiving halloween hanukkah ramadan eid diwali valentine valentine's passover juneteenth xmas".split()
)
#: A product of software: `GitHub`, `WhatsApp`; not `McDonald` or `LeBron`.
_CAMEL_CASE = re.compile(r"(?!(?:Mc|Mac|Le|De|La|Di|Du|Van|Fitz)[A-Z])[A-Z][a-z]+[A-Z]")
_CAMEL_CASE_CONFIDENCE = 0.6
#: Confidence by the last word, by the first word, and for a named day.
_LAST_WORD_CONFIDENCE = 0.85
_FIRST_WORD_CONFIDENCE = 0.6


def evidence_around(text: str, start: int, end: int, *, after_pet: bool = False) -> Iterator[TypeEvidence]:
    """Yield the evidence from the words before and after the name at `text[start:end]`.

    Parameters:
        after_pet: whether the sentence before speaks of a pet.
    """
    before, after = text[max(0, start - _BEFORE_CHARS) : start], text[end : end + _AFTER_CHARS]
    yield from (evidence for evidence, pattern in _BEFORE if pattern.search(before))
    yield from (evidence for evidence, pattern in _AFTER if pattern.match(after))
    if after_pet and _ITS_NAME.search(before):
        yield TypeEvidence("animal", 0.95)
    if before.endswith(", ") and " " not in text[start:end] and not after.strip(" \"')"):
        # `Thanks so much, Ann`: a person is addressed.
        yield TypeEvidence("person", 0.7)


def has_type_word(words: list[str]) -> bool:
    """Return whether the first or the last word of a name tells its type, so that both belong to it."""
    return words[-1].casefold() in _LAST_WORDS or words[0].casefold() in _FIRST_WORDS


def is_camel_case(word: str) -> bool:
    """Return whether a word has a capital inside, as names of software have."""
    return _CAMEL_CASE.match(word) is not None


def introduces_pet(sentence: str) -> bool:
    """Return whether a sentence speaks of a pet, whose name the next one may say: `Her name is Coco`."""
    return _PET.search(sentence) is not None


def evidence_within(words: list[str]) -> Iterator[TypeEvidence]:
    """Yield the evidence from the words of a name."""
    last, first = words[-1].casefold(), words[0].casefold()
    if is_camel_case(words[0]) or is_camel_case(words[-1]):
        yield TypeEvidence("tool", _CAMEL_CASE_CONFIDENCE)
    if first in _HOLIDAYS or last in _HOLIDAYS:
        yield TypeEvidence("event", 0.9)
    elif len(words) > 1 and last in _LAST_WORDS:
        yield TypeEvidence(_LAST_WORDS[last], _LAST_WORD_CONFIDENCE)
    elif len(words) > 1 and first in _FIRST_WORDS:
        yield TypeEvidence(_FIRST_WORDS[first], _FIRST_WORD_CONFIDENCE)
