"""What a turn of a conversation is given, in the same round trip that records it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.embedders import HashingEmbedder
from support.events import Event, message
from support.memory import Memory
from support.server import Server

from recollect import Recollect
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidEvent, InvalidInput, RecollectError
from recollect.events.validation import draft

# -- in Python --------------------------------------------------------------------------------------------------------

Turn = Callable[..., RetrieveResult]


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


@pytest.fixture
def turn(memory: Recollect) -> Turn:
    """Append a message to a session, and return the items of its context."""

    def turn(text: str, session_id: str = "now", **options: Any) -> RetrieveResult:
        _, result = memory.append_and_retrieve("a", message(text, session_id=session_id), **options)
        assert result is not None
        return result

    return turn


def stated(kind: str, **payload: Any) -> Event:
    return {"type": kind, "payload": payload}


REX = stated("entity.described", name="Rex", type="other", description="Bob's dog")


def test_one_call_records_a_message_and_answers_without_it(memory: Recollect) -> None:
    memory.append("a", message("the red sofa is from Porto", id="e1", session_id="old"))
    [recorded], result = memory.append_and_retrieve("a", message("where is the red sofa from?", session_id="now"))
    assert result is not None
    assert recorded.version == 2
    assert result.version == 2
    assert [item.id for item in result.items] == ["e1"]
    assert "where is the red sofa from?" not in result.context


def test_what_was_just_said_is_before_the_models_eyes_and_is_not_repeated(memory: Recollect, turn: Turn) -> None:
    memory.append("a", message("the red sofa was a gift", id="old", session_id="old"))
    turn("the red sofa is too large")
    found = {item.id for item in turn("the red sofa must go").items}
    assert found == {"old"}


def test_words_and_names_that_only_the_running_conversation_has_are_not_known(memory: Recollect, turn: Turn) -> None:
    memory.append("a", message("the red sofa was a gift", id="old", session_id="old"))
    turn("my Zebrano parser panics on the red sofa")
    [gate] = turn("the Zebrano parser panics on the sofa").explain()["gate"]
    assert 0 < gate["measures"]["known"] < 0.5
    assert gate["measures"]["named_entity"] == 0.0


def test_fillers_and_neighbours_do_not_come_along_in_a_turn(memory: Recollect, turn: Turn) -> None:
    memory.append(
        "a",
        [
            message("hi there!", id="filler", session_id="old"),
            message("the red sofa was a gift", id="sofa", session_id="old"),
            message("how nice", role="assistant", session_id="old"),
            message("our roof has a hole on the north side", id="roof", session_id="old"),
        ],
    )
    assert {"sofa", "roof"} <= {item.id for item in memory.retrieve("a", "where is the red sofa from?").items}
    turn("good morning")
    assert [item.id for item in turn("hi there, the red sofa is old").items] == ["sofa"]


def test_of_a_batch_the_last_message_of_the_user_is_asked_for(memory: Recollect) -> None:
    memory.append("a", [message("the sofa is red", id="sofa"), message("the bridge is long", id="bridge")])
    batch = [
        message("tell me about the sofa", session_id="now"),
        message("and which bridge is long?", session_id="now"),
        message("let me see the sofa", role="assistant", session_id="now"),
    ]
    recorded, result = memory.append_and_retrieve("a", batch)
    assert len(recorded) == 3
    assert result is not None
    assert result.items[0].id == "bridge"


@pytest.mark.parametrize(
    "body",
    [
        {"turns": [{"role": "user", "text": "the sofa"}, {"role": "user", "text": "which bridge is long?"}]},
        {"data": {"which": "bridge"}},
    ],
)
def test_of_turns_the_last_one_is_asked_for_and_of_data_its_json(memory: Recollect, body: dict[str, Any]) -> None:
    memory.append("a", [message("the sofa is red", id="sofa"), message("the bridge is long", id="bridge")])
    event = {"type": "message.added", "session_id": "now", "payload": {"role": "user", **body}}
    _, result = memory.append_and_retrieve("a", event)
    assert result is not None
    assert [item.id for item in result.items if "keyword" in item.ranks] == ["bridge"]


@pytest.mark.parametrize("event", [message("hello", role="assistant"), REX, message("x", role="tool:search")])
def test_what_no_user_said_is_recorded_and_answered_with_nothing(memory: Recollect, event: Event) -> None:
    recorded, result = memory.append_and_retrieve("a", event)
    assert len(recorded) == 1
    assert result is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("limit", 0), ("limit", "many"), ("format", "html"), ("as_of", 1), ("query", "another"), ("nonsense", 1)],
)
def test_a_bad_option_is_refused_by_name_before_anything_is_recorded(memory: Recollect, field: str, value: Any) -> None:
    for event in (message("hello"), message("hello", role="assistant")):
        with pytest.raises(InvalidInput) as refused:
            memory.append_and_retrieve("a", event, **{field: value})
        assert refused.value.field == field
    assert memory.events("a")["items"] == []


def test_what_append_refuses_is_refused_alike(memory: Recollect) -> None:
    with pytest.raises(InvalidEvent):
        memory.append_and_retrieve("a", message("hello", role="king"))
    with pytest.raises(RecollectError):
        memory.append_and_retrieve("a", message("hello"), expected_version=7)
    assert memory.events("a")["items"] == []


def test_the_same_message_again_is_a_duplicate_and_still_answered(memory: Recollect) -> None:
    memory.append("a", message("the red sofa is from Porto", id="e1", session_id="old"))
    asked = message("where is the red sofa from?", session_id="now", id="q")
    results = [memory.append_and_retrieve("a", asked) for _ in range(2)]
    assert [recorded[0].duplicate for recorded, _ in results] == [False, True]
    assert results[0][1] is not None
    assert results[1][1] is not None
    assert results[0][1].context == results[1][1].context != ""


# -- what sets it off -------------------------------------------------------------------------------------------------


def test_a_question_that_was_asked_before_is_no_memory_for_the_same_question(memory: Recollect, turn: Turn) -> None:
    asked = message("Where is the red sofa from?", id="asked", session_id="old")
    memory.append("a", [asked, message("the red sofa is from Porto", id="sofa", session_id="old")])
    assert [item.id for item in turn("where is the RED sofa from").items] == ["sofa"]
    found = memory.retrieve("a", "Where is the red sofa from?").items
    assert "asked" in {source for item in found for source in item.source_events}


def test_a_session_begins_with_what_the_last_sessions_were_about(memory: Recollect, turn: Turn) -> None:
    for number in range(5):
        session = f"s{number}"
        said = message(f"Tomorrow I paint room {number} of the old mill", id=f"e{number}", session_id=session)
        chatter = [message("ok!", session_id=session), message("Lovely!", role="assistant", session_id=session)]
        memory.append("a", [message("hello there", session_id=session), said, *chatter])
    first, second = turn("good morning"), turn("good morning again")
    assert (first.trigger, second.trigger) == ("session start", "message")
    assert [item.id for item in first.items] == ["e4", "e3", "e2"]
    assert "### Recent Sessions" in first.context
    assert "Lovely" not in first.context
    assert (second.items, second.context) == ((), "")


def test_a_session_is_told_by_the_summary_of_its_end(memory: Recollect, turn: Turn) -> None:
    memory.append("a", message("We looked at three boats in Porto", session_id="old"))
    memory.append("a", {"type": "session.ended", "session_id": "old", "payload": {"summary": "Ann wants a boat"}})
    assert "] summary: Ann wants a boat" in turn("good morning").context


def test_who_the_user_is_comes_before_other_facts_and_only_at_the_start(memory: Recollect, turn: Turn) -> None:
    facts = [
        stated("fact.stated", subject="Ann", predicate="visited", object=f"museum {number}") for number in range(20)
    ]
    home = stated("fact.stated", subject="Ann", predicate="lives in", object="Porto")
    task = stated("fact.stated", subject="Ann", predicate="must renew", object="her passport", type="task")
    memory.append("a", [message("hello", name="Ann", session_id="old"), home, task, *facts])
    greeting = turn("good morning")
    assert [item.text for item in greeting.items][:2] == ["Ann lives in Porto", "Ann must renew her passport"]
    assert len(greeting.items) == 10
    assert turn("and what a night it was").items == ()


def test_many_facts_leave_room_for_name_home_work_people_allergies_and_preferences(memory: Recollect) -> None:
    said = [("name is", "Anna"), ("lives in", "Porto"), ("works as", "nurse"), ("allergic to", "nuts")]
    said += [(predicate, f"{predicate} {n}") for predicate in ("speaks", "avoids", "has pet", "uses") for n in range(4)]
    facts = [stated("fact.stated", subject="user", predicate=predicate, object=object) for predicate, object in said]
    homes = [stated("fact.stated", subject=name, predicate="lives in", object="Graz") for name in ("Mia", "Leo")]
    wife = stated("relationship.stated", source="user", type="wife", target="Ida")
    units = stated("preference.stated", key="units", value="metric")
    memory.append("a", [message("Good morning."), *facts, *homes, wife, units])
    context = memory.retrieve("a", "", mode="passive").context
    for words in ("name is Anna", "lives in Porto", "works as nurse", "allergic to nuts", "wife is Ida", "metric"):
        assert words in context


def test_a_session_that_begins_with_a_matter_gets_who_the_user_is_and_no_other_facts(
    memory: Recollect, turn: Turn
) -> None:
    home = stated("fact.stated", subject="Ann", predicate="lives in", object="Porto")
    task = stated("fact.stated", subject="Ann", predicate="must renew", object="her passport", type="task")
    museum = stated("fact.stated", subject="Ann", predicate="visited", object="the museum")
    memory.append("a", [message("hello", name="Ann", session_id="old"), home, task, museum])
    first = turn("what a day it was")
    assert [item.text for item in first.items] == ["Ann lives in Porto", "Ann must renew her passport"]


@pytest.mark.parametrize(
    "text", ["thanks", "ok great", "👍", "cool", "Oh, same for me!", "yes", "Thanks, Ann! Take care!"]
)
@pytest.mark.parametrize("session", ["old", "new"])
def test_an_acknowledgement_gets_nothing_at_all(memory: Recollect, turn: Turn, text: str, session: str) -> None:
    memory.append("a", stated("preference.stated", key="tone", value="always answer in French", standing=True))
    memory.append("a", message("the sofa is cool and great, thanks to Ann", name="Ann", session_id="old"))
    result = turn(text, session)
    assert (result.items, result.context, result.tokens) == ((), "", 0)


def test_who_is_mentioned_is_told_of(memory: Recollect, turn: Turn) -> None:
    memory.append("a", REX)
    turn("hello")
    result = turn("I will be back soon, Rex is waiting")
    assert result.trigger == "entity mention"
    assert "Bob's dog" in result.context
    assert turn("it is late").trigger == "message"


def test_a_name_that_the_conversation_itself_brought_up_is_no_mention(memory: Recollect, turn: Turn) -> None:
    memory.append("a", message("I saw Dora on her boat", session_id="old"))
    assert turn("hello").trigger == "session start"
    assert turn("I met Eduardo at the harbour").trigger == "message"
    assert turn("the dog of Eduardo is old").trigger == "message"
    assert turn("is Dora back?").trigger == "entity mention"


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("do you remember the smell of the sea?", "remember"),
        ("I can still remember the smell of the sea", "message"),
        ("remember that my gate code is 4471", "message"),
        ("by the way, it is late", "topic change"),
    ],
)
def test_the_trigger_follows_from_what_the_message_wants(
    memory: Recollect, turn: Turn, text: str, trigger: str
) -> None:
    turn("hello")
    assert turn(text).trigger == trigger


def test_remembering_searches_deeper_and_says_more(memory: Recollect, turn: Turn) -> None:
    said = [message(f"sofa shop {number}: sofa number {number}00", session_id=f"s{number}") for number in range(30)]
    memory.append("a", said)
    turn("hello")
    plain, deeper = turn("sofa shop and number", limit=5), turn("remember when we saw sofa shop and number", limit=5)
    assert (plain.trigger, deeper.trigger) == ("message", "remember")
    assert len(plain.items) == 5
    assert len(deeper.items) == 10


def test_a_full_window_is_noticed_over_the_whole_session_and_gets_less(memory: Recollect, turn: Turn) -> None:
    memory.append(
        "a", [message(f"the sofa of shop {number} " + "is red " * 20, session_id="old") for number in range(9)]
    )
    memory.append("a", [message("one two three four five six", session_id="now") for _ in range(100)])
    open_window, full = (turn("the sofa of the shop", window_tokens=tokens) for tokens in (10_000, 500))
    assert (open_window.trigger, full.trigger) == ("message", "window full")
    small = turn("the sofa of the shop", budget_tokens=400, window_tokens=500)
    assert small.tokens <= 200


def test_turns_that_a_summary_stands_for_no_longer_fill_the_window(memory: Recollect, turn: Turn) -> None:
    memory.append("a", [message("one two three four five six", session_id="now") for _ in range(100)])
    assert turn("the sofa of the shop", window_tokens=500).trigger == "window full"
    memory.window("a", "now", budget_tokens=500)
    assert turn("the sofa of the shop", window_tokens=500).trigger == "message"


def test_another_topic_is_noticed_by_its_meaning(tmp_path: Path) -> None:
    embedder = HashingEmbedder()
    with Memory(tmp_path) as memory:
        memory.add([message("the red sofa stands near the window", session_id="now") for _ in range(4)])
        vectors = memory.vectors(embedder)
        vectors.embed_new("a")
        retriever = memory.retriever(vectors)
        triggers = [
            retriever.retrieve("a", RetrieveRequest(query=text, mode="passive", session_id="now")).trigger
            for text in (
                "the red sofa near the door",
                "please book flights to Reykjavik tomorrow",
                "ok, thanks!",
                "and how long?",
            )
        ]
    assert triggers == ["message", "topic change", "message", "message"]


# -- what always comes ------------------------------------------------------------------------------------------------


def test_the_profile_comes_with_every_turn_and_first(memory: Recollect, turn: Turn) -> None:
    preference = {"category": "communication", "key": "tone"}
    memory.append(
        "a",
        [
            stated("preference.stated", **preference, value="always answer in French", standing=True, strength=0.1),
            stated("preference.stated", key="units", value="metric", strength=0.9),
            stated("preference.stated", key="colour", value="a faint wish", strength=0.2),
            stated("fact.stated", subject="Ann", predicate="is allergic to", object="nuts") | {"id": "nuts"},
            stated("memory.pinned", memory_id="nuts"),
            message("the bridge is long", session_id="old"),
        ],
    )
    first, second = (
        [item.text for item in turn(text).items if "profile" in item.ranks] for text in ("hello", "what is 7 times 8?")
    )
    assert first == ["always answer in French", "Ann is allergic to nuts", "other.units: metric"]
    # What holds for every answer is repeated, since each turn has its own context.
    assert second == ["always answer in French", "Ann is allergic to nuts"]
    asked = memory.retrieve("a", "how long is the bridge?")
    assert [item.text for item in asked.items] == ["the bridge is long"]


def test_a_doubtful_instruction_that_is_neither_stated_nor_pinned_is_left_out(memory: Recollect, turn: Turn) -> None:
    read = {"standing": True, "source_type": "observed"}
    memory.append(
        "a",
        [
            stated("preference.stated", key="sure", value="write in Dutch", strength=0.9, **read),
            stated("preference.stated", key="doubtful", value="so date stands", strength=0.6, **read),
            stated("preference.stated", key="likely", value="no small talk", strength=0.75, **read),
            stated("preference.stated", key="pinned", value="no emojis", strength=0.6, **read) | {"id": "emojis"},
            stated("memory.pinned", memory_id="emojis"),
            stated("preference.stated", key="stated", value="call me Nan", strength=0.1, standing=True),
        ],
    )
    lines = turn("hello").context.splitlines()
    assert not any("so date stands" in line for line in lines)
    assert "- no small talk (perhaps an instruction)" in lines
    assert {"- write in Dutch", "- no emojis", "- call me Nan"} <= set(lines)


def test_a_profile_keeps_to_the_kinds_that_are_wanted(memory: Recollect, turn: Turn) -> None:
    memory.append("a", stated("preference.stated", key="tone", value="short", standing=True))
    assert len(turn("hello").items) == 1
    assert turn("hello", kinds={"episode"}).items == ()


def test_a_message_without_content_goes_on_with_the_topic_of_its_session(memory: Recollect, turn: Turn) -> None:
    memory.append("a", message("for the blue server: run the migration, then restart", id="how", session_id="old"))
    memory.append("a", [message("the cat sleeps", session_id="old"), message("it rains in Porto", session_id="old")])
    turn("please help me, I deploy the blue server with its migration today")
    result = turn("ok, next step?")
    assert result.explain()["understood"][0]["continued"]
    assert result.items[0].id == "how"


def test_what_is_known_of_the_conversation_so_far_stands_in_the_context(memory: Recollect, turn: Turn) -> None:
    turn("hello")
    observations = {"observations": ["Ann is in a hurry"], "source_events": ["e1"]}
    memory.parts.log.append(
        "a", [draft({"type": "observations.recorded", "session_id": "now", "payload": observations})]
    )
    assert "### Conversation So Far\n- Ann is in a hurry" in turn("go on").context
    assert "Ann is in a hurry" not in turn("go on", session_id="another").context


# -- over HTTP --------------------------------------------------------------------------------------------------------


@pytest.fixture
def http(server: Server) -> Generator[httpx.Client]:
    with httpx.Client(base_url=f"{server.base}/v1/namespaces", timeout=30) as client:
        yield client


def test_one_round_trip_answers_with_the_retrieval(http: httpx.Client) -> None:
    http.post("one/events", json=message("the red sofa is from Porto", id="e1", session_id="old"))
    question = message("where is the red sofa from?", id="q", session_id="now")
    answer = http.post("one/events?retrieve=true&limit=3&kinds=episode&kinds=fact&format=preamble", json=question)
    assert answer.status_code == 201
    found = answer.json()["retrieval"]
    assert [item["id"] for item in found["items"]] == ["e1"]
    assert found["trigger"] == "session start"
    assert "[Potentially relevant memories]" in found["context"] or "[Recent memories" in found["context"]
    assert http.get(f"one/traces/{found['trace_id']}").json()["query"] == "where is the red sofa from?"


def test_an_append_names_what_its_message_made_forgotten(http: httpx.Client) -> None:
    http.post("forgetting/events", json=message("My salary is 72,000 euros", name="Ann", id="salary"))
    asked = http.post("forgetting/events", json=message("Please forget my salary.", name="Ann")).json()
    assert "salary" in asked["events"][0]["forgotten"]
    said = http.post("forgetting/events", json=message("The tram was late", name="Ann")).json()
    assert "forgotten" not in said["events"][0]


def test_without_a_message_of_a_user_retrieval_is_null_and_unasked_it_is_not_there(http: httpx.Client) -> None:
    said = message("hello", role="assistant")
    assert http.post("two/events?retrieve=true", json=said).json()["retrieval"] is None
    for query in ("", "?retrieve=false"):
        assert "retrieval" not in http.post(f"two/events{query}", json=message("hello")).json()


def test_other_namespaces_come_along_when_they_are_named(http: httpx.Client) -> None:
    others = [message(text) for text in ("it rains", "the bridge is long", "tea is ready", "the cat sleeps")]
    http.post("team/events", json={"events": [message("the office sofa is green", id="t1"), *others]})
    http.post("club/events", json={"events": [message("the office sofa was grey", id="c1"), *others]})
    asked = message("which office sofa is green or grey?")
    found = http.post("me/events?retrieve=true&also=team&also=club", json=asked).json()["retrieval"]
    assert {(item["namespace"], item["id"]) for item in found["items"]} == {("team", "t1"), ("club", "c1")}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("retrieve=maybe", "retrieve"),
        ("retrieve=true&limit=1000", "limit"),
        ("retrieve=true&nonsense=1", "nonsense"),
        ("retrieve=true&also=../etc", "also.0"),
        ("retrieve=true&as_of=1", "as_of"),
        ("retrieve=true&kinds=cat", "kinds.0"),
    ],
)
def test_a_bad_parameter_is_refused_by_name_and_nothing_is_recorded(http: httpx.Client, query: str, field: str) -> None:
    answer = http.post(f"three/events?{query}", json=message("hello"))
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["field"] == field
    assert http.get("three/events").json()["items"] == []
