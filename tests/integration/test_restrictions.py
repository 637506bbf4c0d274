"""Restrictions: a message that is not for somebody, and all that was derived from it, is never shown when they ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from recollect import Recollect
from recollect.api.retrieval.contract.request import Mode
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidEvent


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as opened:
        yield opened


def _message(name: str | None, text: str, session: str = "s", **fields: Any) -> dict[str, Any]:
    payload: dict[str, Any] = {"role": "user", "text": text, **fields}
    return {
        "type": "message.added",
        "session_id": session,
        "payload": payload if name is None else payload | {"name": name},
    }


def _shown(result: RetrieveResult) -> str:
    return f"{result.context}\n{orjson.dumps(result.as_json()).decode()}".casefold()


_GROUP = [
    _message("Ben", "I live in Leeds and I work as a baker."),
    _message("Ann", "I am buying a telescope for the birthday party.", not_for=["Ben"]),
    {"type": "message.added", "session_id": "s", "payload": {"role": "assistant", "text": "A telescope, how lovely!"}},
    _message("Cleo", "The birthday party is in Whitby on Saturday."),
]


@pytest.mark.parametrize("speaker", ["Ben", "ben", "Ben Carter", "ben_c", None])
def test_a_message_is_not_shown_to_whom_it_is_not_for(memory: Recollect, speaker: str | None) -> None:
    memory.append("g", _GROUP)
    memory.settle("g")
    modes: tuple[Mode, ...] = ("active", "passive")
    for mode in modes:
        result = memory.retrieve("g", "what about the birthday party telescope?", speaker=speaker, mode=mode)
        assert "telescope" not in _shown(result), (mode, speaker)
    assert "whitby" in _shown(memory.retrieve("g", "birthday party", speaker=speaker, gate=False))


@pytest.mark.parametrize("speaker", ["Ann", "Cleo"])
def test_others_are_shown_it(memory: Recollect, speaker: str) -> None:
    memory.append("g", _GROUP)
    assert "telescope" in _shown(memory.retrieve("g", "what is the present, a telescope?", speaker=speaker))


def test_the_only_user_needs_no_name_and_another_namespace_shows_nothing(memory: Recollect) -> None:
    memory.append("ann", [_message("Ann", "I am buying a telescope for the party.", not_for=["Ben"])])
    memory.append("ben", [_message("Ben", "I like parties.")])
    assert "telescope" in _shown(memory.retrieve("ann", "telescope for the party"))
    for speaker in (None, "Ben"):
        assert "telescope" not in _shown(memory.retrieve("ben", "telescope party", also=["ann"], speaker=speaker))


def test_what_a_message_says_decides_unless_the_field_does(memory: Recollect) -> None:
    memory.append(
        "g",
        [
            _message("Ann", "I am leaving the firm in May. Don't tell Ben!"),
            _message("Cleo", "My bonus was nine thousand. This stays between us.", not_for=[]),
            _message("Cleo", "I am seeing a surgeon, keep this between us."),
        ],
    )
    asked = {
        name: _shown(memory.retrieve("g", "firm bonus surgeon", speaker=name, gate=False))
        for name in ("Ann", "Ben", "Cleo")
    }
    assert {name: [word in text for word in ("leaving", "bonus was", "seeing")] for name, text in asked.items()} == {
        "Ann": [True, True, False],
        "Ben": [False, True, False],
        "Cleo": [True, True, True],
    }


def test_a_name_without_a_capital_counts_where_a_user_has_it(memory: Recollect) -> None:
    memory.append(
        "g",
        [
            _message("cleo", "ok i booked the Blue Room for the party. dont tell mia"),
            _message("cleo", "the party cake is from Dent's, dont tell lies about it"),
            _message("ben", "the party starts at eight"),
            _message("mia", "whats for dinner?"),
        ],
    )
    asked = {name: _shown(memory.retrieve("g", "party", speaker=name, gate=False)) for name in ("mia", "ben")}
    assert [[word in text for word in ("blue room", "cake", "eight")] for text in asked.values()] == [
        [False, True, True],
        [True, True, True],
    ]
    assert "cake" in _shown(memory.retrieve("g", "party", gate=False))


def test_what_is_derived_follows_and_an_update_sets_and_clears(memory: Recollect) -> None:
    [added] = memory.append("g", _message("Ann", "I work at Vestas as a welder."))
    memory.append("g", [_message("Ben", "hello everyone, how are you doing?")])
    memory.settle("g")
    [fact] = [item for item in memory.list("g", "facts")["items"] if "Vestas" in item["object"]]
    memory.update("g", fact["id"], text="Gamesa")
    asked = "where does Ann work?"
    assert "gamesa" in _shown(memory.retrieve("g", asked, speaker="Ben"))
    updated = memory.update("g", added.id, not_for=["Ben"])
    memory.settle("g")
    assert "vestas" not in _shown(memory.retrieve("g", asked, speaker="Ben", gate=False))
    assert "vestas" in _shown(memory.retrieve("g", asked, speaker="Cleo", gate=False))
    memory.update("g", str(updated["id"]), not_for=[])
    assert "vestas" in _shown(memory.retrieve("g", asked, speaker="Ben", gate=False))


def test_the_correction_of_a_fact_is_hidden_with_it(memory: Recollect) -> None:
    memory.append("g", [_message("Ann", "I work at Vestas as a welder.", not_for=["Ben"]), _message("Ben", "hi all")])
    memory.settle("g")
    [fact] = [item for item in memory.list("g", "facts")["items"] if "Vestas" in item["object"]]
    memory.update("g", fact["id"], text="Gamesa")
    assert "gamesa" in _shown(memory.retrieve("g", "where does Ann work?", speaker="Cleo"))
    assert "gamesa" not in _shown(memory.retrieve("g", "where does Ann work?", speaker="Ben", gate=False))


def test_a_wrong_field_is_refused_with_its_name(memory: Recollect) -> None:
    for wrong in ("Ben", [""], ["a"] * 21, [3]):
        with pytest.raises(InvalidEvent, match="not_for"):
            memory.append("g", _message("Ann", "hi", not_for=wrong))


def test_chat_messages_have_the_field(memory: Recollect) -> None:
    memory.add("g", [{"role": "user", "name": "Ann", "content": "The telescope is hidden.", "not_for": ["Ben"]}])
    memory.append("g", _message("Ben", "hi all"))
    assert "telescope" not in _shown(memory.retrieve("g", "telescope", speaker="Ben", gate=False))


_NAMES = ("Ann", "Ben", "Cleo", "Dora")
_SENTENCES = (
    "I live in {}.",
    "I work at {} as a nurse.",
    "My brother is called {}.",
    "I love {} more than anything.",
    "I am allergic to {}.",
    "Please always answer me in {}.",
    "Yesterday I bought a {} for the party.",
    "My dog is called {} and he is four.",
    "I moved to {} last week, no longer in the old place.",
    "{} is the plan for Saturday, are we all in?",
)
_MESSAGES = st.lists(
    st.tuples(
        st.sampled_from(_NAMES), st.sampled_from(_SENTENCES), st.lists(st.sampled_from(_NAMES), max_size=2, unique=True)
    ),
    min_size=2,
    max_size=12,
)


@given(messages=_MESSAGES, reply=st.booleans())
@settings(
    max_examples=5,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_value_of_a_restricted_message_is_in_what_that_person_asks(
    tmp_path_factory: pytest.TempPathFactory, messages: list[tuple[str, str, list[str]]], *, reply: bool
) -> None:
    data = tmp_path_factory.mktemp("restrictions")
    events: list[dict[str, Any]] = []
    hidden_from: dict[str, set[str]] = {name: set() for name in _NAMES}
    for number, (name, sentence, not_for) in enumerate(messages):
        value = f"Zq{'abcdefghijkl'[number]}landia"
        events.append(_message(name, sentence.format(value), session=f"s{number // 4}", not_for=not_for))
        if reply:
            events.append(
                {
                    "type": "message.added",
                    "session_id": f"s{number // 4}",
                    "payload": {"role": "assistant", "text": f"So it is {value}, noted."},
                }
            )
        for other in not_for:
            hidden_from[other].add(value.casefold())
    with Recollect(settings=load_settings(data=data, embedding_model="none"), workers=False) as memory:
        memory.append("g", events)
        memory.settle("g")
        memory.compact("g")
        queries = [f"what about {event['payload']['text']}" for event in events]
        queries += [
            "What do you know about me?",
            "Who lives where, and who works where?",
            "",
        ]
        # The only user of a namespace needs no name.
        askers = (*_NAMES, None) if len({name for name, *_ in messages}) > 1 else _NAMES
        for asker in askers:
            hidden = hidden_from[asker] if asker else set[str]().union(*hidden_from.values())
            for query in queries:
                turns: tuple[tuple[Mode, str | None], ...] = (("active", None), ("passive", "s0"), ("passive", "new"))
                for mode, session in turns:
                    result = memory.retrieve(
                        "g", query, speaker=asker, mode=mode, session_id=session, expand=True, no_store=True
                    )
                    shown = _shown(result)
                    assert not [value for value in hidden if value in shown], (asker, query, mode, result.context)
