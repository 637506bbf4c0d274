"""Of items that say the same, the one with most detail is in a context."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.repeated_statements import without_repetitions


def item(id: str, kind: Any, text: str, **fields: Any) -> Item:
    return Item(
        id=id,
        kind=kind,
        namespace="ann",
        text=text,
        score=fields.pop("score", 0.5),
        matched_by=(),
        ranks=fields.pop("ranks", {}),
        source_events=fields.pop("source_events", (id,)),
        occurred_at_us=0,
        **fields,
    )


def kept(*items: Item) -> list[str]:
    return [item.id for item in without_repetitions(items)[0]]


MESSAGE = item("m1", "episode", "My sister Mia plays the cello in Porto.", speaker="Ann")
SISTER = item("r1", "relationship", "Ann's sister is Mia", source_events=("m1",))
CELLO = item("f1", "fact", "Mia plays cello", source_events=("m1",))
MIA = item("e1", "entity", "**Mia** (person): Ann's sister", source_events=())


def test_what_a_message_says_is_not_said_again_by_what_was_derived_from_it() -> None:
    assert kept(CELLO, SISTER, MIA, MESSAGE) == ["m1"]


def test_a_statement_that_ends_with_a_time_is_one_line_with_its_message() -> None:
    words = item("f1", "fact", "Ann said: Jonas and I split up last month", source_events=("m4",), speaker="Ann")
    assert kept(words, item("m4", "episode", "Jonas and I split up last month", speaker="Ann")) == ["m4"]


def test_a_statement_with_a_value_that_its_message_does_not_have_stays() -> None:
    harp = item("f2", "fact", "Mia plays harp", source_events=("m1",))
    assert kept(CELLO, harp, MESSAGE) == ["f2", "m1"]


def test_an_entity_and_a_relationship_of_the_same_words_are_one_line() -> None:
    assert kept(MIA, SISTER) == ["e1"]


def test_of_two_equal_statements_the_first_one_stays() -> None:
    assert kept(SISTER, item("r2", "relationship", "Ann's sister is Mia", source_events=("m7",))) == ["r1"]


def test_an_item_that_adds_a_word_stays() -> None:
    described = item("e1", "entity", "**Mia** (person): Ann's sister, a cellist", source_events=())
    assert kept(described, SISTER) == ["e1"]
    assert kept(described, MESSAGE) == ["e1", "m1"]


def test_a_negated_statement_is_not_the_same_as_the_plain_one() -> None:
    eats = item("f1", "fact", "Ann eats meat")
    assert kept(eats, item("f2", "fact", "Ann does not eat meat", source_events=("m2",))) == ["f1", "f2"]


def test_another_message_with_the_words_of_a_fact_is_not_its_source() -> None:
    other = item("m9", "episode", "Mia plays cello? Since when?", speaker="Bob")
    assert kept(CELLO, other) == ["f1", "m9"]


def test_an_instruction_of_every_turn_stays_and_the_message_that_only_gives_it_is_left_out() -> None:
    rule = item(
        "p1", "preference", "Always answer in German", source_events=("m3",), ranks={"profile": 1, "standing": 1}
    )
    assert kept(rule, item("m3", "episode", "always answer in German please", speaker="Ann")) == ["p1"]
    more = item("m3", "episode", "Hi, I am a nurse. Always answer in German please.", speaker="Ann")
    assert kept(rule, more) == ["p1", "m3"]


def test_a_line_of_a_former_session_is_not_repeated_by_its_message() -> None:
    line = item("m1", "episode", "My sister Mia plays the cello in Porto.", speaker="Ann", ranks={"session": 1})
    assert kept(line, MESSAGE) == ["m1"]
    assert without_repetitions([line, MESSAGE])[0][0].ranks == {}


def test_a_document_with_the_words_of_a_message_stays() -> None:
    assert kept(item("d1", "document", "Mia plays the cello"), MESSAGE) == ["d1", "m1"]


_WORDS = st.lists(st.sampled_from(["mia", "cello", "porto", "sister", "not", "ann"]), min_size=1, max_size=5)
_KINDS = st.sampled_from(["fact", "entity", "relationship", "preference", "episode", "document"])
_ITEMS = st.lists(st.tuples(_KINDS, _WORDS, st.sampled_from(["m1", "m2"])), max_size=8)


@given(_ITEMS)
def test_for_each_item_left_out_one_that_says_it_stays_and_a_second_pass_leaves_out_none(
    rows: list[tuple[str, list[str], str]],
) -> None:
    items = [
        item(f"i{n}", kind, " ".join(words), source_events=(source,)) for n, (kind, words, source) in enumerate(rows)
    ]
    stay, dropped = without_repetitions(items)
    assert len(stay) + len(dropped) == len(items)
    assert {drop.reason.removeprefix("told by ") for drop in dropped} <= {item.id for item in items}
    assert bool(stay) == bool(items)
    assert without_repetitions(stay) == (stay, [])


def test_a_fact_and_the_words_of_its_message_are_one_line() -> None:
    works = item("f2", "fact", "Tom works at the harbour", source_events=("m2",))
    said = item("f3", "fact", "Tom said: I started at the harbour, in customs", source_events=("m2",), speaker="Tom")
    assert kept(works, said) == ["f3"]
    assert kept(replace(works, source_events=("m3",)), said) == ["f2", "f3"]
