"""LLM extractor: reads knowledge from messages with a language model, and checks each item against its source.

The payloads are those of the rule extractor. A fact without ground is kept as rejected; another item is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time
from typing import Any

from recollect.jobs.extraction.llm_answer import (
    LlmCorrection,
    LlmEnding,
    LlmEntity,
    LlmExtraction,
    LlmFact,
    LlmInstruction,
    LlmPreference,
    LlmProcedure,
    LlmRelationship,
)
from recollect.jobs.extraction.llm_conversation import LlmConversation, is_question
from recollect.jobs.extraction.message_kinds import is_pasted
from recollect.jobs.extraction.predicate_cues import LIKING, allows
from recollect.jobs.extraction.rule_extractor import ExtractedItem, IncomingMessage
from recollect.jobs.extraction.sentences import Sentence
from recollect.jobs.extraction.standing_instructions import find_instruction, is_risky
from recollect.jobs.llm.client import LlmClient
from recollect.jobs.llm.item_answer import LlmItem
from recollect.projections.projector.predicates import canonical, is_listed, normalised
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.queries.session_queries import EarlierTurn
from recollect.projections.text.sentences import END_SIGNS, split_sentences
from recollect.projections.text.stems import content_stems, stem

#: Words for the speaker that a model uses as a subject.
_FIRST_PERSON = frozenset(("i", "me", "we", "us", "user", "the user", "speaker", "the speaker", "myself"))
#: Subjects and names that name no person: pronouns that the model did not resolve.
_PRONOUN = re.compile(
    r"^(?:i|me|my|we|us|our|you|your|he|him|his|she|her|hers|it|its|they|them|their|this|that|these|those|who|someone|"
    r"somebody|everyone|person|people|user|assistant|unknown|none|null|n/a)$",
    re.IGNORECASE,
)
#: `my sister` and `Ann's sister`.
_POSSESSIVE = re.compile(r"^(?:(?P<own>my|our)|(?P<owner>.{1,120}?)['’]s?) (?P<relation>.{1,80})$", re.IGNORECASE)
#: Predicates and kinds of relationships that the words of a line need not have, without their prepositions.
_GENERIC = frozenset(
    stem(word)
    for word in "like dislike love hate prefer own have need want plan decide know work live study speak play visit attend meet did do "
    "be problem task event use friend family partner sister brother mother father son daughter wife husband child parent "
    "colleague boss pet part member".split()
)
#: What an assistant says of itself that is worth remembering: what it did and what it promised.
_ASSISTANT_TYPES = ("commit", "decision", "task", "event")
_ASSISTANT_CONFIDENCE_MAX = 0.6
#: Words of endings in the languages that conversations are mostly in. A line with one ends what it does not name again:
#: `we broke up`.
_ENDING_CUE = re.compile(
    r"\b(?:no longer|any ?more|quit|quitting|left|leaving|sold|stopp?e?d?|used to|broke|split|died|dead|done|finish\w*|"
    r"cancel\w*|expired|returned|gave|lost|over|ended|fired|verkauft|gekündigt|getrennt|gestorben|fertig|ya no|dejé|vendí|"
    r"murió|terminé|quitté|vendu|mort|fini|vendi|больше|ушёл|ушла|продал\w?)\b|不再|了|もう",
    re.IGNORECASE,
)
#: Denials, which end what the line names.
_DENYING_CUE = re.compile(
    r"\b(?:not|\w{2,10}n['’]t|never|no|without|former|ex|nicht|kein\w*|mehr|nunca|plus|pas|non|più|não|já|не|нет)\b|没|不",
    re.IGNORECASE,
)
#: Words with which a line sets something right.
_CORRECTION_CUE = re.compile(
    r"\b(?:actually|correct\w*|meant|mean|mistake|misspoke|wrong|sorry|oops|wait|no|not|n['’]t|rather|instead|eigentlich|"
    r"nein|nicht|sondern|meinte|falsch|quise decir|no era|perdón|en fait|non|pardon|anzi|na verdade|не|точнее)\b|不是|应该是|じゃなくて",
    re.IGNORECASE,
)
_FORGET = re.compile(
    r"\b(?:forget|never ?mind|disregard|scratch that|delete|erase|remove|vergiss|vergessen|lösch\w*|olvida\w*|borra|oublie\w*|"
    r"esquece|dimentica|забудь)\b|忘|算了",
    re.IGNORECASE,
)
#: Words that deny a statement, without those of `can't wait` and `not only`; and items that are about a denial.
_DENIAL = re.compile(
    r"\b(?:not(?! only)|never|cannot(?! wait)|(?!can)\w+n['’]t|can['’]?t(?! wait)|hate|dislike|nicht|kein\w{0,2}|nie|nunca|jamais|pas)\b",
    re.IGNORECASE,
)
_DENYING_ITEM = re.compile(
    r"\b(?:not|never|no|none|without|\w{2,10}n['’]t|dislikes?|hates?|avoids?|refuses?|quit|stopped|allergic|problem|nicht|"
    r"kein\w{0,2}|nie|nunca|jamais|pas)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:–—]|\b(?:but|and|because|although|though|so|aber|und|pero|mais)\b", re.IGNORECASE)
#: Signs that a sentence reports the words of others, or speaks about another person: no instruction to the assistant.
_REPORTED = re.compile(
    r"[\"“”«»]|\b(?:said|says|told|tells|asked|asks|wrote|writes|he|she|they|his|her|their|everyone|people)\b",
    re.IGNORECASE,
)
#: Words of a task that a line about it has: the verb and the thing.
_TASK_WORDS_MIN = 2
#: The most that one line says about a preference: a stronger one is part of every prompt.
_STRENGTH_MAX = 0.75
#: Characters and strength of an instruction that is no standing one; risky ones have the strength of the rules'.
_KEY_CHARS_MAX = 80
_STRENGTH = 0.5
_RISKY_STRENGTH = 0.3


def extract_by_llm(
    llm: LlmClient,
    namespace: str,
    messages: Sequence[IncomingMessage],
    earlier: Mapping[str | None, Sequence[EarlierTurn]],
    before: Sequence[PriorStatement],
    by_rules: Sequence[PriorStatement] = (),
) -> list[ExtractedItem] | None:
    """Return the items that the model reads in `messages`; None when the request failed, or all lines are invented.

    Parameters:
        earlier: the messages before `messages`, by session.
        before: statements that memory has, oldest first.
        by_rules: statements that the rules read in `messages`, which a correction of the model may set right.
    """
    conversation = LlmConversation(messages, earlier, before)
    if not conversation.has_user():
        return []
    answer = llm.ask(namespace, "extract", conversation.lines(), LlmExtraction)
    if answer is None:
        return None
    items = list(_Checks(conversation, [*before, *by_rules]).items(answer))
    return items if items or answer == LlmExtraction() else None


class _Checks:
    """Converts the items of an answer to payloads, with the checks of each kind."""

    def __init__(self, conversation: LlmConversation, before: Sequence[PriorStatement]) -> None:
        self._conversation = conversation
        #: The statements of memory and the facts of the answer, which corrections and endings refer to.
        self._statements = list(before)

    def items(self, answer: LlmExtraction) -> Iterator[ExtractedItem]:
        """Yield the items of an answer; facts first, because corrections and endings refer to them."""
        for fact in sorted(answer.facts, key=lambda fact: fact.line):
            yield from self._fact(fact)
        for correction in answer.corrections:
            yield from self._correction(correction)
        for ending in answer.endings:
            yield from self._ending(ending)
        for preference in answer.preferences:
            yield from self._preference(preference)
        for instruction in answer.instructions:
            yield from self._instruction(instruction)
        for entity in answer.entities:
            yield from self._entity(entity)
        for relationship in answer.relationships:
            yield from self._relationship(relationship)
        for procedure in answer.procedures:
            yield from self._procedure(procedure)

    def _fact(self, fact: LlmFact) -> Iterator[ExtractedItem]:
        message = self._conversation.message(fact.line)
        if message is None:
            return
        own = self._conversation.own(fact.line)
        fact = fact.model_copy(update={"object": own.with_read_dates(fact.object)})
        subject = self._subject(fact.subject, fact.line)
        grounded = subject is not None and self._states(fact.line, fact.predicate, fact.object)
        confidence = fact.confidence
        if message.is_assistant:
            grounded = grounded and subject == message.speaker and fact.type in _ASSISTANT_TYPES
            confidence = min(confidence, _ASSISTANT_CONFIDENCE_MAX)
        item: dict[str, Any] = {
            "subject": subject or fact.subject,
            "predicate": fact.predicate,
            "object": fact.object,
            "confidence": confidence,
            "source_type": "observed",
            "source_events": [message.event_id],
        }
        if fact.type != "fact":
            item["type"] = fact.type
        for field, day in (("valid_from", fact.since), ("valid_until", fact.until)):
            if day is None:
                continue
            start = datetime.combine(day, time(), message.sent_at.tzinfo)
            if own.speaks_of(start):
                item[field] = start
        if grounded:
            self._statements.append(_statement(message, item))
        yield ExtractedItem("facts" if grounded else "rejected", item)

    def _correction(self, correction: LlmCorrection) -> Iterator[ExtractedItem]:
        """Yield a correction of what its speaker stated before; a fact when nothing was, or the line corrects nothing."""
        message = self._of_user(correction)
        if message is None or is_pasted(message.text):
            return
        subject = self._subject(correction.subject, correction.line)
        if subject is None:
            return
        is_correction = _CORRECTION_CUE.search(message.text) is not None
        wrong = self._corrected(correction, subject, message.speaker) if is_correction else None
        # The statement that it corrects has the predicate.
        if not self._states(correction.line, correction.predicate if wrong is None else "", correction.object):
            return
        item: dict[str, Any] = {"subject": subject, "predicate": correction.predicate, "object": correction.object}
        if wrong is None:
            fact = {"confidence": 0.8, "source_type": "observed"}
            yield ExtractedItem("facts", item | fact | _source(message))
        else:
            item |= {"predicate": wrong.predicate, "corrects_object": wrong.object}
            yield ExtractedItem("corrections", item | _source(message))

    def _corrected(self, correction: LlmCorrection, subject: str, speaker: str) -> PriorStatement | None:
        """Return the latest statement that a correction sets right; None without one."""
        for prior in reversed(self._statements):
            if (prior.speaker, normalised(prior.subject)) != (speaker, normalised(subject)):
                continue
            if normalised(prior.object) == normalised(correction.object):
                continue
            is_wrong = correction.wrong is not None and bool(
                content_stems(correction.wrong) & content_stems(prior.object)
            )
            if is_wrong or canonical(prior.predicate) == canonical(correction.predicate):
                return prior
        return None

    def _ending(self, ending: LlmEnding) -> Iterator[ExtractedItem]:
        message = self._of_user(ending)
        subject = None if message is None else self._subject(ending.subject, ending.line)
        if message is None or subject is None or is_pasted(message.text):
            return
        if is_question(_closest_sentence(message.text, ending.about or "")):
            return
        own = self._conversation.own(ending.line)
        # "Never mind, look at this" is about nothing that was said before.
        names_it = own.has_pronoun() or own.has_words(ending.about or ending.predicate or "")
        is_retraction = ending.forget and names_it and _FORGET.search(message.text) is not None
        priors = [prior for prior in self._statements if normalised(prior.subject) == normalised(subject)]
        is_denied = names_it and _DENYING_CUE.search(message.text) is not None
        is_over = is_denied or _ENDING_CUE.search(message.text) is not None or _does_a_task(message.text, priors)
        if not is_retraction and not is_over:
            return
        predicate = canonical(ending.predicate or "")
        predicates = list(dict.fromkeys(prior.predicate for prior in priors if canonical(prior.predicate) == predicate))
        about = ending.about
        if about is None:
            about = next((prior.object for prior in reversed(priors) if prior.predicate in predicates), None)
        elif not self._is_mentioned(about, ending.line):
            return
        if about is None:
            return
        item: dict[str, Any] = {"subject": subject, "about": about} | ({"predicates": predicates} if predicates else {})
        yield ExtractedItem("endings", item | ({"retracted": True} if is_retraction else {}) | _source(message))

    def _preference(self, preference: LlmPreference) -> Iterator[ExtractedItem]:
        message = self._of_user(preference)
        if message is None or is_pasted(message.text):
            return
        subject = self._subject(preference.subject or message.speaker, preference.line)
        if subject is None or not self._states(preference.line, preference.value, preference.key):
            return
        if not any(LIKING.search(line.text) for line in self._conversation.answered(preference.line).lines):
            return
        item = {
            "category": preference.category,
            "key": preference.key,
            "value": preference.value if subject == message.speaker else f"{subject} {preference.value}",
            "strength": min(preference.strength, _STRENGTH_MAX),
            "subject": message.speaker,
        }
        yield ExtractedItem("preferences", item | _source(message))

    def _instruction(self, instruction: LlmInstruction) -> Iterator[ExtractedItem]:
        """Yield an instruction. It stands only when the rules read it as the user's own, and as harmless."""
        message = self._of_user(instruction)
        text = instruction.text.rstrip(END_SIGNS + " ")
        if message is None or not text or is_pasted(message.text):
            return
        own = self._conversation.own(instruction.line)
        if not own.grounds(text):
            return
        if _REPORTED.search(_closest_sentence(message.text, text)):
            return
        rule = find_instruction(Sentence(text, "."))
        item: dict[str, Any] = {"category": "communication", "key": text[:_KEY_CHARS_MAX].casefold(), "value": text}
        if rule is None:
            item |= {"strength": _RISKY_STRENGTH if is_risky(text) else _STRENGTH, "standing": False}
        else:
            item |= {"category": rule.category or "other", "key": rule.topic}
            item |= {"strength": _RISKY_STRENGTH if rule.is_risky else 0.9, "standing": not rule.is_risky}
        yield ExtractedItem("preferences", item | {"subject": message.speaker} | _source(message))

    def _entity(self, entity: LlmEntity) -> Iterator[ExtractedItem]:
        message = self._of_user(entity)
        if message is None or not self._is_name(entity.name, entity.line):
            return
        own = self._conversation.answered(entity.line)
        aliases = [
            alias
            for alias in dict.fromkeys(entity.aliases)
            if own.has_name(alias) and not _PRONOUN.match(alias) and normalised(alias) != normalised(entity.name)
        ]
        item: dict[str, Any] = {"name": entity.name, "type": entity.type}
        if aliases:
            item["aliases"] = aliases
        description = entity.description
        so_far = self._conversation.so_far(entity.line)
        if description and so_far.grounds(description):
            item["description"] = description
        yield ExtractedItem("entities", item | _source(message))

    def _relationship(self, relationship: LlmRelationship) -> Iterator[ExtractedItem]:
        message = self._of_user(relationship)
        if message is None:
            return
        source = self._subject(relationship.source, relationship.line)
        target = self._subject(relationship.target, relationship.line)
        if source is None or target is None or normalised(source) == normalised(target):
            return
        if not self._has_predicate(relationship.line, relationship.type):
            return
        item = {"source": source, "type": relationship.type, "target": target, "confidence": 0.8}
        yield ExtractedItem("relationships", item | _source(message))

    def _procedure(self, procedure: LlmProcedure) -> Iterator[ExtractedItem]:
        message = self._of_user(procedure)
        if message is None:
            return
        own = self._conversation.own(procedure.line)
        parts = [procedure.name, *procedure.steps]
        if all(own.grounds(part) for part in parts):
            item = {"name": procedure.name, "trigger": f"to {procedure.name}", "steps": procedure.steps}
            yield ExtractedItem("procedures", item | _source(message))

    def _of_user(self, item: LlmItem) -> IncomingMessage | None:
        """Return the message of an item; None when the assistant wrote it, or the model invented the line."""
        message = self._conversation.message(item.line)
        return None if message is None or message.is_assistant else message

    def _states(self, line: int, predicate: str, object: str) -> bool:
        """Return whether the speaker of a line states the object, and what precedes it asks for the predicate."""
        message = self._conversation.message(line)
        own = self._conversation.own(line)
        if message is None:
            return False
        sentence = _closest_sentence(message.text, object)
        if not self._conversation.confirms(line) and (is_question(sentence) or _is_denied(sentence, predicate, object)):
            return False
        so_far = self._conversation.so_far(line)
        # What a pronoun of the line stands for is in the lines before.
        if not own.has_words(object) and not (own.has_pronoun() and so_far.has_words(object, 1.0)):
            return False
        has_numbers = own.has_numbers(object, message.sent_at)
        return has_numbers and so_far.has_names(object) and self._has_predicate(line, predicate)

    def _has_predicate(self, line: int, predicate: str) -> bool:
        """Return whether a predicate is a usual one, or in the words of a line or of the question before it."""
        answered = self._conversation.answered(line)
        if not any(allows(predicate, source.text) for source in answered.lines):
            return False
        words = " ".join(word for word in predicate.split() if not content_stems(word) <= _GENERIC)
        return is_listed(predicate) or not content_stems(words) or answered.has_words(words)

    def _is_mentioned(self, phrase: str, line: int) -> bool:
        """Return whether the conversation so far, or memory, has the words of `phrase`."""
        return self._conversation.so_far(line).has_words(phrase) or self._conversation.remembered.has_words(phrase)

    def _is_name(self, name: str, line: int) -> bool:
        return _PRONOUN.match(name) is None and self._conversation.so_far(line).has_name(name)

    def _subject(self, name: str, line: int) -> str | None:
        """Return the subject that a name means; None when the conversation so far does not have the name."""
        message = self._conversation.message(line)
        if message is None:
            return None
        if message.is_assistant and "user" in name.casefold():
            return None
        if name.casefold() in _FIRST_PERSON or name.casefold() == message.speaker.casefold():
            return message.speaker
        possessive = _POSSESSIVE.match(name)
        if possessive is not None and self._conversation.so_far(line).has_name(possessive["relation"]):
            owner = message.speaker if possessive["own"] else self._subject(possessive["owner"], line)
            return None if owner is None else f"{owner}'s {possessive['relation']}"
        return name if self._is_name(name, line) else None


