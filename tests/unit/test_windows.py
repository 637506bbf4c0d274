from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.projections.embeddings.windows import LEAD_WORDS, SHORT_WORDS, WINDOW_WORDS, SessionWindows
from recollect.projections.queries.queried_episodes import SpokenAfter, SpokenText

_LENGTHS = st.lists(st.one_of(st.integers(1, 12), st.integers(1, 2 * SHORT_WORDS)), min_size=1, max_size=40)


def session(lengths: list[int]) -> dict[int, SpokenAfter]:
    """Return the turns of one session, by version; some repeat each other's words."""
    return {
        version: SpokenAfter(
            SpokenText("Ann", " ".join(f"w{version % 7}" for _ in range(length)), None), version - 1 or None
        )
        for version, length in enumerate(lengths, start=1)
    }


def contexts(turns: dict[int, SpokenAfter], windows: SessionWindows) -> dict[int, tuple[str, ...]]:
    return {version: windows.context(version, turn.spoken, turn.previous) for version, turn in turns.items()}


@given(_LENGTHS)
def test_a_turn_has_the_same_context_live_and_when_its_session_is_embedded_again(lengths: list[int]) -> None:
    turns = session(lengths)
    again = contexts(turns, SessionWindows(turns.get))
    for version, turn in turns.items():
        live = SessionWindows({at: other for at, other in turns.items() if at < version}.get)
        assert live.context(version, turn.spoken, turn.previous) == again[version]


@given(_LENGTHS)
def test_a_context_is_what_was_said_right_before_within_the_words_of_a_window(lengths: list[int]) -> None:
    turns = session(lengths)
    for version, context in contexts(turns, SessionWindows(turns.get)).items():
        assert bool(context) == (version > 1)
        lines = [turns[at].spoken.line() for at in range(1, version)]
        assert " ".join(lines).endswith(" ".join(context))
        assert len(" ".join(context).split()) <= WINDOW_WORDS


def test_a_turn_after_a_long_one_is_read_after_its_last_words() -> None:
    words = [f"w{number}" for number in range(500)]
    windows = SessionWindows({1: SpokenAfter(SpokenText("Bob", " ".join(words), None), None)}.get)
    (context,) = windows.context(2, SpokenText("Ann", "yes", None), 1)
    assert context.split() == words[-LEAD_WORDS:]


def test_most_turns_extend_the_window_of_the_turn_before_them() -> None:
    turns = {
        version: SpokenAfter(SpokenText("Ann", f"message {version} says a few words", None), version - 1 or None)
        for version in range(1, 501)
    }
    made = contexts(turns, SessionWindows(turns.get))
    extended = sum(len(made[version]) > len(made[version - 1]) for version in range(2, 501))
    assert extended > 350


def test_turns_that_have_expired_are_no_context() -> None:
    turns = session([5] * 20)
    del turns[12]
    windows = SessionWindows(turns.get)
    assert windows.context(13, turns[13].spoken, 12) == ()
    assert windows.context(14, turns[14].spoken, 13) == (turns[13].spoken.line(),)
