"""Answers: builds the result types of `Recollect` from the JSON of the server."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from recollect.api.retrieval.contract.result import AnswerGuidance, RetrieveResult, Source
from recollect.events.envelope import Appended, parse_rfc3339
from recollect.events.errors import RecollectError, short_text
from recollect.jobs.queue.settle_result import SettleResult

if TYPE_CHECKING:
    from recollect.events.integrity.verify import VerifyResult
    from recollect.jobs.conversation.window import Window
    from recollect.jobs.queue.nightly import Compaction
    from recollect.projections.queries.queried_episodes import TierTotals
    from recollect.projections.read_models.replays import ReplayCheck

_logger = logging.getLogger(__name__)


class Readiness(TypedDict):
    """The state of a server that serves requests."""

    ready: bool
    #: The state of its embedding model: off, loading, ready or failed.
    embedding: str
    #: The id of its log.
    log: str


# Types of rooms with heavy libraries are imported where they are built: a bot that appends and retrieves needs none.


def mapping(answer: Any) -> Any:
    """Return an answer that is the result as it is; the call has its type."""
    return answer


def page(answer: dict[str, Any]) -> Any:
    """Return a page: items, and what `after` takes for the next page."""
    return {"items": answer["items"], "next": answer["next"]}


def readiness(answer: dict[str, Any]) -> Readiness:
    """Return the state of a server."""
    return {"ready": answer["ready"], "embedding": answer["embedding"], "log": answer["log"]}


def retrieval(answer: dict[str, Any]) -> RetrieveResult:
    """Return the result of a retrieval."""
    return RetrieveResult.from_json(answer)


def no_retrieval(error: RecollectError, latency_ms: float) -> RetrieveResult:
    """Return the result of a retrieval that no server answered: empty, with the reason in `degraded`.

    Bots show `degraded` to users, so it has what the class of the error says; the log has the address.
    """
    _logger.warning("a retrieval has an empty result: %s", short_text(error))
    reason = " ".join((type(error).__doc__ or "").partition("\n\n")[0].split())
    return RetrieveResult(
        context="",
        items=(),
        tokens=0,
        latency_ms=latency_ms,
        degraded=(f"server: {reason}",),
        trace_id="",
        version=0,
        trigger="asked",
        answer=AnswerGuidance(),
        stages_ms={},
        explain=dict,
    )


def appended(answer: dict[str, Any], own_ids: frozenset[str]) -> list[Appended]:
    """Return the recorded events.

    Parameters:
        own_ids: ids that the client made for this call. One that was recorded before was recorded by an attempt whose
            answer was lost, so it is not a duplicate of the caller's.
    """
    return [
        Appended(
            event["id"],
            event["version"],
            parse_rfc3339(str(event["recorded_at"])),
            bytes.fromhex(event["hash"]),
            event["duplicate"] and event["id"] not in own_ids,
            tuple(event.get("forgotten", ())),
        )
        for event in answer["events"]
    ]


def sources(answer: dict[str, Any]) -> list[Source]:
    """Return the original messages of a summary."""
    return [Source.from_json(source) for source in answer["items"]]


def items(answer: dict[str, Any]) -> list[Any]:
    """Return the items of a list that has one page."""
    listed: list[Any] = answer["items"]
    return listed


def settle_result(answer: dict[str, Any]) -> SettleResult:
    """Return the state of a namespace after settling."""
    return SettleResult.from_json(answer)


def window(answer: dict[str, Any]) -> Window:
    """Return a conversation that is fitted to a budget."""
    from recollect.jobs.conversation.window import Window  # noqa: PLC0415

    return Window(**{name: answer[name] for name in Window._fields})


def compaction(answer: dict[str, Any]) -> Compaction:
    """Return what a compaction did."""
    from recollect.jobs.queue.nightly import Compaction  # noqa: PLC0415

    return Compaction(
        namespace=answer["namespace"],
        events=answer["events"],
        tiers_before=_tiers(answer["tiers_before"]),
        tiers_after=_tiers(answer["tiers_after"]),
    )


def tiers(answer: dict[str, Any]) -> dict[str, TierTotals]:
    """Return the number and the tokens of the episodes by tier."""
    return _tiers(answer["tiers"])


def verified(answer: dict[str, Any]) -> VerifyResult:
    """Return the result of verifying a chain."""
    from recollect.events.integrity.verify import ChainProblem, VerifyResult  # noqa: PLC0415

    problems = (ChainProblem(version=item["version"], message=item["message"]) for item in answer["problems"])
    return VerifyResult(
        namespace=answer["namespace"],
        version=answer["version"],
        hash=bytes.fromhex(answer["hash"]),
        problems=tuple(problems),
    )


def replay_check(answer: dict[str, Any]) -> ReplayCheck:
    """Return the comparison of a read model with a replay."""
    from recollect.projections.read_models.replays import ReplayCheck  # noqa: PLC0415

    return ReplayCheck(
        namespace=answer["namespace"],
        version=answer["version"],
        live_digest=answer["live_digest"],
        replayed_digest=answer["replayed_digest"],
        search_equal=answer["search_equal"],
    )


def _tiers(totals: Mapping[str, Mapping[str, int]]) -> dict[str, TierTotals]:
    from recollect.projections.queries.episode_queries import TierTotals  # noqa: PLC0415

    return {tier: TierTotals(episodes=total["episodes"], tokens=total["tokens"]) for tier, total in totals.items()}
