"""Clauses: finds the statements of a sentence in German, Spanish, French, Chinese or Japanese.

A sentence is compared clause by clause with the patterns of its language. A clause without a subject has the one of the
clause before it: `我奶奶今年八十五岁，住在成都`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from unicodedata import normalize

from recollect.jobs.extraction.languages.language_tables import LanguageRule, LanguageTable
from recollect.projections.text.folding import fold, lookup_key

#: Characters of a sentence that are read, after normalisation, which can make a text 18 times as long.
_CHARS_MAX = 1_000
#: Rewrites of one kind in a sentence, at most.
_REWRITES_MAX = 8
#: A quotation in any style of quotation marks.
_QUOTED = re.compile(r"\"[^\"]{0,300}\"|«[^»]{0,300}»|„[^“\"]{0,300}[“\"]|「[^」]{0,300}」|『[^』]{0,300}』")
#: Types of facts whose object has its time.
_TIMED_TYPES = ("task", "event")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_EDGES = " .,;:!?\"'-–~。、「」『』«»"


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a clause."""

    #: An English relation, such as `sister`; None for the speaker and for a name alone.
    relation: str | None = None
    #: A name; None for the speaker, and for a relative without a name.
    name: str | None = None

    @property
    def is_speaker(self) -> bool:
        """Return whether the subject is the speaker."""
        return self.relation is None and self.name is None


