"""Language reader: the facts, preferences, endings, people, instructions and corrections of one message by its language.

It reads German, Spanish, French, Chinese and Japanese sentences; the other sentences are left to the English rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from recollect.jobs.extraction.corrections import replacement_correction, same_topic_correction
from recollect.jobs.extraction.languages.clauses import ClauseReader, Statement, Subject
from recollect.jobs.extraction.languages.language_tables import LanguageTable, language_table
from recollect.jobs.extraction.sentences import Sentence
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.date_reading import names_date
from recollect.projections.text.folding import fold
from recollect.projections.text.sentence_language import Language, has_foreign_letters, language_of

#: A kind of `facts.extracted`, and its payload without its source.
KindAndItem = tuple[str, dict[str, Any]]

#: Words of a language that a sentence must have in a message whose language is not known.
_WORDS_MIN = 2
#: Confidence of a task with a date.
_DATED_TASK = 0.7
_DOUBT_FACTOR = 0.5
#: Characters of an object, and words of what replaces an object in a correction.
_CHARS_MAX = 180
_REPLACEMENT_WORDS_MAX = 3
#: Earlier statements that a correction is compared with.
_STATEMENTS_MAX = 40
#: Predicates and values whose objects may be lists, and words of an element of a list.
_LIST_PREDICATES = frozenset(("likes", "dislikes", "prefers", "speaks", "plays", "allergic to"))
_ELEMENT_WORDS_MAX = 4
_ELEMENT_SIGNS_MAX = 8
#: The category of an instruction by its topic; the topics are those of `standing_instructions`.
_CATEGORIES = {"bullet points": "formatting", "emojis": "formatting", "tables": "formatting", "markdown": "formatting"}
#: What has consequences outside the conversation: one text is not enough for it.
_RISKY = re.compile(
    r"\b(?:zahl|uberweis|kauf|bestell|losch|empfiehl|empfehl|teile|passwort|kreditkarte|paga|transfier|compra|borra|"
    r"elimina|recomienda|comparte|contrasena|tarjeta|paie|paye|vire|achete|commande|supprime|recommande|partage|"
    r"mot de passe|carte bancaire|https?)|[付转]款|购买|删除|推荐|密码|信用卡|支払|購入|注文|削除|おすすめ|パスワード"
)
_EDGES = " .,;:!?\"'-–~。、「」『』«»"


class LanguageReader:
    """Reads the sentences of one message that are in one of the five languages."""

    def __init__(self, speaker: str, sent_at: datetime, sentences: Sequence[Sentence], text: str) -> None:
        """Find the language of each sentence.

        Parameters:
            text: the message, whose language decides for a sentence that could be of two languages.
        """
        self._speaker = speaker
        self._sent_at = sent_at
        self._sentences = sentences
        of_message = language_of(text)
        if of_message is None and (len(sentences) < 2 or not has_foreign_letters(text)):
            self._languages: Sequence[Language | None] = [None] * len(sentences)
        else:
            minimum = 1 if of_message is not None else _WORDS_MIN
            self._languages = [language_of(part.text, of_message, words_min=minimum) for part in sentences]
        self._readers: dict[Language, ClauseReader] = {}

    def reads(self, index: int) -> bool:
        """Return whether the sentence `index` is in one of the five languages."""
        return self._languages[index] is not None

    def is_question(self, index: int) -> bool:
        """Return whether a sentence of the five languages asks, with or without a question mark."""
        language = self._languages[index]
        if language is None:
            return False
        sentence = self._sentences[index]
        return sentence.is_question or language_table(language).question.search(fold(sentence.text)) is not None

    def read(
        self, index: int, before: Sequence[PriorStatement], session_id: str | None, *, may_instruct: bool
    ) -> Iterator[KindAndItem]:
        """Yield the items of the sentence `index`, which `reads`.

        Parameters:
            before: earlier statements, oldest first, which a correction may refer to.
            may_instruct: whether an instruction in the message is one of its sender.
        """
        language = self._languages[index]
        assert language is not None
        table = language_table(language)
        if any(self._is_joke(table, position) for position in (index, index + 1)):
            return
        text = self._sentences[index].text
        reader = self._readers.setdefault(language, ClauseReader(table))
        statements = list(reader.read(text))
        factor = _DOUBT_FACTOR if table.doubt.search(fold(text)) else 1.0
        facts = [item for said in statements for kind, item in self._items(table, said, factor) if kind == "facts"]
        correction = self._correction(statements, facts, before, session_id)
        if correction is not None:
            yield "corrections", correction
            return
        for statement in statements:
            if statement.rule.kind == "instruction":
                if may_instruct:
                    yield "preferences", self._instruction(statement, text)
                return
        for statement in statements:
            yield from self._items(table, statement, factor)
        yield from self._people(reader.introduced)

    def _is_joke(self, table: LanguageTable, index: int) -> bool:
        """Return whether a sentence takes back the one before as a joke."""
        return index < len(self._sentences) and table.joke.search(fold(self._sentences[index].text)) is not None

    def _items(self, table: LanguageTable, statement: Statement, factor: float) -> Iterator[KindAndItem]:
        """Yield the facts, the preferences or the endings of a statement."""
        match statement.rule.kind:
            case "preference":
                yield from self._preferences(table, statement, factor)
            case "fact" if not (statement.rule.predicate == "name is" and statement.subject.relation is not None):
                yield from self._facts(table, statement, factor)
            case "ending" if factor == 1:
                yield from self._endings(statement)
            case _:
                return

    def _facts(self, table: LanguageTable, statement: Statement, factor: float) -> Iterator[KindAndItem]:
        """Yield one fact for each element of the object."""
        rule = statement.rule
        pairs = [(statement.predicate, statement.object), *([] if statement.also is None else [statement.also])]
        for predicate, whole in pairs:
            for object in _elements(table, predicate, whole):
                confidence = round(rule.confidence * factor, 3)
                if rule.type == "task" and names_date(object, self._sent_at, language=table.language):
                    confidence = max(confidence, round(_DATED_TASK * factor, 3))
                item: dict[str, Any] = {"subject": self._name(statement.subject), "predicate": predicate}
                item |= {"object": object, "confidence": confidence, "source_type": "observed"}
                if rule.type != "fact":
                    item["type"] = rule.type
                if rule.ended:
                    item["valid_until"] = self._sent_at
                yield "facts", item

    def _preferences(self, table: LanguageTable, statement: Statement, factor: float) -> Iterator[KindAndItem]:
        """Yield one preference for each element of the object."""
        subject = self._name(statement.subject)
        value = statement.predicate if subject == self._speaker else f"{subject} {statement.predicate}"
        for object in _elements(table, statement.predicate, statement.object):
            item = {"category": "other", "key": object, "value": value, "subject": self._speaker}
            yield "preferences", item | {"strength": round(statement.rule.confidence * factor, 3)}

    def _endings(self, statement: Statement) -> Iterator[KindAndItem]:
        """Yield what a statement ends."""
        rule, about = statement.rule, statement.about
        item: dict[str, Any] = {"subject": self._name(statement.subject)}
        if rule.ends:
            item["predicates"] = [*rule.ends]
        if rule.types == ("retracted",):
            # A request to forget is read elsewhere.
            return
        if rule.types:
            item["types"] = [*rule.types]
        if about:
            item["about"] = about
        if rule.ends or about:
            yield "endings", item

    def _people(self, introduced: Sequence[tuple[str, str]]) -> Iterator[KindAndItem]:
        """Yield the entities and relationships of the people that a sentence introduces."""
        for relation, name in dict.fromkeys(introduced):
            description = f"{self._speaker}'s {relation}"
            yield "entities", {"name": name, "type": "person", "description": description}
            yield "relationships", {"source": self._speaker, "type": relation, "target": name, "confidence": 0.9}

    def _instruction(self, statement: Statement, text: str) -> dict[str, Any]:
        """Return a standing instruction as the payload of a preference; a risky one does not stand."""
        topic = statement.rule.predicate
        is_risky = _RISKY.search(fold(text)) is not None
        return {
            "category": _CATEGORIES.get(topic, "communication" if topic else "other"),
            "key": topic or text[:80].casefold(),
            "value": text,
            "strength": 0.3 if is_risky else 0.9,
            "standing": not is_risky,
            "subject": self._speaker,
        }

    def _correction(
        self,
        statements: Sequence[Statement],
        facts: Sequence[dict[str, Any]],
        before: Sequence[PriorStatement],
        session_id: str | None,
    ) -> dict[str, Any] | None:
        """Return the correction of an earlier statement; None without one."""
        latest_first = before[-_STATEMENTS_MAX:][::-1]
        earlier = [said for said in latest_first if (said.speaker, said.session_id) == (self._speaker, session_id)]
        for statement in statements:
            if statement.rule.kind == "correction" and statement.rule.predicate == "actually" and facts:
                return same_topic_correction(facts, earlier)
            right = statement.right
            if statement.rule.kind == "correction" and right and len(right.split()) <= _REPLACEMENT_WORDS_MAX:
                return replacement_correction(right, statement.wrong, earlier)
        return None

    def _name(self, subject: Subject) -> str:
        """Return the name that facts have for a subject."""
        if subject.is_speaker:
            return self._speaker
        return subject.name or f"{self._speaker}'s {subject.relation}"


def _elements(table: LanguageTable, predicate: str, whole: str) -> list[str]:
    """Return the elements of an object that is a list, else the object, without those that name nothing."""
    parts = [whole]
    if predicate in _LIST_PREDICATES:
        parts = [part.strip() for part in table.separator.split(whole) if part and part.strip()]
        longest = max((len(part.split()) for part in parts), default=0)
        signs = max(map(len, parts), default=0)
        is_list = longest <= _ELEMENT_WORDS_MAX if table.is_spaced else signs <= _ELEMENT_SIGNS_MAX
        parts = parts if is_list else [whole]
    elements: list[str] = []
    for part in parts:
        clean = part.strip(_EDGES)
        if len(parts) > 1:
            clean = _without_qualifier(table, clean)
        if clean and len(clean) <= _CHARS_MAX and table.empty.match(fold(clean)) is None:
            elements.append(clean)
    return elements


def _without_qualifier(table: LanguageTable, element: str) -> str:
    """Return an element of a list without the words before it, as in `ein bisschen Polnisch`."""
    qualified = table.qualifier.match(fold(element))
    rest = "" if qualified is None else element[qualified.end() :]
    ends_word = not table.is_spaced or rest[:1] in (" ", "'")
    return rest.strip(" '") if ends_word and rest.strip(" '") else element
