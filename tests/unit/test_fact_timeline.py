"""The timeline of facts: what holds follows from the times of the statements, in any order of arrival."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.projections.projector.fact_timeline import DatedStatement, Kind, ValidSpan, timeline


def statement(
    number: int, kind: Kind = "state", value: str | None = "Porto", *, at: int | None = None, assistant: bool = False
) -> DatedStatement:
    return DatedStatement(
        id=f"e{number}",
        kind=kind,
        value=value,
        at_us=number if at is None else at,
        from_us=None,
        until_us=None,
        is_assistant=assistant,
        rank=0 if assistant else 9 if kind in ("end", "retract") else 2,
        key=number,
        fact_id=None,
    )


def by_model(one: DatedStatement) -> DatedStatement:
    return one._replace(id=f"llm:{one.id}")


def shown(spans: list[ValidSpan]) -> list[tuple[str, str, int, int | None]]:
    return [(span.value, span.status, span.start_us, span.end_us) for span in spans]


@st.composite
def _lives(draw: st.DrawFn) -> list[DatedStatement]:
    kinds: list[Kind] = ["state", "state", "state", "state", "past", "correct", "end", "retract"]
    life: list[DatedStatement] = []
    for number in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(kinds))
        assistant = kind == "state" and draw(st.integers(0, 4)) == 0
        life.append(statement(number, kind, draw(st.sampled_from(["Porto", "Lisbon", "Faro"])), assistant=assistant))
    return life


@given(life=_lives(), data=st.data())
def test_the_order_of_arrival_changes_nothing(life: list[DatedStatement], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(life))
    assert shown(timeline(shuffled)) == shown(timeline(life))


@given(life=_lives())
def test_one_value_is_active_and_the_others_end_before_it_begins(life: list[DatedStatement]) -> None:
    spans = timeline(life)
    active = [span for span in spans if span.status == "active"]
    assert len(active) <= 1
    for span in spans:
        assert span.status == "active" or span.end_us is not None
        # A statement of the assistant that is refused, and one about the past, have no length.
        lasted = span.end_us is not None and span.end_us > span.start_us
        assert not lasted or all((span.end_us or 0) <= other.start_us for other in active)


@given(life=_lives())
def test_the_newest_statement_of_a_person_holds(life: list[DatedStatement]) -> None:
    life = [*life, statement(99, value="Braga")]
    assert [(span.value, span.start_us) for span in timeline(life) if span.status == "active"] == [("Braga", 99)]


@given(life=_lives(), at=st.integers(0, 12))
def test_a_statement_before_a_correction_never_overrides_it(life: list[DatedStatement], at: int) -> None:
    life = [*(one for one in life if one.at_us < 12), statement(50, "correct", "Braga", at=12)]
    again = [*life, statement(60, value="Lisbon", at=min(at, 11))]
    assert [span.value for span in timeline(again) if span.status == "active"] == ["Braga"]


@given(life=_lives())
def test_the_assistant_never_replaces_the_words_of_a_person(life: list[DatedStatement]) -> None:
    people = [one for one in life if not (one.is_assistant and one.kind == "state")]
    active = {span.value for span in timeline(people) if span.status == "active"}
    if active:
        assert active == {span.value for span in timeline(life) if span.status == "active"}


def test_a_return_is_a_span_of_its_own() -> None:
    life = [statement(1), statement(3, value="Lisbon"), statement(5), statement(4, "end", "Lisbon")]
    assert shown(timeline(life)) == [
        ("Porto", "superseded", 1, 3),
        ("Lisbon", "ended", 3, 4),
        ("Porto", "active", 5, None),
    ]


@given(life=_lives(), data=st.data())
def test_what_a_model_reads_replaces_and_ends_nothing(life: list[DatedStatement], data: st.DataObject) -> None:
    read = [by_model(one) for one in life if one.kind == "state" and data.draw(st.booleans())]
    apart = [one._replace(id=f"m{one.key}", key=one.key + 100, value="Braga") for one in read]
    with_model = timeline([*life, *(by_model(one) for one in apart)])
    assert shown([span for span in with_model if span.value != "Braga"]) == shown(timeline(life))
    assert sum(span.status == "active" for span in with_model if span.value == "Braga") <= 1


def test_a_person_replaces_what_a_model_read_before_and_not_of_the_same_message() -> None:
    life = [statement(1), by_model(statement(2, value="Lisbon", at=1)), by_model(statement(3, value="Faro"))]
    assert shown(timeline(life)) == [
        ("Porto", "active", 1, None),
        ("Lisbon", "superseded", 1, 3),
        ("Faro", "active", 3, None),
    ]
    assert shown(timeline([*life, statement(4, value="Braga", at=3)]))[2:] == [
        ("Faro", "active", 3, None),
        ("Braga", "active", 3, None),
    ]
    for value in ("Braga", "Porto"):
        active = [span.value for span in timeline([*life, statement(4, value=value)]) if span.status == "active"]
        assert active == [value]


def test_a_person_who_says_what_a_model_read_states_it() -> None:
    life = [statement(1), by_model(statement(2, value="Lisbon")), statement(3, value="Lisbon")]
    assert shown(timeline(life)) == [("Porto", "superseded", 1, 2), ("Lisbon", "active", 2, None)]
    assert shown(timeline([*life, statement(4, "end", "Lisbon")]))[1:] == [("Lisbon", "ended", 2, 4)]
