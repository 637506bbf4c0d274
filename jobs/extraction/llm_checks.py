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
from recollect.jobs.extraction.llm_statement import EXAMPLE_NAME, LlmStatement
from recollect.jobs.extraction.rule_extractor import IncomingMessage
from recollect.jobs.llm.grounding import name_words, without_dates
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.stems import stem
from recollect.projections.text.words import WORD

#: Why a statement is refused. The counter of refusals has them as its label.
Refusal = Literal[
    "line", "example", "secret", "words", "assistant", "pronoun", "name", "number", "date", "quotation", "question",
    "supposition", "negation", "tense", "speaker",
]  # fmt: skip

_NOT = re.compile(
    r"\b(?:not|no|never|none|nothing|nobody|neither|nor|without|cannot|hardly|against|n't|nicht|nie|niemals|kein\w{0,2}|"
    r"ohne|nunca|tampoco|sin|pas|jamais|aucune?|sans|non|mai|não|нет|не)\b|n['’]t\b|[不没]"
)
#: `no` as an answer, and idioms that deny nothing.
_NOT_DENYING = re.compile(
    r"^\W*no[,.!]|\b(?:no problem|no worries|no idea|no doubt|not only|why not|can['’]?t wait|(?:do not|don['’]?t) forget)\b"
)
#: Words of what was and is no more, or of what somebody refuses.
_ENDED = re.compile(
    r"\b(?:used to|no longer|any ?more|stop(?:s|ped)?|quit|gave up|given up|former(?:ly)?|ex|previous(?:ly)?|left|leaves|"
    r"leaving|sold|cancel\w{0,5}|ended|over|drop(?:ped)?|instead|rather than|only|dislikes?|hates?|avoids?|refus\w{1,4}|free|"
    r"late|passed away|died|dead|lost|broke up|divorced|mehr|früher|aufgehört|verkauft|statt|ehemalige?\w?)\b"
)
_SUPPOSED = re.compile(r"\b(?:if|imagine|suppose|assuming|pretend|what if|wenn|falls|angenommen|si|se)\b")
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
_KEPT_SUPPOSED = re.compile(r"\b(?:if|would|could|might|may|when|wants?|wish\w{0,4}|wenn|falls|würde|si|se)\b")
#: The beginning of a clause that asks, unless it asks for help.
_ASKING = re.compile(
    r"^\W*(?:and |so |but |or |then |oh |wait |hey )*+(?:(?:what|who|whom|whose|where|when|why|how|which|do|does|did|is|are|"
    r"am|was|were|have|has|had|should|shall|will|would|can|could|may|any|isn['’]t|aren['’]t|don['’]t|doesn['’]t)\b|"
    r"(?:wer|was|wo|wann|warum|wie|welche\w?|ist|sind|hast|habt|soll)\b)"
)
_FOR_HELP = re.compile(
    r"\b(?:can|could|will|would) (?:you|u|we) (?!believe|imagine|guess)|\bhelp me\b|\bhow (?:do|can|should) i\b"
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
_WAS, _IS = re.compile(r"\b(?:was|were|had been)\b"), re.compile(r"\b(?:is|are|['’]s|['’]re|['’]m|am|has|have)\b")
_NUMBER_WORDS = {
    word: str(at)
    for at, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
#: Characters of the quoted words that show whether they are the confirmation itself: `yes please`.
_CONFIRMATION_CHARS = 8
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
    if not _same_numbers(
        bare, f"{confirmed} {message.text}", place.words, conversation.session(statement.line).text, line.years()
    ):
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
    at = sentence.find(quote) if quote in sentence else 0
    end = at + len(quote) if quote in sentence else len(sentence)
    begins = max((match.end() for match in _CLAUSE_END.finditer(sentence, 0, at)), default=0)
    ends = next((match.start() for match in _CLAUSE_END.finditer(sentence, end)), len(sentence))
    return _Place(quote, sentence[begins:ends].strip(), sentence[begins:end].strip(), sentence[:end], sentence)


def _has_names(text: str, statement: LlmStatement, conversation: LlmConversation) -> bool:
    """Return whether the session has each name of a sentence; a rule begins with a verb, which is no name."""
    session = conversation.session(statement.line)
    names = [
        word for at, word in name_words(text) if at or not (statement.kind == "rule" or word.casefold() in _ARTICLES)
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


def _same_numbers(sentence: str, line: str, words: str, session: str, years: Set[str]) -> bool:
    """Return whether the line has the numbers of a sentence, and in the order of the words; a name may have one."""
    numbers, given = _numbers(sentence), {*_numbers(line), *_numbers(session), *years}
    spelt = {value for word, value in _NUMBER_WORDS.items() if _has_word(word, f"{line} {session}")}
    if not given.union(spelt).issuperset(numbers):
        return False
    said = [value for word, value in _NUMBER_WORDS.items() if word != "one" and _has_word(word, sentence)]
    if not given.union(spelt).issuperset(said):
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
    denied, ended = _NOT.search(_NOT_DENYING.sub(" ", place.before)), _ENDED.search(place.words)
    says_not, says_ended = _NOT.search(text), _ENDED.search(text)
    if (denied or ended) and not (says_not or says_ended):
        return True
    return bool(says_not) and not (denied or ended or _NOT.search(place.sentence) or _ENDED.search(place.sentence))


def _changes_tense(place: _Place, text: str) -> bool:
    """Return whether a sentence states as done what the words only intend, or as present what they state as past."""
    if _WAS.search(place.clause) and not _IS.search(place.clause) and _IS.search(text) and not _WAS.search(text):
        return True
    intended = {stem(match[1]) for match in _INTENDED.finditer(place.lead)}
    done = {stem(word) for word in WORD.findall(text) if word.endswith("ed")}
    stated = {stem(word) for word in WORD.findall(place.words) if word.endswith("ed")}
    return bool(intended & done - stated)


_INTENDED = re.compile(r"\bto (?:\w{2,8}ly )?(\w{2,20})\b")


def _same_speaker(text: str, message: IncomingMessage, place: _Place) -> bool:
    """Return whether a sentence is about the one whom the words are about, as far as pronouns and names show it."""
    lower, speaker = text.casefold(), message.speaker.casefold()
    people = [match for match in _RELATIVE.finditer(place.before) if match[1] in _PEOPLE]
    relatives = [match[1] for match in people]
    for owner, things in _OWNER.findall(text):
        if owner.casefold() != speaker and not set(WORD.findall(things.casefold())).isdisjoint(relatives):
            return False
    subject = next(
        (word.casefold() for at, word in name_words(text) if at <= _SUBJECT_CHARS and word.casefold() not in _ARTICLES),
        "",
    )
    if not subject or _OWNER.match(text):
        return True
    said, is_first = WORD.findall(place.words), _FIRST_PERSON.search(place.words)
    if subject == speaker:
        if is_first:
            return True
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


def _original(line: str, words: str) -> str:
    """Return words as the line writes them."""
    at = line.casefold().find(words)
    return line[at : at + len(words)] if at >= 0 else ""
