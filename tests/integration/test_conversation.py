"""Running conversations: windows that fit, observations, reflections, short forms, changes of topic."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support.embedders import HashingEmbedder
from support.events import message
from support.read_models import rows

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput
from recollect.jobs.conversation.observer import SHORT_FORM_TOKENS, observe
from recollect.jobs.conversation.topics import topic_boundaries, topic_changed
from recollect.jobs.job_settings import ConversationSettings, JobSettings
from recollect.jobs.summarising.extractive import summarise
from recollect.jobs.summarising.sentence_content import readable
from recollect.jobs.summarising.summarised_rows import plain_rows
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.tokens import estimate_tokens

_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
_SAID = (
    "We painted the kitchen in a light green on Saturday, and it took the two of us until late in the evening.",
    "My sister Clara is coming from Porto in March, and she will stay with us for two weeks or maybe three.",
    "The old bicycle has a broken chain again, so I take the tram number 28 to the office these rainy days.",
    "I booked a table for six people at the Italian place near the river, for Friday evening at eight.",
)


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


def converse(memory: Recollect, turns: int, *, first: int = 0) -> None:
    memory.append(
        "a",
        [
            message(
                f"{_SAID[at % len(_SAID)]} ({at})",
                id=f"t{at}",
                session_id="s1",
                name=("Ann", "Bob")[at % 2],
                occurred_at=_START + timedelta(minutes=at),
            )
            for at in range(first, first + turns)
        ],
    )


# -- windows ----------------------------------------------------------------------------------------------------------


def test_a_short_conversation_stays_as_it_was_said(memory: Recollect) -> None:
    converse(memory, 4)
    window = memory.window("a", "s1", budget_tokens=1_000)
    assert [one["content"] for one in window.messages] == [f"{_SAID[at]} ({at})" for at in range(4)]
    assert (window.compacted, window.summary_id, window.degraded) == (False, None, [])


def test_the_oldest_half_of_a_full_window_becomes_a_summary(memory: Recollect) -> None:
    converse(memory, 40)
    window = memory.window("a", "s1", budget_tokens=1_200)
    assert window.compacted
    assert window.messages[0]["role"] == "system"
    assert window.messages[0]["content"].startswith(("[Conversation summary: Ann: ", "[Conversation summary: Bob: "))
    assert window.messages[-1]["content"].endswith("(39)")
    assert len(window.messages) > 10
    assert window.tokens <= 1_200
    ((tier, id),) = rows(memory.parts.read_models, "SELECT tier, id FROM episodes WHERE tier <> 'raw'")
    assert (tier, id) == ("compressed", window.summary_id)
    assert rows(memory.parts.read_models, "SELECT count(*) FROM episodes WHERE tier = 'raw'") == [(40,)]
    assert [source.id for source in memory.sources("a", id)][:3] == ["t0", "t1", "t2"]


def test_a_second_call_returns_the_same_and_appends_nothing(memory: Recollect) -> None:
    converse(memory, 40)
    first = memory.window("a", "s1", budget_tokens=1_200)
    second = memory.window("a", "s1", budget_tokens=1_200)
    assert second == first._replace(compacted=False)


def test_a_conversation_that_goes_on_is_summed_up_again_and_again(memory: Recollect) -> None:
    for part in range(6):
        converse(memory, 20, first=20 * part)
        window = memory.window("a", "s1", budget_tokens=1_000)
        assert window.tokens <= 1_000
        assert window.messages[-1]["content"].endswith(f"({20 * part + 19})")
        assert not window.degraded
    covered = rows(memory.parts.read_models, "SELECT count(*), count(DISTINCT source) FROM episode_sources")
    assert covered[0][0] == covered[0][1] > 90


def test_a_budget_that_is_too_small_for_the_recent_turns_says_so(memory: Recollect) -> None:
    converse(memory, 20)
    window = memory.window("a", "s1", budget_tokens=64)
    assert window.tokens <= 64
    assert "do not fit" in window.degraded[0]


def test_a_window_of_nothing_is_empty_and_a_wrong_budget_is_refused(memory: Recollect) -> None:
    assert memory.window("a", "nobody", budget_tokens=1_000).messages == []
    with pytest.raises(InvalidInput, match="budget_tokens"):
        memory.window("a", "s1", budget_tokens=0)


def test_what_a_window_summed_up_is_not_compressed_again_at_night(memory: Recollect) -> None:
    converse(memory, 40)
    memory.window("a", "s1", budget_tokens=1_200)
    memory.compact("a", now=_START + timedelta(days=2))
    covered = rows(memory.parts.read_models, "SELECT count(*), count(DISTINCT source) FROM episode_sources")
    assert covered == [(40, 40)]
    assert memory.check("a").is_equal


# -- observations -----------------------------------------------------------------------------------------------------


def test_turns_are_observed_when_there_are_enough(memory: Recollect) -> None:
    converse(memory, 60)
    assert observe(memory.parts.job_context, "a", 0) == 0
    converse(memory, 80, first=60)
    assert observe(memory.parts.job_context, "a", 0) == 1
    assert observe(memory.parts.job_context, "a", 0) == 0
    lines = rows(memory.parts.read_models, "SELECT text, session_id, status FROM observations")
    assert len(lines) >= 140 // 6
    assert all(text.startswith("[2026-01-05] ") and session == "s1" for text, session, _ in lines)
    assert rows(memory.parts.read_models, "SELECT through FROM observation_cursors") == [(140,)]


def test_the_observations_of_one_event_have_8000_tokens_at_most(memory: Recollect) -> None:
    events = [
        message(f"{_SAID[at % 4]} {_SAID[(at + 1) % 4]} ({at})", session_id="s1", occurred_at=_START)
        for at in range(1_000)
    ]
    memory.append("a", events)
    context = replace(
        memory.parts.job_context,
        settings=JobSettings(conversation=ConversationSettings(reflect_tokens=100_000)),
    )
    assert observe(context, "a", 0) == 1
    lines = [text for (text,) in rows(memory.parts.read_models, "SELECT text FROM observations")]
    assert 7_900 < sum(map(estimate_tokens, lines)) <= 8_000


def test_too_many_observations_are_condensed_and_never_pass_the_cap(memory: Recollect) -> None:
    limits = ConversationSettings(observe_tokens=500, reflect_tokens=600)
    context = replace(memory.parts.job_context, settings=JobSettings(conversation=limits))
    for part in range(20):
        converse(memory, 20, first=20 * part)
        observe(context, "a", 0)
        (tokens,) = rows(memory.parts.read_models, "SELECT sum(token_count) FROM observations WHERE status = 'active'")[
            0
        ]
        assert tokens <= 1_000
    kinds = [event.type for event in memory.parts.log.read("a", after=0, limit=1_000)]
    assert kinds.count("observations.reflected") >= 2
    assert memory.check("a").is_equal


def test_a_long_message_gets_a_short_form(memory: Recollect) -> None:
    memory.append("a", message(" ".join(_SAID * 12), id="long", session_id="s1"))
    assert observe(memory.parts.job_context, "a", 0) == 1
    ((short,),) = rows(memory.parts.read_models, "SELECT short FROM episodes")
    assert 0 < estimate_tokens(short) <= SHORT_FORM_TOKENS
    assert observe(memory.parts.job_context, "a", 0) == 0


# -- topics and summaries ---------------------------------------------------------------------------------------------


def test_a_change_of_topic_is_seen() -> None:
    embedder = HashingEmbedder()
    garden = [f"the garden needs water and the roses need care {at}" for at in range(8)]
    vectors = list(embedder.embed([*garden, "zebra quantum lighthouse submarine opera"]))
    assert topic_changed(vectors)
    assert topic_boundaries(vectors) == [8]
    assert not topic_changed(vectors[:-1])


_TEXTS = st.lists(
    st.one_of(st.sampled_from([*_SAID, "Ok.", "你好。我住在波尔图。", "", "…", "a" * 400]), st.text(max_size=80)),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=_TEXTS, tokens_max=st.integers(8, 120), embedded=st.booleans())
def test_a_summary_is_made_of_sentences_in_order_and_keeps_its_budget(
    texts: list[str], tokens_max: int, embedded: bool
) -> None:
    turns = [replace(turn, speaker=("Ann", "Bob")[turn.version % 2]) for turn in plain_rows(texts)]
    vectors = [HashingEmbedder().embed_query(text).vector if embedded else None for text in texts]
    summary = summarise(turns, vectors, tokens_max)
    assert summary == summarise(turns, vectors, tokens_max)
    assert estimate_tokens(summary) <= tokens_max
    # A full stop is added where a sentence has no end sign.
    if "…" not in summary:
        said = [(turn.speaker, part) for turn in turns for part in split_sentences(turn.line())]
        cleaned = [(speaker, text) for speaker, part in said if (text := readable(part))]
        assert _is_made_of(cleaned or said, summary)


def _is_made_of(sentences: list[tuple[str, str]], summary: str) -> bool:
    """Return whether `summary` is some of the sentences, in order, with the speaker's name where it changes."""
    # The characters that are explained so far, with the last speaker: each sentence is left out or comes next.
    states: set[tuple[int, str | None]] = {(0, None)}
    for speaker, sentence in sentences:
        for at, last in list(states):
            part = sentence if speaker == last else f"{speaker}: {sentence}"
            for separator in ("",) if last is None else (" ", ". "):
                if summary.startswith(separator + part, at):
                    states.add((at + len(separator + part), speaker))
    return any(at == len(summary) for at, _ in states)