def _closest_sentence(text: str, phrase: str) -> str:
    """Return the sentence of `text` that has most words of `phrase`."""
    words = content_stems(phrase)
    return max(split_sentences(text) or [text], key=lambda sentence: len(words & content_stems(sentence)))


def _does_a_task(text: str, priors: Sequence[PriorStatement]) -> bool:
    """Return whether a message names what a task is about: `I renewed my passport`."""
    words = {word for sentence in split_sentences(text) for word in content_stems(sentence)}
    tasks = [content_stems(prior.object) for prior in priors if canonical(prior.predicate) == "needs to"]
    return any(len(words & task) >= min(_TASK_WORDS_MIN, len(task)) > 0 for task in tasks)


def _is_denied(sentence: str, predicate: str, object: str) -> bool:
    """Return whether the clause of a sentence that has the object denies it, and the item does not."""
    words = content_stems(object)
    clause = max(_CLAUSE.split(sentence), key=lambda part: len(words & content_stems(part or "")))
    return _DENIAL.search(clause) is not None and not _DENYING_ITEM.search(f"{predicate} {object}")


def _statement(message: IncomingMessage, fact: Mapping[str, Any]) -> PriorStatement:
    return PriorStatement(
        session_id=message.session_id,
        speaker=message.speaker,
        subject=fact["subject"],
        predicate=fact["predicate"],
        object=fact["object"],
    )


def _source(message: IncomingMessage) -> dict[str, Any]:
    return {"source_events": [message.event_id]}
