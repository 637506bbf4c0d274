"""A program of a user, which a type checker reads with the installed package: every result has its type."""

from __future__ import annotations

from typing import assert_type

from recollect import AsyncClient, AsyncRecollect, Client, Recollect
from recollect.api.result_types import MemoryItem

with Recollect("data") as memory, Client("http://127.0.0.1:8787", "rcl_token") as client:
    for one in (memory, client):
        recorded = one.add("ann", "I love tea", session_id="s1")
        assert_type(recorded[0].version, int)
        assert_type(one.append("ann", {"type": "message.added", "payload": {}})[0].duplicate, bool)
        result = one.retrieve("ann", "what does she drink?")
        assert_type(result.context, str)
        assert_type(result.degraded, tuple[str, ...])
        assert_type(result.items[0].score, float)
        assert_type(result.answer.action, str)
        turn, recalled = one.append_and_retrieve("ann", {"type": "message.added", "payload": {}})
        assert_type(turn[0].id, str)
        assert_type(recalled.context if recalled else None, str | None)
        assert_type(one.facts("ann")["items"][0]["object"], str)
        assert_type(one.facts("ann")["next"], str | None)
        assert_type(one.episodes("ann")["items"][0]["speaker"], str)
        assert_type(one.entities("ann")["items"][0]["aliases"], list[str])
        assert_type(one.sessions("ann")["items"][0]["episode_count"], int)
        assert_type(one.events("ann")["items"][0]["recorded_at"], str)
        assert_type(one.fact_history("ann", "f1")["items"][0]["valid_from"], str)
        assert_type(one.graph("ann", "Ann")["edges"][0]["weight"], float)
        assert_type(one.trace("ann", "t1")["stages_ms"], dict[str, float])
        assert_type(one.traces("ann")["items"][0]["items"][0]["ranks"], dict[str, int])
        assert_type(one.export_subject("ann")["counts"], dict[str, int])
        assert_type(one.quarantine("ann")["items"][0]["reasons"], list[str])
        assert_type(one.review("ann", "m1", "approve")["status"], str)
        assert_type(one.forget("ann", "m1")["version"], int)
        assert_type(one.settle("ann", timeout_seconds=5).missing, tuple[str, ...])
        assert_type(one.compact("ann").events, dict[str, int])
        assert_type(one.window("ann", "s1", budget_tokens=1_000).messages, list[dict[str, str]])
        assert_type(one.tiers("ann")["raw"].tokens, int)
        assert_type(one.verify("ann").is_intact, bool)
        assert_type(one.check("ann").is_equal, bool)
        assert_type(one.sources("ann", "e1")[0].text, str)
        assert_type(one.version("ann", 1), int | None)
        assert_type(one.namespaces()["items"][0]["version"], int)
        assert_type(one.list("ann", "facts")["items"][0]["object"], str)
        assert_type(one.list("ann", "preferences")["items"][0]["standing"], bool)
        assert_type(one.list("ann", "procedures")["items"][0]["steps"], list[str])
        assert_type(one.list("ann", "relationships")["items"][0]["weight"], float)
        assert_type(one.list("ann", "documents", limit=5)["items"][0]["chunks"][0]["number"], int)
        assert_type(one.list("ann", "dates", filters={"since": "2026-01-01T00:00:00Z"})["items"][0]["start"], str)
        assert_type(one.list("ann", "questions")["next"], str | None)
        assert_type(one.list("ann", "observations", after="7")["items"][0]["id"], str)
        assert_type(one.preference_history("ann", "p1")["items"][0]["strength"], float)
        memory_item = one.get("ann", "m1")
        if memory_item["kind"] == "fact":
            assert_type(memory_item["valid_until"], str | None)
        elif memory_item["kind"] == "entity":
            assert_type(memory_item["aliases"], list[str])
        assert_type(one.pin("ann", "m1")["pinned"], bool)
        assert_type(one.end("ann", "m1")["id"], str)
        assert_type(one.separate("ann", "Ann", "Annie")["aliases"], list[str])
        assert_type(one.update("ann", "m1", object="Porto", standing=True), MemoryItem)
        assert_type(one.erase("ann", subject="Ann")["log"]["count"], int)
        assert_type(one.erase("ann", everything=True, dry_run=True)["events"], int)
        assert_type(one.receipts("ann")[0]["sig"]["public_key"], str)
        assert_type(one.retrieve("ann", "tea", limit=5, kinds=["fact"], as_of=7, also=("team",)).tokens, int)
        one.retrieve("ann", "tea", limit="many")  # pyright: ignore[reportArgumentType]
        one.retrieve("ann", "tea", limits=5)  # pyright: ignore[reportCallIssue]
        one.append_and_retrieve("ann", [], as_of=7)  # pyright: ignore[reportCallIssue]
        one.update("ann", "m1", objekt="Porto")  # pyright: ignore[reportCallIssue]
        with one.turn("ann", "s1", "Hello", budget_tokens=800, metadata={"channel": "email"}) as turned:
            assert_type(turned.context, str)


async def asynchronous() -> None:
    async with AsyncRecollect("data") as memory, AsyncClient("http://127.0.0.1:8787") as client:
        for one in (memory, client):
            assert_type((await one.retrieve("ann", "tea")).items[0].text, str)
            assert_type((await one.facts("ann"))["items"][0]["confidence"], float)
            assert_type((await one.settle("ann")).is_settled, bool)
            assert_type((await one.list("ann", "preferences"))["items"][0]["value"], str)
            assert_type((await one.erase("ann", session_id="s1", dry_run=True))["by_type"], dict[str, int])
            assert_type((await one.get("ann", "m1"))["kind"] == "fact", bool)
