from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.api.importers.json_elements import Element, json_elements
from recollect.events.errors import InvalidInput

_ANY: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


class Slow(io.BytesIO):
    """A stream that returns a few bytes at a time."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(3)


def elements(text: str, *descended: tuple[str, ...]) -> list[Element]:
    return [*json_elements(Slow(text.encode()), lambda path: path in {(), *descended})]


@given(values=st.lists(_ANY, max_size=5), indent=st.sampled_from([None, 2]))
def test_the_elements_of_a_list_are_its_values_however_it_is_read(values: list[Any], indent: int | None) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    assert [json.loads(element.raw) for element in elements(text)] == values


def test_containers_are_descended_into_by_their_names() -> None:
    text = '{"name": "x\\"[", "messages": [{"a": [1]}, 2], "other": {"messages": [3]}, "last": true}'
    assert [(element.path, element.raw) for element in elements(text, ("messages",))] == [
        (("name",), b'"x\\"["'),
        (("messages", ""), b'{"a": [1]}'),
        (("messages", ""), b"2"),
        (("other",), b'{"messages": [3]}'),
        (("last",), b"true"),
    ]


def test_a_value_that_is_no_json_stops_no_other() -> None:
    assert [element.raw for element in elements('[{"a": nonsense}, {"b": 1}]')] == [b'{"a": nonsense}', b'{"b": 1}']


@pytest.mark.parametrize("text", ["[", '[{"a": 1}', '[{"a": "', '{"a": [1, 2', '[1, {"b"'])
def test_a_file_that_was_cut_off_is_refused_at_its_end(text: str) -> None:
    with pytest.raises(InvalidInput, match="cut off"):
        elements(text)
