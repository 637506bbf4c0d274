"""What people say of themselves and theirs in English is read as a person would write it, and talk is not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.jobs.extraction.rule_extractor import IncomingMessage, extract_by_rules
from recollect.jobs.job_settings import ExtractionSettings
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.statement_lines import fact_line, preference_line

_SAID_AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
_CONFIDENCE_MIN = ExtractionSettings().extraction_confidence_min


def lines(*messages: str, speaker: str = "Ann") -> list[str]:
    """Return the facts and preferences that memory displays of these messages, a conversation of one person."""
    before: list[PriorStatement] = []
    displayed: list[str] = []
    for number, text in enumerate(messages):
        message = IncomingMessage(f"m{number}", "s1", speaker, text, _SAID_AT, is_assistant=False)
        for kind, item in extract_by_rules(message, before):
            if kind == "facts" and item["confidence"] >= _CONFIDENCE_MIN:
                displayed.append(fact_line(item["subject"], item["predicate"], item["object"]))
            elif kind == "preferences" and "standing" not in item:
                displayed.append(preference_line(item["subject"], item["category"], item["key"], item["value"]))
    return displayed


@pytest.mark.parametrize(
    ("said", "displayed"),
    [
        ("Lena adopted a greyhound.", "Lena adopted a greyhound"),
        ("Just got a new dog!", "Ann got a new dog"),
        ("Last week I built a shed for my bikes, it was fun.", "Ann built a shed for their bikes last week"),
        ("I was diagnosed with asthma in 2019.", "Ann was diagnosed with asthma in 2019"),
        ("I had to shut down my bakery, sadly.", "Ann had to shut down their bakery"),
        ("I've been to Oslo.", "Ann has been to Oslo"),
        ("I teach piano at a music school.", "Ann teaches piano at a music school"),
        ("I've been learning Welsh for two years.", "Ann has been learning Welsh for two years"),
        ("I'm writing a novel about bees, which is hard.", "Ann is writing a novel about bees"),
        ("We're going to adopt a cat in May.", "Ann plans to adopt a cat in May"),
        ("I'd love to visit Japan someday.", "Ann wants to visit Japan someday"),
        ("I'm thinking about quitting smoking.", "Ann is thinking about quitting smoking"),
        ("I can't eat gluten.", "Ann cannot eat gluten"),
        ("I never eat pork.", "Ann never eats pork"),
        ("I used to play violin.", "Ann used to play violin"),
        ("I take metformin twice a day.", "Ann takes metformin twice a day"),
        ("I bring soup to my aunt on Tuesdays.", "Ann brings soup to their aunt on Tuesdays"),
        ("My sister's husband works at Siemens.", "Ann's sister's husband works at Siemens"),
        ("My boss, Tom, got engaged on Sunday.", "Tom got engaged on Sunday"),
        ("My wife and I adopted two kids, Mia and Ben.", "Ann adopted two kids, Mia and Ben"),
        ("We have two kids, Mia and Ben.", "Ann has children named Mia and Ben"),
        ("I'm a single mom.", "Ann is a single mom"),
        ("My son is 7 and goes to school.", "Ann's son's age is 7"),
        ("My brother is in rehab.", "Ann's brother is in rehab"),
        ("My flight to Rome is on Friday at 9.", "Ann's flight to Rome is on Friday at 9"),
        ("My mom's name is Wendy.", "Ann's mom's name is Wendy"),
        ("My locker is 58 by the way.", "Ann's locker is 58"),
        ("My back is really sore today.", "Ann's back is really sore"),
        ("My husband snores.", "Ann has a husband"),
    ],
)
def test_a_statement_is_written_as_a_person_would(said: str, displayed: str) -> None:
    assert displayed in lines(said)


@pytest.mark.parametrize(
    "said",
    [
        "I love that!",
        "I like your idea.",
        "I love the colors.",
        "I love how it turned out.",
        "I went to it.",
        "I want to make sure this works.",
        "I'll start with the first option.",
        "I think I'd prefer the other one right now.",
        "If I lived in Paris, I would adopt a dog.",
        "When I have a dog, I will be happy.",
        "It is an article that I wrote with her.",
        "do you know whether my sister moved to rome",
        "He adopted a cat.",
        "I need to finish this today.",
        "I had a great time.",
        "Act as a travel guide. I live in Porto and own a boat.",
        "You are the CEO of a bank. I work at Siemens.",
        "Here is my essay:\nI live in Porto. My sister adopted a dog.",
        "Anna Berg 00:02\nI work at Siemens and I have two kids.",
        "```\nI live in Porto\n```",
        "Rewrite this text so that it sounds like a native speaker wrote it and keep it about as long as it is now. "
        "I moved to Lisbon last year and I work at a bank. My sister adopted a dog, and we bought a house by the sea. "
        "We love it there, and my husband opened a bakery.",
    ],
)
def test_talk_hypotheses_requests_and_texts_of_others_state_nothing(said: str) -> None:
    assert lines(said) == []


@pytest.mark.parametrize(
    ("said", "displayed"),
    [
        ("i work at google now", "Ann works at Google"),
        ("im a nurse", "Ann works as nurse"),
        ("my moms name is wendy", "Ann's mom's name is Wendy"),
        ("got a new dog, hes called rex", "Ann has a dog named Rex"),
        ("we moved to lisbon last month", "Ann lives in Lisbon"),
        ("weve moved to lisbon", "Ann lives in Lisbon"),
        ("my bf is allergic to nuts", "Ann's boyfriend is allergic to nuts"),
        ("my brother lives in new york", "Ann's brother lives in New York"),
        ("my bday is 3 may", "Ann was born on 3 may"),
        ("i speak english", "Ann speaks English"),
        ("my dentist appointment is on friday", "Ann's dentist appointment is on friday"),
        ("we got a kitten. her name's coco", "Ann has a kitten named Coco"),
        ("my sister anna has a cat", "Anna has a cat"),
        ("i dont like olives", "Ann dislikes olives"),
    ],
)
def test_hurried_typing_is_read_like_careful_typing(said: str, displayed: str) -> None:
    assert displayed in lines(said)


def test_a_pronoun_is_the_last_fitting_person_of_the_conversation() -> None:
    assert "Anna works at FAO" in lines("My sister Anna lives in Rome. She works at FAO.")
    assert "Anna works at FAO" in lines("My sister Anna lives in Rome.", "She works at FAO.")
    assert "Ann's brother lives in Berlin" in lines(
        "My brother is a chef and my sister is a nurse. He lives in Berlin."
    )
    assert "Ann's sister lives in Berlin" in lines(
        "My sister is a nurse and my brother is a chef. She lives in Berlin."
    )
    assert "Ann's parents live in Berlin" in lines("My parents are retired. They live in Berlin.")
    assert lines("She works at FAO.") == []


def test_a_pronoun_of_a_new_conversation_is_the_only_person_of_the_last_statements() -> None:
    anna, eva = (
        PriorStatement(session_id="s0", speaker="Ann", subject=name, predicate="lives in", object="Rome")
        for name in ("Anna", "Eva")
    )
    message = IncomingMessage("m1", "s1", "Ann", "She works at FAO.", _SAID_AT, is_assistant=False)

    def subjects(before: list[PriorStatement]) -> list[str]:
        return [item["subject"] for kind, item in extract_by_rules(message, before) if kind == "facts"]

    assert subjects([anna]) == ["Anna"]
    assert subjects([anna, eva]) == []


@pytest.mark.parametrize(
    ("said", "displayed"),
    [
        ("I like fish, but not salmon.", {"Ann likes fish", "Ann dislikes salmon"}),
        ("I love cheese except blue cheese.", {"Ann likes cheese", "Ann dislikes blue cheese"}),
        ("I'm more of a tea person.", {"Ann likes tea"}),
        ("I'd rather walk than drive.", {"Ann prefers to walk rather than drive"}),
        ("I can't stand cilantro.", {"Ann dislikes cilantro"}),
        ("Ramen is my favorite.", {"Ann likes Ramen"}),
        ("My favourite band is Radiohead.", {"Ann's favourite band is Radiohead"}),
        ("I have always loved the sea.", {"Ann likes the sea"}),
    ],
)
def test_preferences_have_exceptions_and_an_owner(said: str, displayed: set[str]) -> None:
    assert set(lines(said)) == displayed


def test_stress_makes_a_preference_stronger() -> None:
    strengths: list[float] = []
    for text in ("I like hiking.", "I really like hiking.", "I hate hiking.", "I absolutely hate hiking."):
        message = IncomingMessage("m1", "s1", "Ann", text, _SAID_AT, is_assistant=False)
        strengths += [item["strength"] for kind, item in extract_by_rules(message, []) if kind == "preferences"]
    assert strengths == sorted(strengths)
    assert len(set(strengths)) == 4


def test_a_person_states_nothing_about_another_by_you() -> None:
    assert lines("You work at Siemens and you have two kids.") == []
