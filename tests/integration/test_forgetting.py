"""What a user asks to forget in a conversation is never recalled again, and all else stays."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from support.events import Event, message

from recollect import Recollect
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.settings import load_settings
from recollect.jobs.forgetting.forget_model import encoders_of
from recollect.projections.embeddings.embedder import SentenceEmbedder

QUERIES = ("How much do I earn?", "What do you know about me?", "Tell me everything.", "72,000", "Good morning!")


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


def said(text: str, name: str = "Ann", session: str = "old", **fields: Any) -> Event:
    return message(text, name=name, session_id=session, **fields)


def tell(memory: Recollect) -> None:
    memory.append(
        "a",
        [
            said("My friend Paul lives in Rome."),
            said("My salary is 72,000 euros a year.", id="salary", occurred_at="2026-01-01T10:00:00Z"),
            message("Noted, your salary is 72,000.", role="assistant", session_id="old", id="echo"),
            said("I am allergic to kiwi."),
            said("My brother earns 31,000 euros a year."),
            said("Paul has a dog called Rex.", id="rex"),
        ],
    )
    memory.settle("a")


def turn(memory: Recollect, text: str, name: str = "Ann", **fields: Any) -> RetrieveResult:
    _, result = memory.append_and_retrieve("a", said(text, name, "new", **fields))
    assert result is not None
    return result


def shown(memory: Recollect) -> str:
    """Return all that a model or a list shows."""
    contexts = [memory.retrieve("a", query, gate=False, limit=50).context for query in QUERIES]
    contexts += [memory.retrieve("a", query, mode="passive", session_id="next").context for query in QUERIES]
    contexts.append(memory.retrieve("a", "", mode="passive", session_id="start", gate=False).context)
    names = ("episodes", "sessions", "facts", "preferences", "relationships", "procedures", "entities", "dates")
    lists = [str(memory.list("a", name)["items"]) for name in names]
    return "\n".join([*contexts, *lists])


@pytest.mark.parametrize(
    "request_",
    [
        "Please forget my salary.",
        "forget my salary",
        "Can you delete my salary from your memory?",
        "I don't want you to remember my salary.",
        "Forget that I told you my salary, please.",
        "My salary: please forget that.",
        "By the way, I like tea. Please forget everything I said about my salary.",
    ],
)
def test_what_a_user_asks_to_forget_is_never_shown_again(memory: Recollect, request_: str) -> None:
    tell(memory)
    result = turn(memory, request_)
    assert {"salary", "echo"} <= {item["id"] for item in result.forgotten}
    assert "72,000" not in result.context
    assert "It is forgotten" in result.context
    for _ in range(2):
        everything = shown(memory)
        assert "72,000" not in everything
        assert "no longer true" not in everything
        assert all(kept in everything for kept in ("kiwi", "31,000", "Rome"))
        memory.settle("a")
    check = memory.check("a")
    assert check.live_digest == check.replayed_digest


def test_an_append_says_what_was_forgotten_for_it(memory: Recollect) -> None:
    tell(memory)
    asking, other = memory.append("a", [said("Please forget my salary."), said("The tram was late.")])
    assert {"salary", "echo"} <= {*asking.forgotten}
    assert other.forgotten == ()


def test_all_of_a_person_is_forgotten(memory: Recollect) -> None:
    tell(memory)
    turn(memory, "delete everything about Paul")
    memory.settle("a")
    everything = shown(memory)
    assert not any(word in everything for word in ("Paul", "Rex", "Rome"))
    assert "72,000" in everything


def test_a_name_takes_along_what_goes_on_about_the_person(memory: Recollect) -> None:
    memory.append("a", [said("I met Luca at the lake."), said("he still has my keys"), said("The exam is on Friday.")])
    memory.append("a", message("It is good that Luca makes you happy.", role="assistant", session_id="old"))
    turn(memory, "forget Luca please")
    memory.settle("a")
    everything = shown(memory)
    assert not any(word in everything for word in ("Luca", "keys"))
    assert "exam" in everything


def test_a_name_takes_along_what_goes_on_with_other_names_after_the_pronoun(memory: Recollect) -> None:
    memory.append(
        "a", [said("I had a date with a baker called Tobias."), said("he lives in Hull and has a dog, Muffin")]
    )
    memory.append("a", [said("My daughter Celine lives in Bath with her partner Dom."), said("she brings lemon cake")])
    turn(memory, "delete everything about Tobias")
    turn(memory, "please forget Dom")
    memory.settle("a")
    everything = shown(memory)
    assert not any(word in everything for word in ("Tobias", "Hull", "Muffin", "Dom"))
    assert "lemon cake" in everything


def test_a_person_who_is_no_longer_what_they_were_is_forgotten_with_the_description(memory: Recollect) -> None:
    for text in ("My boyfriend Tom is a chef.", "Tom and I broke up.", "My boyfriend is Max now."):
        memory.append("a", said(text))
        memory.settle("a")
    turn(memory, "Please forget everything about Tom.")
    memory.settle("a")
    everything = shown(memory)
    assert "Tom" not in everything
    assert "Max" in everything


def test_the_description_of_a_person_goes_with_the_message_that_states_it(memory: Recollect) -> None:
    memory.append("a", [said("My wife Carla is late.", id="wife"), said("Carla called at noon.")])
    memory.settle("a")
    assert "Ann's wife" in shown(memory)
    forgotten = memory.forget("a", "wife")
    assert "Ann's wife" not in shown(memory)
    memory.undo("a", forgotten["event_id"])
    assert "Ann's wife" in shown(memory)
    memory.forget("a", "wife")
    memory.append("a", said("My wife Carla is here."))
    memory.settle("a")
    assert "Ann's wife" in shown(memory)


def test_a_pronoun_means_the_person_of_the_sentence_before(memory: Recollect) -> None:
    tell(memory)
    turn(memory, "Paul moved away. Please forget everything about him.")
    memory.settle("a")
    everything = shown(memory)
    assert not any(word in everything for word in ("Rex", "Rome"))
    assert "72,000" in everything


def test_what_a_request_keeps_stays(memory: Recollect) -> None:
    tell(memory)
    result = turn(memory, "Forget my salary but keep the kiwi.")
    assert {item["id"] for item in result.forgotten} >= {"salary", "echo"}
    everything = shown(memory)
    assert "72,000" not in everything
    assert "allergic to kiwi" in everything


def test_both_things_of_a_request_are_forgotten(memory: Recollect) -> None:
    tell(memory)
    turn(memory, "Please forget my salary and the kiwi.")
    memory.settle("a")
    everything = shown(memory)
    assert not any(word in everything for word in ("72,000", "kiwi"))
    assert "31,000" in everything


@pytest.mark.parametrize("is_one_append", [True, False])
def test_an_answer_that_repeats_what_is_forgotten_is_forgotten_too(memory: Recollect, *, is_one_append: bool) -> None:
    tell(memory)
    answer = message("Okay, I'll forget your salary of 72,000.", role="assistant", session_id="new", id="answer")
    events = [message("Good morning!", role="assistant"), said("Please forget my salary.", session="new"), answer]
    for appended in [events] if is_one_append else [[event] for event in events]:
        memory.append("a", appended)
    memory.append("a", message("You have a salary review on Friday.", role="assistant", session_id="new", id="other"))
    memory.settle("a")
    forgotten = {item["id"] for item in memory.list("a", "forgotten")["items"]}
    assert "answer" in forgotten
    assert "other" not in forgotten
    assert "72,000" not in shown(memory)


def test_what_was_just_said_is_the_message_before_in_the_session(memory: Recollect) -> None:
    tell(memory)
    turn(memory, "I was fired from the mill.", id="fired")
    assert {item["id"] for item in turn(memory, "Forget what I just said.").forgotten} >= {"fired"}
    assert "mill" not in shown(memory)


def test_a_statement_is_taken_back_in_its_own_message(memory: Recollect) -> None:
    tell(memory)
    result = turn(memory, "The code of my safe is 90-14-66. Please delete that from your memory.", id="taken back")
    assert {item["id"] for item in result.forgotten} == {"taken back"}
    assert "90-14-66" not in shown(memory)
    assert "72,000" in shown(memory)


def test_other_news_of_a_message_that_takes_something_back_stays(memory: Recollect) -> None:
    tell(memory)
    said = "The flat in Totterdown costs 1100 a month. My ex lives two doors down. Actually drop that bit about the ex."
    assert {item["id"] for item in turn(memory, said, id="flat").forgotten} == {"flat"}
    assert "two doors" not in shown(memory)
    assert "1100 a month" in shown(memory)


def test_a_request_names_what_its_own_message_says_before_it(memory: Recollect) -> None:
    tell(memory)
    said = "The padlock on the shed is a Squire and Ben has the spare key. Actually nah, forget the padlock."
    assert {item["id"] for item in turn(memory, said, id="named").forgotten} == {"named"}
    assert "Squire" not in shown(memory)
    assert "72,000" in shown(memory)


@pytest.mark.parametrize(
    "text",
    [
        "Don't forget my salary review on Friday.",
        "I always forget my keys.",
        "Forget it, let's talk about pizza.",
        "Delete line 3 of this code.",
        "I deleted my salary spreadsheet.",
        "Please remove my salary from the form.",
        'Translate into French: "Forget my salary."',
        "Did you forget my salary?",
        "Remember to forget nothing.",
    ],
)
def test_a_sentence_that_asks_for_nothing_forgets_nothing(memory: Recollect, text: str) -> None:
    tell(memory)
    result = turn(memory, text)
    assert result.forgotten == ()
    memory.settle("a")
    assert memory.list("a", "forgotten")["items"] == []
    assert all(kept in shown(memory) for kept in ("72,000", "kiwi", "31,000", "Rome", "Rex"))


def test_an_unclear_request_forgets_nothing_and_says_so(memory: Recollect) -> None:
    tell(memory)
    result = turn(memory, "Please forget my blood type.")
    assert result.forgotten == ()
    assert "nothing was forgotten" in result.context
    result = turn(memory, "Please forget my kiwi allergy problem.")
    assert result.forgotten == ()
    assert any("kiwi" in candidate["text"] for candidate in result.forget_candidates)


def test_the_candidates_of_an_unclear_request_are_own_messages(memory: Recollect) -> None:
    tell(memory)
    memory.append("a", said("My kiwi allergy is bad.", name="Bob", id="bob"))
    result = turn(memory, "Please forget my kiwi allergy problem.")
    assert [item["text"] for item in result.forget_candidates] == ["I am allergic to kiwi."]


def test_a_request_goes_with_what_says_nothing_worth_keeping(memory: Recollect) -> None:
    tell(memory)
    result = turn(memory, "Please forget what I told you about my salary. It is private to him.", id="request")
    assert {item["id"] for item in result.forgotten} >= {"salary", "request"}
    tell_more = "Please forget the kiwi. My sister moved to Turin with three cats."
    result = turn(memory, tell_more, id="with news")
    assert result.forgotten
    assert "Turin with three cats" in memory.retrieve("a", "Where does my sister live?").context


def test_a_request_is_undecided_while_the_models_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine they are loaded before the second message.
    def not_ready(embedder: SentenceEmbedder, seconds: float) -> bool:
        del embedder, seconds
        return False

    monkeypatch.setattr(SentenceEmbedder, "wait_ready", not_ready)
    with Recollect(settings=load_settings(data=tmp_path), workers=False) as memory:
        memory.append("a", said("They pay me 72,000 now."))
        result = turn(memory, "Please forget what I earn.")
        assert memory.parts.vectors.embedder.state in ("loading", "ready")
        assert result.forgotten == ()
        assert "not decided yet" in result.context
        assert "nothing was forgotten" not in result.context


def test_nobody_forgets_for_another_speaker(memory: Recollect) -> None:
    tell(memory)
    for text in ("Forget Ann's salary.", "Forget everything about Ann.", "Please forget my salary."):
        forgotten = [item["id"] for item in turn(memory, text, name="Mallory").forgotten]
        assert not {"salary", "echo", "rex", "Paul", "Ann"} & set(forgotten)
    memory.settle("a")
    assert "72,000" in shown(memory)


def test_the_assistant_and_tools_forget_nothing(memory: Recollect) -> None:
    tell(memory)
    for role in ("assistant", "tool:search", "system"):
        memory.append("a", message("Forget my salary. Forget what the user earns.", role=role, session_id="old"))
    memory.settle("a")
    assert memory.list("a", "forgotten")["items"] == []


def test_an_undo_brings_back_all_that_a_request_forgot(memory: Recollect) -> None:
    tell(memory)
    before = memory.list("a", "facts")["items"]
    turn(memory, "Please forget my salary.", id="request")
    items = memory.list("a", "forgotten")["items"]
    assert {item["id"] for item in items} >= {"salary", "echo", "request"}
    assert {item["request_id"] for item in items} == {"request"}
    assert "My salary is 72,000 euros a year." in [item["text"] for item in items]
    memory.undo("a", "request")
    assert [item["id"] for item in memory.list("a", "forgotten")["items"]] == ["request"]
    assert memory.list("a", "facts")["items"] == before
    assert "72,000" in memory.retrieve("a", "What is my salary?").context
    check = memory.check("a")
    assert check.live_digest == check.replayed_digest


def test_an_undo_of_a_request_brings_back_its_entities_and_does_not_read_it(memory: Recollect) -> None:
    memory.append(
        "a", [said("My boss Helena is super chill."), said("I hate coriander, please never put it in recipes.")]
    )
    memory.settle("a")
    names = {item["name"] for item in memory.list("a", "entities")["items"]}
    assert "Helena" in names
    rules = [(item["value"], item["status"]) for item in memory.list("a", "preferences")["items"]]
    turn(memory, "Please forget Helena.", id="boss")
    turn(memory, "Please forget the coriander, I eat it now.", id="herb")
    memory.settle("a")
    assert "Helena" not in {item["name"] for item in memory.list("a", "entities")["items"]}
    assert memory.graph("a", "Helena")["entity"] is None
    for request_id in ("boss", "herb"):
        memory.undo("a", request_id)
    memory.settle("a")
    assert {item["name"] for item in memory.list("a", "entities")["items"]} == names
    assert [(item["value"], item["status"]) for item in memory.list("a", "preferences")["items"]] == rules
    assert "Helena" in memory.retrieve("a", "Who is my boss?").context
    assert memory.graph("a", "Helena")["entity"] == "Helena"
    check = memory.check("a")
    assert check.live_digest == check.replayed_digest


def test_an_import_is_forgotten_by_the_job_and_once(memory: Recollect) -> None:
    tell(memory)
    events = [said("Please forget my salary.", id="request")]
    memory.append("a", events)
    forgotten = memory.list("a", "forgotten")["items"]
    assert len(forgotten) >= 3
    memory.append("a", events)
    memory.settle("a")
    assert memory.list("a", "forgotten")["items"] == forgotten


def test_what_is_forgotten_stays_out_of_compacted_episodes(memory: Recollect) -> None:
    tell(memory)
    memory.compact("a", now="2026-05-01T00:00:00Z")
    assert "72,000" in shown(memory)
    turn(memory, "Please forget my salary.")
    memory.compact("a")
    assert "72,000" not in shown(memory)
    assert "kiwi" in memory.retrieve("a", "What am I allergic to?").context


@pytest.mark.parametrize("said_in", ["Kirsty", "kirsty"])
def test_a_name_and_a_thing_are_not_all_that_was_said_of_the_person(tmp_path: Path, said_in: str) -> None:
    with Recollect(tmp_path, workers=False) as memory:
        memory.parts.vectors.embedder.start()
        assert memory.parts.vectors.embedder.wait_ready(300)
        assert encoders_of(memory.parts.vectors.embedder, 60) is not None
        texts = {
            "me": f"hiya, im Jo, i run a dog grooming van in Leith. my sister {said_in} got me onto this",
            "landlord": f"{said_in} is having trouble with her landlord, he wants 200 more",
            "christmas": f"christmas: {said_in} has the kids til noon, then they come to mine",
        }
        memory.append("a", [said(text, name="Jo", id=id) for id, text in texts.items()])
        memory.settle("a")
        result = turn(memory, f"forget what i said about {said_in} and her landlord", name="Jo", id="request")
        assert {item["id"] for item in result.forgotten} == {"landlord", "request"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("request_", "forgotten", "asked_back"),
    [
        ("lose what I earn", "72,000", ""),
        ("That nut thing can go, please.", "peanut", ""),
        ("I'd rather you didn't hold on to where I live.", None, "Mill Lane"),
        ("I always forget where I live.", None, ""),
        ("Delete the part about Bob's house.", None, ""),
    ],
)
def test_other_words_name_what_was_said(tmp_path: Path, request_: str, forgotten: str | None, asked_back: str) -> None:
    said_before = {"72,000": "They pay me 72,000 now.", "peanut": "One peanut and my throat closes."}
    said_before |= {"Mill Lane": "We moved to 4 Mill Lane in May.", "bees": "The bees are early this year."}
    with Recollect(settings=load_settings(data=tmp_path), workers=False) as memory:
        memory.append(
            "a", [said("I have a house in Bath.", name="Bob"), *(said(text) for text in said_before.values())]
        )
        memory.parts.vectors.embedder.start()
        assert memory.parts.vectors.embedder.wait_ready(60)
        # While the encoder loads, the request is left to a worker, and there is none here.
        assert encoders_of(memory.parts.vectors.embedder, 60) is not None
        result = turn(memory, request_)
        everything = shown(memory)
    assert [value for value in said_before if value not in everything] == [forgotten] * (forgotten is not None)
    assert asked_back in str(result.forget_candidates[:1])


def test_a_request_is_never_shown_and_the_rest_of_its_message_stays(memory: Recollect) -> None:
    tell(memory)
    text = "Please forget everything I said about my salary. My sister Mara moved to Leeds in May."
    turn(memory, text, id="request")
    memory.settle("a")
    assert "salary" not in shown(memory)
    assert "Mara moved to Leeds" in memory.retrieve("a", "Where does my sister live?").context
    assert "My sister Mara moved to Leeds in May." in [item["text"] for item in memory.list("a", "episodes")["items"]]
    memory.undo("a", "request")
    memory.settle("a")
    assert "72,000" in memory.retrieve("a", "What is my salary?").context
    assert "forget" not in shown(memory)
    assert memory.check("a").is_equal


def test_a_message_with_turns_that_says_more_than_a_request_stays(memory: Recollect) -> None:
    tell(memory)
    turns = [
        {"role": "user", "name": "Ann", "text": "Please forget my salary. My sister Mara moved to Leeds in May."},
        {"role": "assistant", "text": "Done. How is Mara?"},
        {"role": "user", "name": "Ann", "text": "Please forget my salary. She is fine and works at the zoo."},
    ]
    event = {"type": "message.added", "id": "request", "session_id": "new"}
    memory.append("a", event | {"payload": {"role": "user", "name": "Ann", "turns": turns}})
    memory.settle("a")
    assert "72,000" not in shown(memory)
    assert "How is Mara?" in shown(memory)


def test_the_rest_of_a_request_is_erased_with_it(memory: Recollect) -> None:
    tell(memory)
    turn(memory, "Please forget my salary. My sister Mara moved to Leeds in May.", id="request")
    memory.erase("a", event_ids=["request"])
    memory.settle("a")
    assert "Leeds" not in shown(memory)
