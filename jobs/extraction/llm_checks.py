"""LLM checks: returns why a statement of a language model is not what its line says.

A check compares names, numbers, dates and the small words that turn a meaning round: not, if, might, to, I, my. The
relation between them is left to the model, since the overlap of words refused 29 % of the right statements and accepted
60 % of the wrong ones.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Literal, NamedTuple

from recollect.jobs.extraction.llm_conversation import LlmConversation, is_question
from recollect.jobs.extraction.llm_statement import EXAMPLE_NAME, LlmStatement, split_statement
from recollect.jobs.extraction.predicate_cues import allows
from recollect.jobs.extraction.rule_extractor import IncomingMessage
from recollect.jobs.llm.grounding import name_words, without_dates
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.stems import stem
from recollect.projections.text.words import WORD

#: Why a statement is refused. The counter of refusals has them as its label.
Refusal = Literal[
    "line", "example", "secret", "words", "assistant", "pronoun", "name", "number", "date", "quotation", "question",
    "supposition", "negation", "tense",
    "relation", "speaker",
]  # fmt: skip

_NOT = re.compile(
    r"\b(?:not|no|never|none|nothing|nobody|neither|nor|without|cannot|hardly|against|n't|nicht|nie|niemals|kein\w{0,2}|"
    r"ohne|nunca|tampoco|sin|pas|jamais|aucune?|sans|non|mai|não|нет|не)\b|n['’]t\b|[不没]"
)
#: `no` as an answer, and idioms that deny nothing.
_NOT_DENYING = re.compile(
    r"^\W*no[,.!]|\b(?:no problem|no worries|no idea|no doubt|not only|why not|can['’]?t wait|(?:do not|don['’]?t) forget)\b"
)
#: `14, not 40`: what is denied is the word after it.
_CONTRAST = re.compile(r", (?:and )?(?:not|nicht|no|pas) (\w{1,30})")
#: Words of what was and is no more.
_ENDED = re.compile(
    r"\b(?:used to|no longer|any ?more|stop(?:s|ped)?|quit|gave up|given up|former(?:ly)?|ex|previous(?:ly)?|left|sold|"
    r"cancel\w{0,5}|ended|drop(?:ped)?|passed away|died|dead|broke up|divorced|früher|aufgehört|verkauft|ehemalige?\w?)\b"
)
#: Words by which a sentence denies without a `not`, and by which it ends.
_DENIES = re.compile(
    r"\b(?:no longer|any ?more|stop(?:s|ped)?|quit|gave up|instead|rather than|only|dislikes?|hates?|avoids?|refus\w{1,4}|"
    r"declined|free|secret|mehr|statt|nur)\b"
)
_ENDS = re.compile(r"\b(?:leaves|leaving|late|lost|over|from)\b")
_SUPPOSED = re.compile(r"\b(?:if|unless|imagine|suppose|assuming|pretend|what if|wenn|falls|angenommen|si|se)\b")
_UNSURE = re.compile(
    r"\b(?:would|could|might|may|maybe|perhaps|possibly|wish(?:es)?|hop(?:e|es|ing)|think(?:s|ing)? (?:about|of)|considering|"
    r"should|würde|könnte|vielleicht|quizás|peut-être|forse|talvez)\b|['’]d (?:like|love)\b"
)
#: Words by which a sentence keeps what is unsure, wished or planned.
_KEPT_UNSURE = re.compile(
    r"\b(?:if|would|could|might|may|maybe|perhaps|possibly|unsure|sure|wish\w{0,4}|hop(?:e|es|ing)|think\w{0,3}|consider\w{0,4}|"
    r"should|wants?|likes?|plan\w{0,4}|needs?|has to|have to|must|going to|will|wonder\w{0,3}|ask\w{0,3}|dreams?|würde|könnte|"
    r"möchte\w?|vielleicht|plant|überlegt|soll\w{0,3}|quizás|quiere|peut-être|veut|forse|vuole)\b"
)
_KEPT_SUPPOSED = re.compile(r"\b(?:if|unless|would|could|might|may|when|wants?|wish\w{0,4}|wenn|falls|würde|si|se)\b")
#: The beginning of a clause that asks, unless it asks for help.
_ASKING = re.compile(
    r"^\W*(?:and |so |but |or |then |oh |wait |hey )*+(?:(?:what|who|whom|whose|where|when|why|how|which|do|does|did|is|are|"
    r"am|was|were|have|has|had|should|shall|will|would|can|could|may|any|isn['’]t|aren['’]t|don['’]t|doesn['’]t)\b|"
    r"(?:wer|was|wo|wann|warum|wie|welche\w?|ist|sind|hast|habt|soll)\b)"
)
_FOR_HELP = re.compile(
    r"\b(?:can|could|would) (?:you|u|we) (?!believe|imagine|guess)|\bhelp me\b|\bhow (?:do|can|should) i\b"
)
_ASKS = re.compile(
    r"\b(?:said|says|told|ask\w{0,3}|wonder\w{0,3}|wants?|consider\w{0,4}|unsure|planning|plans|looking|fragt|möchte|überlegt)\b"
)
_CLAUSE_END = re.compile(r"[,;:!?.()—–\n]|\b(?:and|but|und|aber|y|pero|et|mais)\b")
_FIRST_PERSON = re.compile(r"\b(?:i|we|i['’]\w{1,2}|we['’]\w{1,2}|im|ive|ich|wir|yo|je|nous|io|eu)\b")
#: People who belong to the speaker: what `my dad` does is not what the speaker does.
_PEOPLE = frozenset(
    """dad daddy father mum mom mommy mother parents brother sister sis bro siblings son daughter kid kids child children
    baby wife husband partner girlfriend boyfriend fiance fiancee fiancé fiancée ex uncle aunt cousin nephew niece grandma grandpa grandmother
    grandfather granny gran nan friend friends roommate flatmate neighbour neighbor boss manager colleague coworker team
    cat dog vater mutter mama papa eltern bruder schwester sohn tochter kind kinder frau mann freund freundin oma opa
    onkel tante chef kollege kollegin père mère frère sœur fils fille femme mari ami amie padre madre hermano hermana
    hijo hija esposa esposo marido novio novia amigo amiga""".split()
)
_THIRD_PERSON = re.compile(r"\b(?:he|she|they|everyone|everybody|people|er|sie|él|ella|il|elle|lui|lei)\b")
_RELATIVE = re.compile(
    r"\b(?:my|our|mein\w{0,2}|unser\w{0,2}|mi|mis|mon|ma|mes)(?: (?:best|old|new|older|younger|big|little|late))? (\w{2,30})(?:,? (\w{2,30}))?"
)
#: `Ann's older sister`: the owner and the next three words.
_OWNER = re.compile(r"\b([A-ZÀ-Þ][\w-]{1,30})['’]s? ((?:[\w-]{2,30}\W{0,2}){1,3})")
#: Articles that begin a sentence.
_ARTICLES = frozenset("the a an der die das ein eine el la los las un una le les l il lo gli".split())
#: Characters of a sentence in which its subject begins.
_SUBJECT_CHARS = 5
#: A sentence that needs its conversation: it begins with a pronoun, has one of the first person, or asks.
_HANGING = re.compile(
    r"^(?:We|My|Our|He|She|It|They|You|Your|His|Her|Their|This|That|Someone)\b|\b(?:I|I['’]\w{1,2}|my|me)\b|\?$"
)
_NUMERAL = re.compile(r"\d+(?:[.,:]\d+)*k?\b|\d+")
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{12,300})[\"”“»]")
_WAS, _IS_NOW = re.compile(r"\b(?:was|were|had been)\b"), re.compile(r"\b(?:is|are|am)\b")
_IS = re.compile(r"\b(?:is|are|am|has|have)\b|['’](?:s|re|m|ve)\b")
_NUMBER_WORDS = {
    word: str(offset)
    for offset, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
#: Characters of the quoted words that show whether they are the confirmation itself: `yes please`.
_CONFIRMATION_CHARS = 8
#: `dr Lindqvist says`, `a neighbour who drums`, `Pelle's last day`, `from Jira to Linear`; all in lower case.
_REPORTER = re.compile(r"\b(\w{2,30}) (?:says|said|thinks|claims|reckons|told|meint|sagt)\b")
_DESCRIBED = re.compile(r"\b(\w{2,30}),? (?:who|whose|der|die|que|qui)\b")
_BELONGS = re.compile(r"\b(\w{2,30})['’]s (\w{2,30}(?: \w{2,30})?)")
_FROM = re.compile(r"\bfrom (\w{2,30}) to (\w{2,30})")
#: A number and its unit.
_UNIT = re.compile(
    r"(\w{1,12})[ -]?(seconds?|minutes?|mins?|hours?|days?|weeks?|months?|years?|%|percent|euros?|dollars?|pounds?|kg|g|km|"
    r"miles?|metres?|meters?|cm|tage?n?|wochen?|monate?n?|jahre?n?)\b"
)
#: Share of the quoted words that the line has; a model sets right a spelling, or leaves a word out.
_QUOTED_SHARE_MIN = 0.75


class _Place(NamedTuple):
    """Where the words of a statement stand in its line; all in lower case."""

    #: The words.
    words: str
    #: The clause that they are in, and the part of it up to their end.
    clause: str
    before: str
    #: The sentence that they are in, up to their end.
    lead: str
    sentence: str


def refusal(statement: LlmStatement, conversation: LlmConversation) -> Refusal | None:
    """Return why a statement is refused; None when its line says it as far as the checks can see."""
    message = conversation.message(statement.line)
    if message is None:
        return "line"
    text = statement.text
    if EXAMPLE_NAME in text.casefold():
        return "example"
    if "[redacted" in text:
        return "secret"
    if message.is_assistant and not text.casefold().startswith(
        (message.speaker.casefold(), "the assistant", "assistant")
    ):
        return "assistant"
    place = _place(statement.words or text, message.text)
    if place is None:
        return "words"
    if _HANGING.search(_QUOTED.sub(" ", text)) and statement.kind != "rule":
        return "pronoun"
    return _agrees(statement, message, place, conversation)


def _agrees(
    statement: LlmStatement, message: IncomingMessage, place: _Place, conversation: LlmConversation
) -> Refusal | None:
    """Return which of the names, numbers, dates and small words of a statement its line does not have."""
    text, line = statement.text, conversation.line(statement.line)
    dates = line.dates_of(text)
    bare = without_dates(text, dates)
    if not _has_names(bare, statement, conversation):
        return "name"
    if not all(line.has_day(date) for date in dates):
        return "date"
    confirmed = conversation.confirmed(statement.line).casefold()
    if not _same_numbers(bare, line.text, place.words, line.years()):
        return "number"
    if confirmed and message.text.casefold().startswith(place.words[:_CONFIRMATION_CHARS]):
        return None
    lower = text.casefold()
    if _is_quoted(place.words, message.text) and '"' not in text:
        return "quotation"
    # "Can you believe my ex Colin …" asks nothing about who Colin is.
    is_presupposed = _OWNER.match(text) is not None and _RELATIVE.match(place.words) is not None
    if _is_asked(place) and not is_presupposed and not _ASKS.search(lower):
        return "question"
    if _is_supposed(place, lower):
        return "supposition"
    if _turns_round(place, lower):
        return "negation"
    if not allows(split_statement(text, message.speaker)[1], place.before):
        return "relation"
    if _changes_tense(place, lower):
        return "tense"
    return None if _same_speaker(text, message, place) else "speaker"


def _place(words: str, line: str) -> _Place | None:
    """Return where quoted words stand in a line; None when the line does not have them."""
    lower, quote = line.casefold(), words.casefold().strip(" .…,;!?")
    sentences = [sentence.casefold() for sentence in split_sentences(line)] or [lower]
    start = lower.find(quote)
    if start < 0:
        wanted = set(WORD.findall(quote))
        # Of the sentences, the one that has most of the words.
        best = max(sentences, key=lambda sentence: len(wanted & set(WORD.findall(sentence))))
        if not wanted or len(wanted & set(WORD.findall(lower))) < _QUOTED_SHARE_MIN * len(wanted):
            return None
        return _Place(best, best, best, best, best)
    sentence = next((part for part in sentences if quote in part), lower)
    start = sentence.find(quote) if quote in sentence else 0
    end = start + len(quote) if quote in sentence else len(sentence)
    begins = max((match.end() for match in _CLAUSE_END.finditer(sentence, 0, start)), default=0)
    ends = next((match.start() for match in _CLAUSE_END.finditer(sentence, end)), len(sentence))
    return _Place(quote, sentence[begins:ends].strip(), sentence[begins:end].strip(), sentence[:end], sentence)


def _has_names(text: str, statement: LlmStatement, conversation: LlmConversation) -> bool:
    """Return whether the session has each name of a sentence; a rule begins with a verb, which is no name."""
    session = conversation.session(statement.line)
    names = [
        word
        for offset, word in name_words(text)
        if offset or not (statement.kind == "rule" or word.casefold() in _ARTICLES)
    ]
    return all(session.has_name_or_part(name) for name in names)


def _numbers(text: str) -> list[str]:
    """Return the numbers of a text in their order, `68k` and `68,000` alike."""
    values = [
        f"{value[:-1]}000" if value.endswith("k") else value
        for value in (
            match.replace(",", "") if _has_thousands(match) else match for match in _NUMERAL.findall(text.casefold())
        )
    ]
    return [value.lstrip("0") or "0" for value in values]


def _has_thousands(number: str) -> bool:
    """Return whether the commas of a number separate thousands."""
    head, *groups = number.split(",")
    return bool(groups) and len(head) <= 3 and all(len(group.rstrip("k")) == 3 for group in groups)


def _same_numbers(sentence: str, line: str, words: str, years: Set[str]) -> bool:
    """Return whether the line has the numbers of a sentence, in the order and with the units of the words."""
    numbers, given = _numbers(sentence), {*_numbers(line), *years}
    spelt = {value for word, value in _NUMBER_WORDS.items() if _has_word(word, line)}
    if not given.union(spelt).issuperset(numbers):
        return False
    said = [value for word, value in _NUMBER_WORDS.items() if word != "one" and _has_word(word, sentence)]
    if not given.union(spelt).issuperset(said):
        return False
    units = {(value, unit.rstrip("s")) for value, unit in _UNIT.findall(words)}
    amounts = {value for value, _ in units}
    stated = {(value, unit.rstrip("s")) for value, unit in _UNIT.findall(sentence.casefold())}
    if any(value in amounts for value, _ in stated - units):
        return False
    order = [number for number in dict.fromkeys(_numbers(words)) if number in numbers]
    return order == [number for number in dict.fromkeys(numbers) if number in order]


def _has_word(word: str, text: str) -> bool:
    """Return whether a text has a word."""
    return word in WORD.findall(text.casefold())


def _is_quoted(words: str, line: str) -> bool:
    """Return whether words stand between quotation marks."""
    return any(words in match[1].casefold() for match in _QUOTED.finditer(line))


def _is_asked(place: _Place) -> bool:
    """Return whether the clause of the words asks something, and not for help."""
    if not is_question(place.sentence) or _FOR_HELP.search(place.lead):
        return False
    return place.sentence.rstrip().endswith(place.clause.rstrip("?？ ") + "?") or bool(_ASKING.match(place.clause))


def _is_supposed(place: _Place, text: str) -> bool:
    """Return whether the words are a supposition or unsure, and the sentence states them as sure."""
    if _SUPPOSED.search(place.lead) and not _KEPT_SUPPOSED.search(text):
        return True
    return _UNSURE.search(place.clause) is not None and not _KEPT_UNSURE.search(text)


def _turns_round(place: _Place, text: str) -> bool:
    """Return whether one of the words and the sentence denies or ends what the other one states."""
    said = set(WORD.findall(text))
    clause = _CONTRAST.sub(lambda match: match[0] if match[1] in said else " ", place.before)
    denied, ended = _NOT.search(_NOT_DENYING.sub(" ", clause)), _ENDED.search(place.words)
    says_not = _NOT.search(text) or _DENIES.search(text)
    if denied and not says_not:
        return True
    if ended and not (says_not or _ENDED.search(text) or _ENDS.search(text)):
        return True
    return bool(_NOT.search(text)) and not (
        denied or ended or _NOT.search(place.sentence) or _ENDED.search(place.sentence)
    )


def _changes_tense(place: _Place, text: str) -> bool:
    """Return whether a sentence states as done what the words only intend, or as present what they state as past."""
    if _WAS.search(place.clause) and not _IS.search(place.clause) and _IS_NOW.search(text) and not _WAS.search(text):
        return True
    past = {word for word in WORD.findall(text) if word.endswith("ed") or word in _PAST} - set(
        WORD.findall(place.words)
    )
    if past and _AHEAD.search(place.words) and not _KEPT_UNSURE.search(text):
        return True
    intended = {stem(match[1]) for match in _INTENDED.finditer(place.lead)}
    return bool(intended & {stem(word) for word in past})


#: What is ahead, and irregular forms of what is past.
_AHEAD = re.compile(r"\b(?:will|going to|gonna|have to|need to|should)\b|['’]ll\b")
_PAST = frozenset(
    """sent got bought sold left went came took gave made won lost paid met told kept began became broke brought built
    chose did drew drove ate fell felt fought found flew forgot grew had heard held knew led let lent put ran read rode
    saw sang slept spent stood stole swam taught thought threw understood woke wore wrote""".split()
)
_INTENDED = re.compile(r"\bto (?:\w{2,8}ly )?(\w{2,20})\b")


def _same_speaker(text: str, message: IncomingMessage, place: _Place) -> bool:
    """Return whether a sentence is about the one whom the words are about, as far as pronouns and names show it."""
    lower, speaker = text.casefold(), message.speaker.casefold()
    if _swaps(lower, place.words):
        return False
    people = [match for match in _RELATIVE.finditer(place.before) if match[1] in _PEOPLE]
    relatives = [match[1] for match in people]
    for owner, things in _OWNER.findall(text):
        if owner.casefold() != speaker and not set(WORD.findall(things.casefold())).isdisjoint(relatives):
            return False
    subject = next(
        (
            word.casefold()
            for offset, word in name_words(text)
            if offset <= _SUBJECT_CHARS and word.casefold() not in _ARTICLES
        ),
        "",
    )
    if not subject or _OWNER.match(text):
        return True
    reporter = _REPORTER.search(place.before)
    if reporter is not None and reporter[1] == subject and not (_ASKS.search(lower) or _BELONGS.search(lower)):
        return False
    said, is_first = WORD.findall(place.words), _FIRST_PERSON.search(place.words)
    if subject == speaker:
        if is_first:
            return True
        described = _DESCRIBED.search(place.words)
        if described is not None and described[1] not in lower:
            return False
        names = [word.casefold() for _, word in name_words(_original(message.text, place.before))]
        if people:
            named = {match[2] for match in people if match[2] in names}
            return not named.union(relatives).isdisjoint(WORD.findall(lower))
        return not _THIRD_PERSON.search(place.before) or any(word != speaker and word in lower for word in names)
    if subject in said:
        return True
    names = [word.casefold() for _, word in name_words(_original(message.text, place.words))]
    if is_first or (names and not any(name in lower for name in names)):
        return False
    is_meant = subject in WORD.findall(place.sentence) or _THIRD_PERSON.search(place.sentence)
    return bool(is_meant) or not _FIRST_PERSON.search(place.sentence)


def _swaps(text: str, words: str) -> bool:
    """Return whether a sentence gives what belongs to one to another, or turns `from A to B` round."""
    owners = {thing: owner for owner, thing in _BELONGS.findall(words)}
    if any(owners.get(thing, owner) != owner for owner, thing in _BELONGS.findall(text)):
        return True
    source, target = _FROM.search(text), _FROM.search(words)
    return source is not None and target is not None and source[1] == target[2] != source[2]


def _original(line: str, words: str) -> str:
    """Return words as the line writes them."""
    start = line.casefold().find(words)
    return line[start : start + len(words)] if start >= 0 else ""
