"""Changes: the endings, corrections and new values that a sentence makes of the older statements of its speaker.

`comparison.py` decides what the sentence does to each of them. Sure changes are applied; otherwise both stay valid,
and where it may change one, the older one is shown with the words of the newer one: a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from recollect.events.catalogue.knowledge_events import SAYS
from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.change_features import Amount, Read, amounts, stems_of
from recollect.jobs.extraction.comparison import Compared, Vectors, compare
from recollect.jobs.extraction.standing_instructions import instruction_of
from recollect.jobs.extraction.statement_reader import ReadClause, read_clauses
from recollect.jobs.extraction.statements import RULE_MIN, instruction_probability
from recollect.projections.embeddings.reading_encoder import ReadPairs
from recollect.projections.projector.predicates import canonical, has_one_value
from recollect.projections.queries.knowledge_queries import PriorStatement

#: A kind of `facts.extracted`, and its payload without its source.
KindAndItem = tuple[str, dict[str, Any]]


class FindChanges(Protocol):
    """`find_changes` with what reads the sentences."""

    def __call__(
        self,
        sentence: str,
        speaker: str,
        before: Sequence[PriorStatement],
        facts: Sequence[dict[str, Any]] = (),
        *,
        read: Sequence[ReadClause] | None = None,
    ) -> list[KindAndItem]:
        """Return what a sentence changes."""
        ...


#: From these probabilities on, a statement, and a rule, is replaced, ended or corrected. A wrong ending is worse than a
#: missed one, which is a doubt: of held-out voices and conversations 185 pairs have it, 167 of them changes; from .5 on
#: 445 of 579. `ops/train/changes` has the figures. The third: of rules, where no encoder reads the pair.
_SURE, _RULE_SURE, _RULE_SURE_BY_WORDS = 0.8, 0.5, 0.6
#: From this probability on a change of a statement is a doubt: of 602 such pairs of these 385 are a change. The second:
#: of the rule that a sentence most likely changes, shown in every turn with that sentence.
_DOUBTFUL, _RULE_DOUBTFUL = 0.4, 0.25
#: The probability of a doubt is below 1.
DOUBT_MAX = 0.999
#: The probability that a sentence is a rule, from which on it may replace one; and that it changes the rule, from which
#: on it does in any case: of held-out voices, 15 right and none wrong (`five bullets is okay now`), 3 and 6 under it.
_NEW_RULE_MIN, _REPLACED_MIN = 0.3, 0.8
#: A sentence that is a rule with the first probability is mostly kept with the older ones. It ends or replaces one from
#: the second on: in 33 unseen conversations four rules were ended by another rule at .64 to .83, none of them rightly; of
#: 75 withdrawals of `ops/trials` 38 instead of 39 are carried out.
_FURTHER_RULE_MIN, _BY_RULE_SURE = 0.5, 0.9
#: Statements that one sentence may change, and bring into doubt: the same one may be there in two forms.
_CHANGED_MAX, _DOUBTS_MAX = 4, 2
#: The probability that a clause is worth keeping from which a statement in words has it as a part of its own.
_PART_MIN = 0.3
#: Confidence of a statement with a new value in place of the old one, and of a sentence that is the new statement.
_CONFIDENCE = 0.85
#: Separators of the elements of a list.
_BETWEEN = late_pattern(r"(,\s?(?:and |or )?|\s(?:and|or|und|y|et)\s|、|と)")
_ELEMENT_WORDS_MAX = 4
#: The right words of a correction: `no, I meant Rex`, `Rex, not Max`, `it is not Max but Rex`.
_RIGHT = (
    late_pattern(
        r"\bI (?:meant|mean) (?P<right>[^,;.!?]{1,60}?)(?:,? not (?P<wrong>[^,;.!?]{1,60}))?[.!]?$", re.IGNORECASE
    ),
    late_pattern(r"^(?:[^,]{1,30}, )?(?P<right>[^,;.!?]{1,60}?),? not (?P<wrong>[^,;.!?]{1,60})[.!]?$", re.IGNORECASE),
    late_pattern(
        r"\bnot (?P<wrong>[^,;.!?]{1,60}?)(?:, | but ){1,2}(?:it is |rather )?(?P<right>[^,;.!?]{1,60})[.!]?$",
        re.IGNORECASE,
    ),
)
_LEADING = late_pattern(
    r"^(?:(?:no|but|sorry|actually|oh|it is|it's|its|is|in|at|on|a|an|the|name is|called|named|(?:his|her|my) name is)[ ,]\s?)+",
    re.IGNORECASE,
)
_RIGHT_WORDS_MAX = 3
#: Words that say that a sentence corrects an earlier one.
_SAYS_CORRECTION = late_pattern(
    r"^(?:no|actually|sorry|oops|oh|wait)\b|\bI (?:meant|mean)\b|^(?:it|that|this|my \w+(?: \w+)?) is not\b",
    re.IGNORECASE,
)
_CORRECTION_CHARS_MAX = 200
#: Statements that such a sentence may correct, the newest.
_CORRECTED_MAX = 40


def find_changes(
    sentence: str,
    speaker: str,
    before: Sequence[PriorStatement],
    facts: Sequence[dict[str, Any]] = (),
    *,
    vectors: Vectors | None = None,
    read: Sequence[ReadClause] | None = None,
    read_pairs: ReadPairs | None = None,
) -> list[KindAndItem]:
    """Return what a sentence changes: items of `endings`, `corrections`, `facts`, `preferences` and `doubts`.

    They have no sources yet.

    Parameters:
        sentence: as it is said, without the statements of others: no question, quotation or joke.
        before: older statements, oldest first, without those of the sentence itself.
        facts: the facts of the sentence; without one, the sentence that replaces something is the new statement.
        vectors: as in `compare`.
        read: as in `compare`.
        read_pairs: as in `compare`.
    """
    rule_sure = _RULE_SURE_BY_WORDS if read_pairs is None else _RULE_SURE
    likely = _likely_changes(compare(sentence, speaker, before, vectors, read, read_pairs))
    if read_pairs is None:
        likely = [_by_number(it, sentence) for it in likely]
    changes = [it for it in likely if it.probability >= (rule_sure if _is_rule(it.prior) else _SURE)][:_CHANGED_MAX]
    # By words alone, `the shop is open again` brings a rule into doubt.
    doubts = [] if read_pairs is None else [it for it in likely if it not in changes and _is_doubt(it, likely, read)]
    items = [*_of_rules(changes, sentence, speaker, read)]
    is_stated = any(fact.get("type", "fact") == "fact" for fact in facts)
    for change in changes:
        if _is_rule(change.prior) or _is_settled(change, facts):
            continue
        if _is_partly_meant(change, sentence):
            doubts.append(change)
            continue
        made = _of_statement(change, sentence, speaker, facts, is_stated=is_stated)
        is_stated = is_stated or any(kind in ("corrections", "facts") for kind, _ in made)
        items += made
    open = [it for it in doubts if not _is_settled(it, facts)][:_DOUBTS_MAX]
    return [*items, *(("doubts", _doubt(it, sentence)) for it in open)]


def _of_statement(
    change: Compared,
    sentence: str,
    speaker: str,
    facts: Sequence[dict[str, Any]],
    *,
    is_stated: bool,
) -> list[KindAndItem]:
    """Return what a sentence makes of a statement that it surely changes.

    Parameters:
        is_stated: whether the new statement is there already.
    """
    prior, relation = change.prior, change.relation
    # Quoted words are never stored with another value: the new sentence replaces them.
    is_said = prior.predicate == SAYS
    changed = None if relation == "ends" or is_said else _with_number(prior.object, sentence)
    if relation == "corrects" and not prior.is_preference and not is_said:
        right = _stated_object(prior, facts) or changed or _right_object(prior.object, sentence)
        if right is not None:
            topic = {"subject": prior.subject, "predicate": prior.predicate}
            return [("corrections", topic | {"object": right, "corrects_object": prior.object})]
    remaining = None if prior.is_preference or changed is not None else remaining_elements(prior.object, sentence)
    items: list[KindAndItem] = [("endings", _ending(prior))]
    if remaining is not None:
        items.append(("facts", _fact(prior.subject, prior.predicate, remaining)))
    if relation == "ends" or prior.is_preference or is_stated:
        return items
    if changed is not None:
        return [*items, ("facts", _fact(prior.subject, prior.predicate, changed))]
    kind = {"statement_kind": prior.kind} if prior.kind else {}
    return [*items, ("facts", _fact(speaker, SAYS, sentence) | kind)]


def _is_settled(change: Compared, facts: Sequence[dict[str, Any]]) -> bool:
    """Return whether the facts of a sentence decide about a statement: they repeat it, or state another fact.

    Of facts with one value at a time, the projector replaces the older one.
    """
    prior = change.prior
    if change.relation != "ends" and _states_other(prior, facts):
        return True
    restated = _stated_object(prior, facts)
    return restated == prior.object or (restated is not None and has_one_value(canonical(prior.predicate)))


def _is_partly_meant(change: Compared, sentence: str) -> bool:
    """Return whether a sentence may change only a part of a statement, which cannot be said in the words of the rest."""
    prior = change.prior
    is_said = prior.predicate == SAYS
    changed = None if change.relation == "ends" or is_said else _with_number(prior.object, sentence)
    if changed is None and _has_several(prior.object, sentence):
        return True
    return is_said and (remaining_elements(prior.object, sentence) is not None or _has_parts(prior.object))


def _has_parts(text: str) -> bool:
    """Return whether several clauses of a statement are worth keeping: `Lotte is 9 and she plays the harp`."""
    return sum(clause.keep >= _PART_MIN for clause in read_clauses(text, to_assistant=True)) > 1


def plain_correction(sentence: str, before: Sequence[PriorStatement]) -> KindAndItem | None:
    """Return the correction of a sentence such as `it is not X, it is Y` or `no, I meant Y`, which says so in words.

    Parameters:
        before: the facts that its speaker stated in the conversation, oldest first.
    """
    said = sentence[:_CORRECTION_CHARS_MAX] if _SAYS_CORRECTION.search(sentence) else ""
    matches = (pattern.search(said) for pattern in _RIGHT)
    match = next((match for match in matches if match is not None), None)
    if match is None:
        return None
    wrong = _LEADING.sub("", (match["wrong"] or "").strip()).casefold()
    prior = next((prior for prior in before[: -_CORRECTED_MAX - 1 : -1] if wrong in prior.object.casefold()), None)
    right = None if prior is None else _right_object(prior.object, said)
    if prior is None or right is None:
        return None
    topic = {"subject": prior.subject, "predicate": prior.predicate}
    return "corrections", topic | {"object": right, "corrects_object": prior.object}


def _likely_changes(compared: Sequence[Compared]) -> list[Compared]:
    """Return the statements that may be changed, the likeliest first."""
    likely = (it for it in compared if it.probability >= (_RULE_DOUBTFUL if _is_rule(it.prior) else _DOUBTFUL))
    return sorted(likely, key=lambda it: -it.probability)


def _is_doubt(change: Compared, likely: Sequence[Compared], read: Sequence[ReadClause] | None) -> bool:
    """Return whether an unsure change is a doubt: of rules the likeliest alone, and none by a rule of another thing."""
    if not _is_rule(change.prior):
        return True
    return change is next(it for it in likely if _is_rule(it.prior)) and instruction_probability(read or ()) < RULE_MIN


def _by_number(change: Compared, sentence: str) -> Compared:
    """Return a change as a new value where the sentence has another number, which words alone do not show."""
    return change if _with_number(change.prior.object, sentence) is None else change._replace(relation="replaces")


def _is_rule(prior: PriorStatement) -> bool:
    return prior.is_preference and prior.kind == "rule"


def _of_rules(
    changes: Sequence[Compared], sentence: str, speaker: str, read: Sequence[ReadClause] | None
) -> Iterator[KindAndItem]:
    """Yield the endings of rules, and the sentence as the new rule when it replaces one and is probably a rule itself."""
    changed = [it for it in changes if _is_rule(it.prior)]
    clauses = read_clauses(sentence, to_assistant=True) if changed and read is None else read or ()
    probability = instruction_probability(clauses)
    if probability >= _FURTHER_RULE_MIN:
        changed = [it for it in changed if it.probability >= _BY_RULE_SURE]
    is_rule = probability >= _NEW_RULE_MIN
    rules = [it for it in changed if it.relation == "ends" or is_rule or it.probability >= _REPLACED_MIN]
    yield from (("endings", _ending(it.prior)) for it in rules)
    new = [it.probability for it in rules if it.relation != "ends"]
    if new:
        yield "preferences", instruction_of(sentence).preference(speaker, max(probability, *new))


def _ending(prior: PriorStatement) -> dict[str, Any]:
    predicates = {"predicates": [prior.predicate]} if prior.predicate else {}
    return {"subject": prior.subject or prior.speaker, "object": prior.object} | predicates


def _doubt(change: Compared, sentence: str) -> dict[str, Any]:
    """Return the doubt of a statement, with the words by which the sentence is found in its message."""
    return _ending(change.prior) | {"about": sentence, "probability": min(round(change.probability, 3), DOUBT_MAX)}


def _fact(subject: str, predicate: str, object: str) -> dict[str, Any]:
    fact = {"subject": subject, "predicate": predicate, "object": object}
    return fact | {"confidence": _CONFIDENCE, "source_type": "observed"}


def _states_other(prior: PriorStatement, facts: Sequence[dict[str, Any]]) -> bool:
    """Return whether the facts of a sentence are about another property of the subject: its job, not its employer."""
    said = {fact["predicate"] for fact in facts if fact["subject"] == prior.subject}
    return bool(prior.predicate) and prior.predicate != SAYS and bool(said) and prior.predicate not in said


def _stated_object(prior: PriorStatement, facts: Sequence[dict[str, Any]]) -> str | None:
    """Return the object of the fact of the sentence with the subject and predicate of an older statement."""
    topic = (prior.subject, prior.predicate)
    return next((fact["object"] for fact in facts if (fact["subject"], fact["predicate"]) == topic), None)


def _with_number(object: str, sentence: str) -> str | None:
    """Return an object with the only number of a sentence in place of its own one of this unit; None without one reading."""
    old_amounts, new_amounts = amounts(object), amounts(sentence)
    pairs = [
        (old, new) for old in old_amounts for new in new_amounts if old.number != new.number and _one_unit(old, new)
    ]
    kept = {amount.number for amount in old_amounts} & {amount.number for amount in new_amounts}
    if len(pairs) > 1:
        # `from 300 to 400` names the old number, too.
        pairs = [(old, new) for old, new in pairs if new.number not in kept]
    # `to 100 mg on 3 May` has an amount of the unit, and a number without one.
    pairs = [pair for pair in pairs if pair[0].unit and pair[0].unit == pair[1].unit] or pairs
    if len(pairs) != 1:
        return None
    old, new = pairs[0]
    return f"{object[: old.start]}{new.number}{object[old.end :]}"


def _has_several(object: str, sentence: str) -> bool:
    """Return whether a sentence gives a new amount of a unit of which an object has several: any of them may be meant."""
    units = [amount.unit for amount in amounts(object)]
    return any(new.unit and units.count(new.unit) > 1 for new in amounts(sentence))


def _one_unit(old: Amount, new: Amount) -> bool:
    return old.unit == new.unit or not new.unit


def remaining_elements(object: str, sentence: str) -> str | None:
    """Return a list without the elements that a sentence names; None when it names none or all, or there is no list."""
    parts = _BETWEEN.split(object)
    elements = parts[::2]
    if len(elements) < 2 or any(len(element.split()) > _ELEMENT_WORDS_MAX for element in elements[1:-1]):
        return None
    said = Read(sentence).stems
    named = [bool(stems_of(element) & said) for element in elements]
    if not any(named) or all(named):
        return None
    stays = [element for element, is_named in zip(elements, named, strict=True) if not is_named]
    return stays[0] if len(stays) == 1 else f"{', '.join(stays[:-1])} and {stays[-1]}"


def _right_object(object: str, sentence: str) -> str | None:
    """Return the object that a correction names, in the form of the old one: `dog named Max` becomes `dog named Rex`."""
    for pattern in _RIGHT:
        match = pattern.search(sentence[:_CORRECTION_CHARS_MAX])
        right = "" if match is None else _LEADING.sub("", match["right"].strip()).strip(" .\"'")
        if match is None or not 0 < len(right.split()) <= _RIGHT_WORDS_MAX:
            continue
        wrong = _LEADING.sub("", (match["wrong"] or "").strip()).strip(" .\"'")
        place = object.casefold().find(wrong.casefold()) if wrong else -1
        if place >= 0:
            return f"{object[:place]}{right}{object[place + len(wrong) :]}"
        head, named, _ = object.rpartition(" named ")
        return f"{head}{named}{right}"
    return None
