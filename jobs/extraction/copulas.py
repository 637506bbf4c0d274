"""Copulas: reads facts from clauses with `be`: who a person is, how old and in what state, and dates of their appointments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.jobs.extraction import vocabulary
from recollect.jobs.extraction.phrases import phrase_at
from recollect.jobs.extraction.rules import WHO, clause_begins, is_name

_NOUNS = "|".join(sorted(vocabulary.SUBJECT_NOUNS, key=len, reverse=True))
_BE = re.compile(
    r"(?:am|is|are) (?:(?:now|also|still|currently|just|already|actually|only|finally|officially|both|really|a proud) )*"
)
_AGES: Sequence[str] = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
)
#: An age: a number that ends the clause, or is followed by `years old`.
_AGE = re.compile(
    rf"(?P<age>(?:1[01]\d|[1-9]?\d)|{'|'.join(_AGES)})(?: years? old| years of age|(?= ?(?:[,;!)]|\.(?!\d)|$| (?:and|now|but|today|this year)\b)))"
)
#: What a person is, except professions: `a single mom`.
_IDENTITY = re.compile(
    r"(?:a|an|the) (?:[\w-]+ ){0,3}(?:mom|mum|mother|dad|father|parent|grandmother|grandfather|grandma|grandpa|widow|widower|veteran|"
    r"freshman|sophomore|junior|senior|undergrad|graduate|grad|intern|apprentice|trainee|freelancer|businessman|businesswoman|"
    r"homemaker|housewife|stay-at-home \w+|immigrant|refugee|citizen|native|smoker|non-smoker|vegan|vegetarian|pescatarian|diabetic|"
    r"asthmatic|celiac|coeliac|Muslim|Christian|Catholic|Jew|Buddhist|Hindu|atheist|twin|only child|middle child|night owl|"
    r"early bird|introvert|extrovert|beginner|tradie|electrician|plumber|carpenter|handyman|lefty|runner|swimmer|cyclist|surfer|"
    r"climber|hiker|gamer|dancer|athlete|songwriter|blogger|streamer|youtuber|podcaster|volunteer|landlord|tenant|founder|owner|"
    r"co-founder|CEO|CTO|executive|assistant|specialist|technician|strategist|recruiter|agent|broker|banker|planner|organizer|"
    r"coordinator|administrator|clerk|trader|investor|contractor|supervisor|principal|dean|nanny|bartender|barber|stylist|"
    r"translator|interpreter|pediatrician|cardiologist|dermatologist|radiologist|oncologist|nutritionist|dietitian|chiropractor)"
    r"(?: (?:of|at|for|in|from) [\w' -]{2,50})?"
)
_STATE = re.compile(
    r"(?:happily |recently |newly |semi-)?(?:married|single|divorced|engaged|widowed|separated|pregnant|retired|unemployed|self-employed|left-handed|right-handed|"
    r"colou?r-?\s?blind|diabetic|asthmatic|dyslexic|autistic|epileptic|bisexual|gay|lesbian|trans|transgender|nonbinary|non-binary|"
    r"Catholic|Muslim|Jewish|Christian|Buddhist|Hindu|lactose intolerant|gluten intolerant|deaf|blind|bilingual|anemic|anaemic|insured|"
    r"in remission|nearsighted|farsighted|short-sighted|homeschooled|adopted)\b"
)
_SITUATION = re.compile(
    r"(?:in (?:hospital|rehab|therapy|college|kindergarten|preschool|daycare|middle school|high school|grad school|med school|law school|"
    r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|\d{1,2}(?:st|nd|rd|th)) grade|(?:my|her|his) \w+ year|"
    r"the (?:army|navy|air force|military|hospital)|a (?:band|choir|relationship|wheelchair|long-distance relationship))"
    r"|on (?:\w+ )?(?:medication|meds|insulin|antidepressants|antibiotics|parental leave|maternity leave|paternity leave|sick leave|disability|dialysis|chemo)"
    r"|due (?:in|on) \w+|on leave|on an? (?:[\w-]{2,20} ){1,2}diet|(?:scared|afraid|terrified) of (?!the dark\b|it\b|that\b|[a-z]{2,12}ing\b)[a-z]{3,20})"
)
#: `I'm Craig, a nurse`.
_INTRODUCTION = re.compile(
    r"(?P<name>[A-ZÀ-Þ][\w'-]{1,30}(?: [A-ZÀ-Þ][\w'-]{1,30})?),? (?:an? |\d+|from [A-ZÀ-Þ]|and I\b|I (?:am|work|live|have|go|sing|teach|study|do)\b|by the way\b|btw\b|here\b)"
)
_PET = re.compile(r"\b(?:dog|cat|puppy|kitten|pup)\b")
_BREED = re.compile(r"(?:a|an) (?:[\w-]+ ){0,3}?[\w-]+(?= ?(?:[,;!)]|\.(?!\d)|$| (?:and|but|who|that)\b))")
_WHEN = re.compile(
    r"\d|\b(?:january|february|march|april|may|june|july|august|september|october|november|december|(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"tomorrow|tonight|noon|next)\b",
    re.IGNORECASE,
)
#: What people have on a date: `my flight is on Friday at 9`.
_DATED = (
    r"birthday|anniversary|wedding|wedding anniversary|appointment|[\w-]+ appointment|flight|train|interview|job interview|exam|[\w-]+ exam|surgery|"
    r"operation|deadline|graduation|due date|checkup|check-up|move-in date|start date|first day|last day|recital|audition|presentation|"
    r"driving test|lease|visa|passport|contract|vacation|holiday|marathon|race|tournament|performance|shift|rehearsal"
)
#: `my flight is …`, `my mom's name is …`, `Anna's birthday is …`.
_POSSESSION = re.compile(
    rf"(?P<owner>[Mm]y|[Oo]ur|(?:[Mm]y|[Oo]ur) (?:\w+ )?(?:{_NOUNS})'s|[A-ZÀ-Þ][\w-]{{1,30}}'s) "
    rf"(?P<thing>name|(?:{_DATED})(?: (?:to|with|at|for|from) [\w\'.-]+(?: [\w\'.-]+){{0,2}}?)?) (?:is|are|will be|ends|starts|expires|runs out) (?:now |called )?"
)
#: A complaint: `my back is sore`.
_COMPLAINT = re.compile(
    r"(?:my|My) (?:(?:left|right|lower) )?(?P<part>back|knees?|shoulders?|ankles?|wrists?|neck|hips?|elbows?|foot|feet|hands?|eyes?|stomach|teeth|tooth) "
    r"(?:(?:is|are|has been|have been) (?:\w+ ){0,3}?(?:sore|dodgy|shot|hurting|killing me|bad|broken|sprained|injured|swollen|stiff|aching|messed up|acting up|"
    r"playing up|weak|painful)|hurts?|aches?)\b"
)
#: What has one value in everyday life: `my locker is 58`, `the landlady is Mrs Miller`, `Ravi's practice is on Fridays`.
_ATTRIBUTE = re.compile(
    r"(?:(?P<own>[Mm]y|[Oo]ur) (?!favou?rite|name\b|question|answer|problem|point|current (?:plan|approach)|first\b|next\b|last\b|goal is)"
    r"|(?P<person>[A-ZÀ-Þ][\w-]{1,30}|(?:[Mm]y|[Oo]ur) \w{2,20})'s "
    r"|(?:[Tt]he )?(?=(?:[\w-]{1,30} ){0,2}(?:code|pin|number|rent|landlord|landlady|plumber|electrician|doctor|p[a]?ediatrician|vet|dentist|coach|"
    r"teacher|tutor|key|combination|plate|size|address|window|room|lawyer|accountant|adviser|advisor|neighbou?r|babysitter|nanny) (?:is|are)\b))"
    r"(?P<what>[\w-]{2,20}(?: (?!is\b|are\b)[\w-]{2,20}){0,3}?) (?:is|are) (?:now |called |named )*"
    r"(?P<value>(?:on|at|every|from|in|due|until) (?=[\w\s]{0,20}?(?:\d|(?i:monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|"
    r"april|may|june|july|august|september|october|november|december|noon|week|morning|evening)))|[$€£#]?\d[\w.,:/-]*|(?:(?:Dr|Mr|Mrs|Ms|Dra|Prof)\.? )?[A-ZÀ-Þ][\w'-]+)"
)
_VALUE_NAME = re.compile(r"[A-ZÀ-Þ][\w'-]{1,30}(?: [A-ZÀ-Þ][\w'-]{1,30}){0,2}")
_LEADING_ON = re.compile(r"^on ")


#: A figure with its label, on a line of its own: `Bench press: 80 kg`.
FIGURE = re.compile(
    r"(?:[Mm]y )?(?P<what>[A-Za-z][\w ]{2,30}):\s{0,3}(?P<value>[$€£]?\d[\d.,]{0,12}\s?(?:kg|lbs?|cm|km|m|miles|years?|hours?|%|€|euros?|dollars|USD|EUR|mmHg|mg))"
)
_FORM_OF_BE = re.compile(r"\b(?:is|am|are|be|been|hurts?|aches?|expires|ends|starts)\b")
#: Relatives and pets that a possessive states: `my husband` says that the speaker has one.
_HAD = re.compile(
    r"\b(?:(?:my|our) |the (?=missus|wife\b|hubby))(?P<which>(?:(?:younger|older|little|big|youngest|oldest|twin|baby) )?"
    r"(?P<noun>husband|wife|boyfriend|girlfriend|fiancée?|fiancee?|partner|missus|son|daughter|kids|children|sons|daughters|sister|brother|sisters|brothers|"
    r"twins|grandson|granddaughter|grandkids|grandchildren|stepson|stepdaughter|niece|nephew|cousin|roommate|flatmate|dog|cat|dogs|cats|puppy|kitten|"
    r"therapist|apprentice|landlord|landlady))\b(?!-|'s|,| ?$| (?:are (?:our|the)|deserve|should|must|friend|food|person|people|lover|in-law|cousin|(?-i:[A-ZÀ-Þ])))",
    re.IGNORECASE,
)
#: Words of the value of an attribute; a longer one tells more than a value.
_VALUE_WORDS_MAX = 10
_PARTNERS = frozenset("husband wife boyfriend girlfriend fiancé fiancée fiance fiancee partner missus".split())
_VOWELS = "aeiou"


class CopulaFact(NamedTuple):
    """A fact of a clause with `be`."""

    #: Words of the subject.
    subject: str
    predicate: str
    object: str
    #: Position of the clause.
    start: int


def copula_facts(sentence: str) -> Iterator[CopulaFact]:
    """Yield the facts of the clauses with `be` in a sentence with expanded contractions."""
    figure = FIGURE.fullmatch(sentence)
    if figure is not None:
        yield CopulaFact("I", f"{figure['what'].strip()} is", figure["value"], 0)
    if _FORM_OF_BE.search(sentence) is None:
        return
    for begin in clause_begins(sentence):
        start = begin.end()
        complaint = _COMPLAINT.match(sentence, start)
        if complaint is not None:
            part = complaint["part"]
            state = " ".join(sentence[complaint.end("part") : complaint.end()].split())
            verb, _, rest = state.partition(" ")
            yield CopulaFact("I", f"has {part} trouble:" if not rest else f"{part} {verb}", rest or f"it {verb}", start)
            continue
        attribute = _ATTRIBUTE.match(sentence, start)
        is_person = (
            attribute is not None and attribute["what"].split()[-1] in vocabulary.SUBJECT_NOUNS and attribute["own"]
        )
        if attribute is not None and not is_person and _POSSESSION.match(sentence, start) is None:
            yield from _of_attribute(sentence, attribute)
            continue
        possession = _POSSESSION.match(sentence, start)
        if possession is not None:
            yield from _of_possession(sentence, possession)
            continue
        subject = WHO.match(sentence, start)
        be = _BE.match(sentence, subject.end()) if subject is not None else None
        if subject is not None and be is not None and is_name(subject["who"], at_start=start == 0):
            words = " ".join(subject["who"].split()).strip(" ,")
            fact = _predicated(sentence, be.end(), words)
            if fact is not None:
                yield CopulaFact(words, *fact, start)


def _predicated(sentence: str, position: int, words: str) -> tuple[str, str] | None:
    """Return predicate and object of the words after `be`, for a subject of `words`."""
    age = _AGE.match(sentence, position)
    if age is not None:
        number: str = age["age"]
        return "age is", str(_AGES.index(number) + 1) if number in _AGES else number
    if words == "I" and (name := _INTRODUCTION.match(sentence, position)) is not None:
        return ("name is", name["name"]) if is_name(name["name"], at_start=False) else None
    if _PET.search(words):
        breed = _BREED.match(sentence, position)
        return ("is", breed.group()) if breed is not None else None
    for pattern in (_IDENTITY, _STATE, _SITUATION):
        match = pattern.match(sentence, position)
        if match is not None and (
            match.end() == len(sentence) or not (sentence[match.end()].isalnum() or sentence[match.end()] in "'-")
        ):
            phrase = phrase_at(sentence, position, _is_no_verb)
            return ("is", phrase) if phrase else None
    return None


def _of_attribute(sentence: str, match: re.Match[str]) -> Iterator[CopulaFact]:
    """Yield the value of an attribute: `my locker is 58`."""
    value = phrase_at(sentence, match.start("value"), _is_no_verb)
    what = " ".join(match["what"].split())
    if value and value[:1].isupper():
        value = value.partition(",")[0]
    if not value or len(value.split()) > _VALUE_WORDS_MAX:
        return
    if _AGE.match(sentence, match.start("value")) is not None and match["person"] is None and value.endswith("old"):
        return
    yield CopulaFact(match["person"] or "I", f"{what} is", value, match.start())


def _of_possession(sentence: str, match: re.Match[str]) -> Iterator[CopulaFact]:
    """Yield the fact of a name or a date: `my mom's name is Wendy`, `my flight is on Friday`."""
    owner = match["owner"].removesuffix("'s")
    subject = "I" if owner.casefold() in ("my", "our") else owner
    thing = " ".join(match["thing"].split())
    if thing == "name":
        name = _VALUE_NAME.match(sentence, match.end())
        if name is not None and subject != "I" and is_name(name.group(), at_start=False):
            yield CopulaFact(subject, "name is", name.group(), match.start())
        return
    value = phrase_at(sentence, match.end(), _is_no_verb)
    if value is None or not _WHEN.search(value):
        return
    if thing == "birthday":
        yield CopulaFact(subject, "born on", _LEADING_ON.sub("", value), match.start())
    elif thing in ("lease", "visa", "passport", "contract"):
        verb = sentence[match.start("thing") + len(match["thing"]) : match.end()].strip()
        yield CopulaFact(subject, f"{thing} {verb}", value, match.start())
    else:
        yield CopulaFact(subject, f"{thing} is", value, match.start())


def _is_no_verb(word: str) -> bool:
    """Return False: what follows `and` belongs to the phrase."""
    return not word


def possessed(sentence: str) -> Iterator[CopulaFact]:
    """Yield the relatives and pets of the speaker that the possessives of a sentence state: `my husband`."""
    for match in _HAD.finditer(sentence):
        which = " ".join(match["which"].split()).casefold()
        noun = match["noun"].casefold()
        if noun in _PARTNERS:
            # A predicate of its own, which the end of a relationship ends.
            yield CopulaFact("I", "has a", "wife" if noun == "missus" else noun, match.start())
        elif noun.endswith("s") or noun == "children":
            yield CopulaFact("I", "has", which, match.start())
        else:
            yield CopulaFact("I", "has", ("an " if which[0] in _VOWELS else "a ") + which, match.start())
