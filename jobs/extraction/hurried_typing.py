"""Hurried typing: completes short forms and missing apostrophes, and restores the capitals of names after their cues.

`im from porto and my moms name is wendy` becomes `I am from Porto and my mom's name is Wendy`.
"""

from __future__ import annotations

import re

from recollect.jobs.extraction import vocabulary
from recollect.jobs.extraction.frames import is_common_word

#: Short forms, with their full forms.
_SHORT_FORMS = {
    "im": "I am", "ive": "I have", "dont": "do not", "doesnt": "does not", "didnt": "did not", "cant": "cannot",
    "wont": "will not", "isnt": "is not", "arent": "are not", "wasnt": "was not", "werent": "were not", "havent": "have not",
    "hasnt": "has not", "hes": "he is", "shes": "she is", "theyre": "they are", "youre": "you are", "thats": "that is",
    "whats": "what is", "u": "you", "ur": "your", "bday": "birthday", "b-day": "birthday", "gf": "girlfriend",
    "bf": "boyfriend", "gonna": "going to", "wanna": "want to", "gotta": "have got to", "cuz": "because", "coz": "because",
    "pls": "please", "plz": "please", "tmrw": "tomorrow", "tmr": "tomorrow", "fam": "family", "hubby": "husband",
    "couldnt": "could not", "wouldnt": "would not", "shouldnt": "should not", "theres": "there is",
    "weve": "we have", "youve": "you have", "theyve": "they have", "hadnt": "had not", "mustnt": "must not",
    "youll": "you will", "theyll": "they will", "itll": "it will", "heres": "here is", "wheres": "where is",
    "whos": "who is", "hows": "how is",
}  # fmt: skip
_SHORT_FORM = re.compile(r"\b(?<!')(?:" + "|".join(_SHORT_FORMS) + r")\b(?!['.]\w)", re.IGNORECASE)
_SHORT_WORDS = frozenset(_SHORT_FORMS)
_WORD = re.compile(r"[\w-]+")
_PEOPLE = "|".join(sorted(vocabulary.SUBJECT_NOUNS, key=len, reverse=True))
#: A possessive without its apostrophe: `my moms name`.
_POSSESSIVE = re.compile(
    rf"\b((?:my|our)\s+(?:{_PEOPLE}))s\s+(?=(?:name|birthday|husband|wife|boyfriend|girlfriend|partner|job|house|phone|number|email|"
    r"address|favou?rite|doctor|dog|cat|kids|son|daughter|wedding|surname)\b)",
    re.IGNORECASE,
)
#: `my mom's a nurse`: a contraction of is.
_NOUN_IS = re.compile(
    rf"\b((?:my|our)\s+(?:\w+\s+)?(?:{_PEOPLE}|back|knee|shoulder|ankle|wrist|neck|hip|elbow|foot))'s\s+(?=(?:a|an|really|pretty|killing|sore|bad|hurting|properly|called|named|allergic|from|in|not|still|now|retired|married|divorced|single|pregnant|vegan|vegetarian|sick|ill|left-handed|diabetic|\d+|\w+ing)\b)",
    re.IGNORECASE,
)
#: Words that are no names after a cue.
_NO_NAMES = frozenset(
    """a an the my our your his her their its it this that these those me you him us them i we he she they here there home work
    school college uni university bed church town downtown class therapy court hospital not also now after so and or but off in
    out back up down on at to for from with of by as someone somebody anyone anybody everyone people each other another some
    any one two three four five six seven eight nine ten something nothing anything everything what who how when where why free
    fun sleep rehab prison jail space life peace person general particular fact time bits need is was are has had be been being
    just really very too still always never often sure well good great new old last next big small first final remote part full
    both all many much more most less fewer over under until till before while because if than then again today tomorrow
    yesterday tonight soon later lately recently early late abroad overseas nowhere anywhere somewhere everywhere everyday
    customer customers clients multiple several different various local public private international online sales tech finance
    marketing retail healthcare construction education living working doing making getting going having taking charity
    months years weeks days money cash lunch dinner breakfast drinks coffee vacation holiday holidays college dance dancing
    football soccer basketball tennis hockey music bars parties meetings events concerts practice training camp
    """.split()
)
_LOWER_NAME = r"(?P<name>(?:(?:new|san|los|las|santa|saint|st|north|south|east|west|port|cape|buenos|rio|hong|tel|kuala|el|la|le|st\.)\s+)?[a-z][\w-]{1,30})\b"
_LANGUAGE = re.compile(rf"\b(?:{'|'.join(vocabulary.LANGUAGES)})\b", re.IGNORECASE)
#: The cues of a name: what they are followed by is a name in sentences without capitals.
_CUES = (
    re.compile(
        r"\b(?:(?:live|lives|living|lived|based|born|grew\s+up|raised|studying|settled)\s+in|(?:moved|moving|move|flew|traveled|travelled|trip|"
        r"relocated|relocating|emigrated)\s+to|(?:am|is|are|originally|come|comes)\s+from|"
        r"(?:work|works|working|worked|job|intern|interning|employed|position|role|started|study|studies)\s+(?:at|for|with))\s+" + _LOWER_NAME
    ),
    re.compile(r"\b(?:named|called|name(?:'s|s|\s+is|\s+was)|goes\s+by|call\s+(?:him|her|me|it|them)|joined|left)\s+" + _LOWER_NAME),
    re.compile(r"\b(?:married\s+to|engaged\s+to|dating|going\s+out\s+with|broke\s+up\s+with|split\s+up\s+with)\s+" + _LOWER_NAME),
    re.compile(
        rf"\b(?:my|our)\s+(?:\w+\s+)?(?:{_PEOPLE}),?\s+{_LOWER_NAME}(?=,|\s+(?:is|was|has|lives|works|likes|loves|hates|got|turned|will|wants|and\s+I|"
        r"moved|started|studies|plays|had|went|bought|adopted|says|said|can|had|just|who)\b)"
    ),
)  # fmt: skip


def completed(sentence: str) -> str:
    """Return a sentence with full forms, apostrophes and, if it is typed without capitals, capitals of names."""
    full = sentence
    words = _WORD.findall(sentence.casefold())
    if not _SHORT_WORDS.isdisjoint(words):
        full = _SHORT_FORM.sub(lambda match: _SHORT_FORMS[match.group().lower()], full)
    if "my" in words or "our" in words:
        full = _NOUN_IS.sub(r"\1 is ", _POSSESSIVE.sub(r"\1's ", full))
    if sentence != sentence.lower():
        return full
    full = _LANGUAGE.sub(lambda match: match.group().capitalize(), full)
    for cue in _CUES:
        full = cue.sub(_with_capital, full)
    return full


def _with_capital(match: re.Match[str]) -> str:
    """Return the text of a cue with the capitals of its name."""
    name = match["name"]
    if name.split()[-1] in _NO_NAMES or is_common_word(name.split()[-1]):
        return match.group()
    capital = " ".join(word[:1].upper() + word[1:] for word in name.split())
    start = match.start("name") - match.start()
    return match.group()[:start] + capital + match.group()[start + len(name) :]