SPEAKER = Subject()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a clause states."""

    rule: LanguageRule
    subject: Subject
    predicate: str
    object: str
    also: tuple[str, str] | None
    #: What an ending is about; None: all values of what it ends.
    about: str | None
    #: The words of a correction: what is right, and what it replaces.
    right: str | None
    wrong: str | None


@dataclass(frozen=True, slots=True)
class _Text:
    """A sentence and its folded text, which has the same positions."""

    original: str
    folded: str

    def part(self, start: int, end: int) -> _Text:
        """Return the part between two positions."""
        return _Text(self.original[start:end], self.folded[start:end])


class ClauseReader:
    """Reads the sentences of one message in one language, in order: a subject is carried to the next clause."""

    def __init__(self, table: LanguageTable) -> None:
        self._table = table
        #: The subject of the last clause; None when it was not understood.
        self._subject: Subject | None = None
        #: Whether the clauses that follow may be about something else than a person: after `our dog is called Rex`, a
        #: Chinese or Japanese clause without a subject is about the dog.
        self._has_other_topic = False
        #: Whether the last statement gave the name of a relative, whose age may follow: `娘の名前はさくらで、五歳です`.
        self._may_be_age_of_relative = False
        #: The last relative or name that was a subject, which `she` refers to.
        self._third: Subject | None = None
        #: People whom the sentence introduces: a relation and a name.
        self.introduced: list[tuple[str, str]] = []

    def read(self, sentence: str) -> Iterator[Statement]:
        """Yield the statements of a sentence that is no question."""
        table = self._table
        self.introduced = []
        text = _prepared(table, sentence)
        hypothetical = table.hypothetical.search(text.folded)
        stop = hypothetical.start() if hypothetical is not None else len(text.folded) + 1
        quotes = [match.span() for match in _QUOTED.finditer(text.folded)]
        if not table.is_spaced:
            self._subject = self._subject if self._subject is not None and self._subject.is_speaker else None
        yield from self._about_sentence(text)
        end = -1
        for begin in table.begin.finditer(text.folded):
            start = begin.end()
            if start < end or start >= stop or any(left < start < right for left, right in quotes):
                continue
            for statement, statement_end in self._clause(text, start, is_first=begin.start() == 0):
                end = max(end, statement_end)
                yield statement

    def _clause(self, text: _Text, start: int, *, is_first: bool) -> Iterator[tuple[Statement, int]]:
        """Yield the statements of the clause at `start`, each with its end."""
        table = self._table
        limit = self._clause_end(text, start)
        clause = text.part(0, limit)
        whole = start
        position = table.opener.match(clause.folded, start)
        start = position.end() if position is not None else start
        subjects = list(self._explicit_subjects(clause, start))
        for who, verb_start, person in self._attempts(subjects, start, is_first=is_first):
            for rule in table.rules:
                if self._may_be_age_of_relative and rule.predicate == "age is" and not subjects:
                    continue
                match = _match(rule, clause, verb_start, person)
                if match is not None and rule.type in _TIMED_TYPES and verb_start == start and whole < start:
                    # `下周` may be a word before the subject or the time of a task.
                    match = _match(rule, clause, whole, person) or match
                statement = None if match is None else self._statement(rule, match, clause, who)
                if match is not None and statement is not None:
                    if who.relation is not None and who.name is not None:
                        self.introduced.append((who.relation, who.name))
                    # "The name of my wife is …" has another subject than the wife.
                    self._remember(SPEAKER if "whose" in match.re.groupindex else statement.subject)
                    self._may_be_age_of_relative = "whose" in match.re.groupindex
                    self._has_other_topic = not table.is_spaced and " named " in statement.object
                    yield statement, match.end()
                    return
        if not table.is_spaced and table.topic.search(clause.folded, start) is not None:
            self._has_other_topic = True
        if subjects or table.is_spaced:
            # A Chinese or Japanese clause without a subject has the one before.
            self._remember(subjects[0][0] if subjects else None)

    def _attempts(
        self, subjects: Sequence[tuple[Subject, int]], start: int, *, is_first: bool
    ) -> Iterator[tuple[Subject, int, str]]:
        """Yield the ways to read a clause: its subject, where its verb begins, and the person of the verb."""
        if subjects:
            self._has_other_topic = False
        for subject, after in subjects:
            yield subject, after, "first" if subject.is_speaker else "third"
        yield SPEAKER, start, "start"
        if self._has_other_topic:
            return
        carried = self._subject if not self._table.is_spaced else None
        if (is_first or self._table.drops_anywhere) and (carried is None or carried.is_speaker):
            yield SPEAKER, start, "dropped"
        if not subjects and self._subject is not None:
            yield self._subject, start, "first" if self._subject.is_speaker else "third"

    def _about_sentence(self, text: _Text) -> Iterator[Statement]:
        """Yield the correction or the instruction that a sentence is."""
        table = self._table
        opener = table.opener.match(text.folded)
        starts = dict.fromkeys((0, 0 if opener is None else opener.end()))
        for rule in table.sentence_rules:
            for start in starts:
                match = rule.first.match(text.folded, start)
                statement = None if match is None else self._statement(rule, match, text, SPEAKER)
                if statement is not None:
                    yield statement
                    return

    def _clause_end(self, text: _Text, start: int) -> int:
        """Return where a clause ends: in Chinese and Japanese at the next comma, else with the sentence."""
        if self._table.is_spaced:
            return len(text.folded)
        following = self._table.begin.search(text.folded, start + 1)
        return len(text.folded) if following is None else following.start()

    def _explicit_subjects(self, clause: _Text, start: int) -> Iterator[tuple[Subject, int]]:
        """Yield the subjects that may stand at `start`, each with the position after it."""
        table = self._table
        match = table.relative.match(clause.folded, start)
        if match is not None:
            yield from self._relatives(match, clause)
            return
        match = table.first_person.match(clause.folded, start)
        if match is not None:
            yield SPEAKER, match.end()
            return
        match = table.pronoun.match(clause.folded, start)
        if match is not None:
            if self._third is not None:
                yield self._third, match.end()
            return
        match = _NAME.match(clause.original, start) if table.is_spaced else None
        if match is not None and fold(match["name"]).split()[0] not in table.not_names:
            yield Subject(None, match["name"]), match.end()

    def _relatives(self, match: re.Match[str], clause: _Text) -> Iterator[tuple[Subject, int]]:
        """Yield a relative without a name, and with the word that follows as the name."""
        relation = self._table.relations[lookup_key(match["relation"])]
        given = match.groupdict().get("name")
        if given:
            yield Subject(relation, given), match.end()
            return
        written = _NAME.match(clause.original, match.end())
        if written is not None and fold(written["name"]).split()[0] not in self._table.not_names:
            self.introduced.append((relation, written["name"]))
            yield Subject(relation, written["name"]), written.end()
            return
        yield Subject(relation), match.end()
        lowered = _LOWER_NAME.match(clause.original, match.end()) if self._table.is_spaced else None
        if lowered is not None and fold(lowered["name"]) not in self._table.not_names:
            yield Subject(relation, lowered["name"].capitalize()), lowered.end()

    def _statement(self, rule: LanguageRule, match: re.Match[str], clause: _Text, subject: Subject) -> Statement | None:
        """Return the statement of a match; None when a name may not be its subject or its object names nothing."""
        table = self._table
        if subject.name is not None and subject.relation is None and not rule.names:
            return None
        groups = {
            name: " ".join(clause.original[slice(*match.span(name))].split()).strip(_EDGES)
            for name, value in match.groupdict().items()
            if value
        }
        if "whose" in groups:
            subject = Subject(table.relations[lookup_key(groups["whose"])])
        if "favourite" in groups:
            groups["favourite"] = table.favourites.get(lookup_key(groups["favourite"]), groups["favourite"])
        object = _filled(rule.object, groups)
        if rule.kind in ("fact", "preference") and (not object or table.empty.match(fold(object)) is not None):
            return None
        if rule.capital and not object[:1].isupper():
            return None
        if rule.predicate == "name is" and subject.relation is not None and subject.name is not None:
            # `Mi hermano Pablo toca en un grupo que se llama …` names the group.
            return None
        if rule.predicate == "name is" and subject.relation is not None:
            self.introduced.append((subject.relation, object))
            subject = replace(subject, name=object)
        return Statement(
            rule=rule,
            subject=subject,
            predicate=_filled(rule.predicate, groups),
            object=object,
            also=None if rule.also is None else (rule.also[0], _filled(rule.also[1], groups)),
            about=groups.get(rule.about or ""),
            right=groups.get("right"),
            wrong=groups.get("wrong"),
        )

    def _remember(self, subject: Subject | None) -> None:
        """Keep the subject for the next clause."""
        self._subject = subject
        if subject is not None and not subject.is_speaker:
            self._third = subject


#: A capitalised name of up to two words, and the space after it.
_NAME = re.compile(r"(?P<name>[A-ZÀ-ÖØ-Þ][\w'-]{1,40}(?: [A-ZÀ-ÖØ-Þ][\w'-]{1,40})?),?\s+")
#: A name in lower case, and the space after it.
_LOWER_NAME = re.compile(r"(?P<name>[^\W\d_]{2,40}),?\s+")


def _match(rule: LanguageRule, clause: _Text, start: int, person: str) -> re.Match[str] | None:
    """Return the match of a rule for a person; `start` stands for a pattern without a verb."""
    if (rule.third is None) != (person == "start"):
        return None
    pattern = {"first": rule.first, "start": rule.first, "dropped": rule.dropped, "third": rule.third}[person]
    return None if pattern is None else pattern.match(clause.folded, start)


def _prepared(table: LanguageTable, sentence: str) -> _Text:
    """Return a normalised sentence with its changes of word order undone."""
    normal = normalize("NFC" if table.is_spaced else "NFKC", sentence)[:_CHARS_MAX]
    text = _Text(normal, fold(normal))
    for pattern, order in table.rewrites:
        for _ in range(_REWRITES_MAX):
            match = pattern.search(text.folded)
            if match is None:
                break
            text = _rewritten(text, match, order)
    return text


def _rewritten(text: _Text, match: re.Match[str], order: tuple[str, ...]) -> _Text:
    """Return a text in which the groups of a match stand in another order."""

    def rebuilt(source: str) -> str:
        parts = (source[slice(*match.span(int(part)))] if part.isdecimal() else part for part in order)
        return source[: match.start()] + "".join(parts) + source[match.end() :]

    return _Text(rebuilt(text.original), rebuilt(text.folded))


def _filled(template: str, groups: dict[str, str]) -> str:
    """Return `template` with its placeholders replaced by the words of the message."""
    return _PLACEHOLDER.sub(lambda match: groups.get(match[1], ""), template).strip()
