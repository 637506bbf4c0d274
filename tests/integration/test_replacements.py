"""Replacements: what a person has instead of something else ends the earlier statement and is stated in its place."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from support.events import message

from recollect import Recollect
from recollect.api.settings import load_settings

Facts = Callable[..., set[tuple[str, str, str]]]


@pytest.fixture
def facts(tmp_path: Path) -> Generator[Facts]:
    """Append messages of a user, and return subject, predicate and object of the active facts but events."""
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:

        def facts(*texts: str) -> set[tuple[str, str, str]]:
            memory.append("a", [message(text) for text in texts])
            memory.settle("a")
            rows = [row for row in memory.list("a", "facts")["items"] if row["status"] == "active"]
            return {(row["subject"], row["predicate"], row["object"]) for row in rows if row["type"] == "fact"}

        yield facts


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ("we use slack", "we replaced slack with mattermost", ("user", "uses", "mattermost")),
        ("I drive a diesel Golf", "traded the Golf for a Kia EV6", ("user", "drives", "a Kia EV6")),
        ("I live in Berlin", "I moved from Berlin to Munich in May", ("user", "lives in", "Munich")),
        ("my phone is a pixel 7", "swapped the pixel 7 for an iphone 15", ("user", "phone is", "an iphone 15")),
        ("Anna drives a Golf", "Anna traded her Golf for a bike", ("Anna", "drives", "a bike")),
    ],
)
def test_what_replaces_something_is_stated_in_its_place(
    facts: Facts, before: str, change: str, after: tuple[str, str, str]
) -> None:
    assert facts(before, change) == {after}


def test_the_other_elements_of_a_list_stay(facts: Facts) -> None:
    after = facts("we use fly.io, postgres 16 and redis", "we've switched from fly.io to hetzner last week")
    assert after == {("user", "uses", "hetzner, postgres 16 and redis")}


def test_a_name_with_a_dot_is_no_verb_of_another_clause(facts: Facts) -> None:
    assert facts("we use postgres 16 and fly.io for the api") == {
        ("user", "uses", "postgres 16 and fly.io for the api")
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("we use slack for the support", "teams for the support"),
        ("we use slack for calling", "teams for calling"),
        ("we use slack for the support since monday", "teams for the support"),
        ("we use slack for ages", "teams"),
        ("we use slack for the past year", "teams"),
        ("we use slack as of monday", "teams"),
    ],
)
def test_what_it_was_for_stays_and_since_when_does_not(facts: Facts, before: str, after: str) -> None:
    assert facts(before, "we switched from slack to teams") == {("user", "uses", after)}


@pytest.mark.parametrize(
    "sentence", ["if we moved from slack to teams, we'd save money", "we might switch from slack to teams"]
)
def test_a_replacement_that_is_only_considered_changes_nothing(facts: Facts, sentence: str) -> None:
    assert facts("we use slack", sentence) == {("user", "uses", "slack")}


def test_a_replacement_of_another_person_changes_nothing(facts: Facts) -> None:
    assert ("user", "uses", "slack") in facts("we use slack", "Anna switched from slack to teams")


def test_a_denial_is_not_replaced(facts: Facts) -> None:
    assert ("user", "does not eat", "meat") in facts("I don't eat meat", "we moved from meat to fish")
