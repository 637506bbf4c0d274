"""Changes: a new value, a correction or an ending names exactly one earlier statement, and the others stay."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from support.events import message

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.catalogue.knowledge_events import SAYS
from recollect.jobs.extraction.changes import find_changes
from recollect.jobs.extraction.statements import read_sentences
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import Embed
from recollect.projections.queries.knowledge_queries import PriorStatement

#: By words alone the comparison is not sure enough of it: a missed change is better than a wrong one.
MISSED = pytest.mark.xfail(reason="the comparison is not sure of it", strict=False)
Facts = Callable[..., set[tuple[str, str, str]]]


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


@pytest.fixture
def facts(memory: Recollect) -> Facts:
    """Append messages of a user, and return subject, predicate and object of the active facts but events."""

    def facts(*texts: str) -> set[tuple[str, str, str]]:
        memory.append("a", [message(text) for text in texts])
        memory.settle("a")
        rows = [row for row in memory.list("a", "facts")["items"] if row["status"] == "active"]
        return {(row["subject"], row["predicate"], row["object"]) for row in rows if row["type"] == "fact"}

    return facts


def stated(
    predicate: str, object: str, *, subject: str = "Ann", speaker: str = "Ann", kind: str | None = None
) -> PriorStatement:
    return PriorStatement(
        session_id=None,
        speaker=speaker,
        subject=subject,
        predicate=predicate,
        object=object,
        kind=kind,
        is_preference=not predicate,
    )


def test_a_new_number_stands_in_place_of_the_old_one() -> None:
    before = [stated("takes", "sertraline 50 mg"), stated("lives in", "Oslo")]
    assert find_changes("The doctor raised the sertraline to 100 mg", "Ann", before) == [
        ("endings", {"subject": "Ann", "object": "sertraline 50 mg", "predicates": ["takes"]}),
        (
            "facts",
            {
                "subject": "Ann",
                "predicate": "takes",
                "object": "sertraline 100 mg",
                "confidence": 0.85,
                "source_type": "observed",
            },
        ),
    ]


@MISSED
def test_a_sentence_that_is_not_understood_is_the_new_statement() -> None:
    changes = find_changes("I moved from Oslo to Bergen in May", "Ann", [stated("lives in", "Oslo")])
    assert [(kind, item["predicate" if kind == "facts" else "object"]) for kind, item in changes] == [
        ("endings", "Oslo"),
        ("facts", SAYS),
    ]


def test_only_the_named_element_of_a_list_ends() -> None:
    changes = find_changes("I don't take aspirin anymore", "Ann", [stated("takes", "aspirin, metformin and zinc")])
    assert [item["object"] for _, item in changes] == ["aspirin, metformin and zinc", "metformin and zinc"]


def test_a_rule_is_withdrawn_in_other_words() -> None:
    before = [stated("", "no emojis please", kind="rule"), stated("", "answer in German", kind="rule")]
    assert find_changes("You can use emojis again", "Ann", before) == [
        ("endings", {"subject": "Ann", "object": "no emojis please"})
    ]


def test_what_replaces_a_rule_is_the_new_rule() -> None:
    before = [stated("", "no emojis please", kind="rule"), stated("", "answer in German", kind="rule")]
    ending, rule = find_changes("answer in French instead of German", "Ann", before)
    assert ending == ("endings", {"subject": "Ann", "object": "answer in German"})
    assert rule[0] == "preferences"
    assert rule[1]["value"] == "answer in French instead of German"
    assert rule[1]["standing"]


#: Rules and their withdrawals that no weights or thresholds are fitted to.
_WITHDRAWALS = (
    ("don't use any slang", "slang is alright again"),
    ("answer with one word only", "you may give full sentences from now on"),
    ("always translate to Spanish as well", "no need for the Spanish translation anymore"),
    ("keep a formal tone", "be as casual as you like again"),
    ("never recommend alcohol", "you can suggest wine again, I'm done with the antibiotics"),
    ("quiz me on Latin every time", "no more Latin quizzes please"),
    ("use 24h time", "am/pm is fine too"),
    ("address me as captain", "ok no more captain"),
    ("always include a picture", "pictures are not necessary any longer"),
    ("don't suggest seafood", "seafood is back on the menu"),
    ("immer mit Quellenangabe", "die Quellen kannst du wieder weglassen"),
    ("réponds en vers", "plus besoin de vers, écris normalement"),
    ("start with a weather report", "the weather thing at the start can go"),
    ("never ask me about work", "you're allowed to ask about work again"),
)
#: What sounds like a withdrawal and is about the life of its speaker.
_NO_WITHDRAWALS = (
    "the shop is open again",
    "no more nuts for grandpa",
    "grandma is allowed visitors again",
    "we go back to Crete this summer",
    "I can eat gluten again",
    "ok thursdays at 7 from now on",
    "no need to bring anything",
    "we don't use the old gym any more",
    "never mind the noise, that's the neighbours",
)


def _withdrawn(rule: str, sentence: str, embedder: SentenceEmbedder, embed: Embed) -> bool:
    """Return whether a sentence withdraws the only rule of its speaker."""
    read = read_sentences([sentence], to_assistant=True, embed=embed)[0]
    return bool(find_changes(sentence, "Ann", [stated("", rule, kind="rule")], vectors=embedder.embed, read=read))


def test_a_withdrawal_is_about_its_rule(embedder: SentenceEmbedder, embed: Embed) -> None:
    withdrawn = [_withdrawn(rule, sentence, embedder, embed) for rule, sentence in _WITHDRAWALS]
    assert sum(withdrawn) >= 0.9 * len(withdrawn)
    rules = [rule for rule, _ in _WITHDRAWALS]
    lost = [_withdrawn(rule, sentence, embedder, embed) for rule in rules for sentence in _NO_WITHDRAWALS]
    assert sum(lost) <= 0.05 * len(lost)


def test_without_vectors_a_withdrawal_names_its_rule() -> None:
    rules = [stated("", rule, kind="rule") for rule in ("no emojis please", "answer in German")]
    assert find_changes("You are free to write as you like", "Ann", rules) == []
    [(kind, item)] = find_changes("No German any more please", "Ann", rules)
    assert (kind, item["object"]) == ("endings", "answer in German")


def test_what_is_not_withdrawn_of_a_rule_stays(facts: Facts, memory: Recollect) -> None:
    facts("always use tabs not spaces in code for me, and never add comments")
    facts("actually comments are fine now, we got a new linter")
    rules = {row["value"]: row["status"] for row in memory.list("a", "preferences")["items"]}
    assert rules == {
        "always use tabs not spaces in code for me, and never add comments": "ended",
        "always use tabs not spaces in code for me": "active",
    }


@pytest.mark.parametrize(
    "sentence",
    ["My sister sold her Vespa", "I sold the sofa", "I almost sold the Vespa", "What if I sold the Vespa", "Forget it"],
)
def test_what_another_person_does_or_nobody_did_changes_nothing(sentence: str) -> None:
    assert find_changes(sentence, "Ann", [stated("owns", "a red Vespa"), stated("works at", "Siemens")]) == []


def test_statements_of_another_speaker_stand() -> None:
    assert find_changes("I sold the Vespa", "Ben", [stated("owns", "a red Vespa")]) == []


@pytest.mark.parametrize(
    ("before", "change", "old", "new"),
    [
        pytest.param(
            "I live in Berlin",
            "I moved from Berlin to Munich in May",
            "Berlin",
            "I moved from Berlin to Munich in May",
            marks=MISSED,
        ),
    ],
)
def test_what_replaces_something_takes_its_place(facts: Facts, before: str, change: str, old: str, new: str) -> None:
    facts(before)
    objects = {object for _, _, object in facts(change)}
    assert old not in objects
    assert any(object == new or object in new for object in objects)


@pytest.mark.parametrize(
    "sentence", ["if I moved from Oslo to Bergen, I'd save money", "we might move from Oslo to Bergen"]
)
def test_a_replacement_that_is_only_considered_changes_nothing(facts: Facts, sentence: str) -> None:
    assert ("user", "lives in", "Oslo") in facts("I live in Oslo", sentence)


def test_a_replacement_of_another_person_changes_nothing(facts: Facts) -> None:
    assert ("user", "lives in", "Oslo") in facts("I live in Oslo", "Anna moved from Oslo to Bergen")


def test_a_denial_is_not_replaced(facts: Facts) -> None:
    assert ("user", "does not eat", "meat") in facts("I don't eat meat", "we moved from meat to fish")
