"""Statements: the clauses of a message that state something worth keeping, in the words of their speaker."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from recollect.events.catalogue.event_base import FactType
from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.clauses import Clause
from recollect.jobs.extraction.statement_reader import ReadClause, read_each
from recollect.jobs.extraction.statement_salience import SentencePlace, salience
from recollect.projections.embeddings.reading_encoder import Embed

#: Probability from which on a clause is kept. Of 1,352 messages of 24 chats that no weights are trained on, 783 have a
#: clause with it, 88 % of them worth keeping for sure and 5 % not at all; they are 87 % of those that are.
KEEP_MIN = 0.45
#: The same by words alone, which are less sure: 79 % of such clauses are worth keeping, 43 % of those that are.
KEEP_BY_WORDS_MIN = 0.7
#: Probability from which on a clause to an assistant is a standing instruction, which is in every turn from then on. Of
#: 2,554 sentences of the same chats 17 have it, three of them instructions; of 30 unseen instructions 22.
RULE_MIN = 0.55
#: The same by words alone in a talk between people, where an assistant may listen. Of 1,573 clauses that are drawn from
#: given conversations none has .55.
AMONG_PEOPLE_RULE_MIN = 0.7
#: Probability by words alone under which a sentence is not embedded: 11 of 733 held-out clauses worth keeping have less
#: of all that is looked at, and 20 % of all held-out clauses.
_EMBED_MIN = 0.05
#: Sentences of one message that are embedded, the likeliest ones: of a pasted text of 2,000 sentences no more.
_EMBEDDED_MAX = 40
#: Classes of `act` of clauses that are not claims of the speaker.
_OTHER_ACTS = frozenset(("asks", "forgets", "jokes", "quotes", "talks", "rules", "unrules"))
#: Probability of such an act over which a clause is not kept.
_OTHER_ACT_MAX = 0.6
#: Probability of words of another person over which a clause is not kept.
_QUOTE_MAX = 0.25
#: Words of a statement; fewer only name a thing.
_WORDS_MIN = 3
#: Probability from which on a statement is kept: of 460 of held-out chats 357 have it, 269 of them worth keeping and clear
#: (`ops/train/salience`).
SALIENCE_MIN = 0.4
#: The probability that a statement which is worth keeping needs the words before it, from which on it is joined to them.
JOINED_MIN = 0.5
#: Probability of being worth keeping from which on a sentence has content for the next one.
_BEFORE_MIN = 0.15
#: Signs that a statement does not need.
END_SIGNS = ".!。！"
_CHARS_MAX = 300
_CJK = late_pattern(r"[\u3040-\u30ff\u3400-\u9fff]{4}")
#: A clause that describes the thing before it.
_RELATIVE = late_pattern(r"\W{0,3}(?:who|whose|which)\b", re.IGNORECASE)
#: A clause about a person whom only the words before it name.
_OF_PERSON = late_pattern(r"\W{0,3}s?he\b", re.IGNORECASE)
_TYPES: dict[str, FactType] = {"event": "event", "decision": "decision", "task": "task"}


class Statement(NamedTuple):
    """A statement in the words of its speaker."""

    text: str
    #: Characters of the sentence.
    start: int
    end: int
    probability: float
    kind: str
    #: Its clauses, as the reader read them; of several sentences those of the last one.
    clauses: Sequence[ReadClause] = ()

    @property
    def type(self) -> FactType:
        """Return the type of the fact."""
        return _TYPES.get(self.kind, "fact")


class _Beginning(NamedTuple):
    """Where a statement begins: the number of its sentence, from 0, and the character in it."""

    sentence: int
    start: int


def read_sentences(sentences: Sequence[str], *, to_assistant: bool, embed: Embed | None) -> list[list[ReadClause]]:
    """Return the clauses of sentences with what the reader thinks of them.

    Words decide first; only the sentences that may state something are embedded.
    """
    read = read_each(sentences, to_assistant=to_assistant)
    likely = [place for place, parts in enumerate(read) if any(_may_matter(part) for part in parts)]
    likely = sorted(likely, key=lambda place: -max(part.keep for part in read[place]))[:_EMBEDDED_MAX]
    if embed is not None and likely:
        said = [sentences[place] for place in likely]
        for place, parts in zip(likely, read_each(said, embed(said), to_assistant=to_assistant), strict=True):
            read[place] = parts
    return read


def _may_matter(part: ReadClause) -> bool:
    """Return whether words alone leave it open whether a clause is worth keeping, an instruction, or withdraws one."""
    acts = part.probabilities["act"]
    return max(part.keep, acts["rules"], acts["unrules"]) >= _EMBED_MIN


def instruction_probability(read: Sequence[ReadClause]) -> float:
    """Return the probability that a sentence gives a standing instruction; those within jokes do not count."""
    joke = max((part.probabilities["act"]["jokes"] for part in read), default=0.0)
    return (1 - joke) * max((part.probabilities["act"]["rules"] for part in read), default=0.0)


def statements(sentence: str, read: Iterable[ReadClause]) -> Iterator[Statement]:
    """Yield the statements of a sentence; neighbouring clauses that are kept are one statement."""
    parts: list[ReadClause] = []
    before: Clause | None = None
    for part in read:
        if _is_kept(part):
            parts.append(part if parts else _with_antecedent(sentence, part, before))
        else:
            yield from _joined(sentence, parts)
            parts = []
        before = part.clause
    yield from _joined(sentence, parts)


def of_message(sentences: Sequence[str], read: Sequence[Sequence[ReadClause]]) -> list[list[Statement]]:
    """Return the statements of a message that are worth keeping, by the sentence in which each ends.

    One that needs the words before it is joined to the statement, or else the sentence, before it.

    Parameters:
        read: the clauses of each sentence.
    """
    # Each with where it begins, and the number of the sentence in which it ends.
    said: list[tuple[_Beginning, int, Statement]] = []
    follows = False
    for number, (sentence, parts) in enumerate(zip(sentences, read, strict=True)):
        stated = [*statements(sentence, parts)] or [*_whole(sentence, parts)]
        for statement in stated:
            needs, alone, joined = _judged(statement, sentences, number)
            begins = said[-1][0] if needs and follows else None
            words = "" if begins is None else _words(sentences, begins, number, statement.end)
            if begins is not None and len(words) <= _CHARS_MAX:
                *_, before = said.pop()
                kind, probability = before.kind or statement.kind, max(before.probability, joined)
                said.append((begins, number, statement._replace(text=words, kind=kind, probability=probability)))
            else:
                begins = _Beginning(number, statement.start)
                said.append((begins, number, statement._replace(probability=alone)))
            follows = True
        follows = bool(stated)
    kept: list[list[Statement]] = [[] for _ in sentences]
    for _, number, statement in said:
        if statement.probability >= SALIENCE_MIN:
            kept[number].append(statement)
    return kept


def _words(sentences: Sequence[str], begins: _Beginning, number: int, end: int) -> str:
    """Return the words from a place of a sentence to the end of a statement in the sentence with a number."""
    if begins.sentence == number:
        return sentences[number][begins.start : end]
    first = sentences[begins.sentence][begins.start :]
    return " ".join((first, *sentences[begins.sentence + 1 : number], sentences[number][:end]))


def _whole(sentence: str, parts: Sequence[ReadClause]) -> Iterator[Statement]:
    """Yield a sentence that is not kept, to which the next one may be joined, unless it has no content: `thanks`."""
    if says_something(parts):
        text = sentence.rstrip(END_SIGNS)
        yield Statement(text, 0, len(text), 0.0, "")


def _judged(statement: Statement, sentences: Sequence[str], number: int) -> tuple[bool, float, float]:
    """Return whether a statement needs the words before it, and its probabilities alone and joined to them."""
    if not statement.clauses:
        return len(statement.text.split()) < _WORDS_MIN, 0.0, 0.0
    good, context, _ = salience(statement.clauses, place_of(statement, sentences, number))
    # Alone, `she is 53` may be about anybody.
    if _OF_PERSON.match(statement.text) is not None:
        return True, 0.0, good + context
    return context >= JOINED_MIN * (good + context), good, good + context


def says_something(parts: Sequence[ReadClause]) -> bool:
    """Return whether a sentence says what the next one may be about: `thanks` does not."""
    return max((part.keep for part in parts), default=0.0) >= _BEFORE_MIN


def place_of(statement: Statement, sentences: Sequence[str], number: int) -> SentencePlace:
    """Return the place of a statement of the sentence with a number, from 0, among those of its message."""
    ends = statement.end >= len(sentences[number].rstrip(END_SIGNS))
    return SentencePlace(statement.text, number, len(sentences), begins=statement.start == 0, ends=ends)


def _with_antecedent(sentence: str, part: ReadClause, before: Clause | None) -> ReadClause:
    """Return a clause such as `who is 53` or `she is 53` with the clause before it, which says who."""
    text = part.clause.text
    if before is None or (_RELATIVE.match(text) is None and _OF_PERSON.match(text) is None):
        return part
    return part._replace(clause=Clause(sentence[before.start : part.clause.end], before.start, part.clause.end))


def _is_kept(part: ReadClause) -> bool:
    """Return whether a clause is worth keeping as a claim of its speaker."""
    text = part.clause.text
    keep_min = KEEP_MIN if part.has_vector else KEEP_BY_WORDS_MIN
    if part.keep < keep_min or text.endswith("?") or len(text) > _CHARS_MAX:
        return False
    acts = part.probabilities["act"]
    return acts["quotes"] < _QUOTE_MAX and sum(acts[act] for act in _OTHER_ACTS) < _OTHER_ACT_MAX


def _joined(sentence: str, parts: Sequence[ReadClause]) -> Iterator[Statement]:
    """Yield the statement of neighbouring clauses."""
    if parts:
        start, end = parts[0].clause.start, parts[-1].clause.end
        best = max(parts, key=lambda part: part.keep)
        text = sentence[start:end].rstrip(END_SIGNS)
        is_alone = len(text.split()) < _WORDS_MIN and _CJK.search(text) is None
        if end - start <= _CHARS_MAX and not is_alone:
            yield Statement(text, start, start + len(text), best.keep, best.most_likely("kind"), parts)
