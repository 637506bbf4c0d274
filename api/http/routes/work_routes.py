"""Work routes: settle, compact, replay, check and verify one namespace; its version and its tiers."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request
from msgspec.structs import asdict
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.api.http.routes.dependencies import AsOfText, Memory
from recollect.api.http.routes.json_bodies import body_reference, json_response, parse_body
from recollect.api.http.routes.query_parameters import refuse_unknown
from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.events.limits import check_namespace

_NAMESPACE_PATH = "/v1/namespaces/{namespace}"
#: Seconds that a caller may let a namespace settle: an import of a million messages is embedded within a day.
_SETTLE_SECONDS_MAX = 86_400.0

router = GuardedRouter(tags=["work"], dependencies=[Depends(refuse_unknown)])


class SettleBody(BaseModel):
    """The time that settling may take. The body may be empty."""

    model_config = ConfigDict(extra="forbid")

    #: Seconds after which no further step begins; as long as the work takes when absent.
    timeout_seconds: Annotated[float, Field(ge=0, le=_SETTLE_SECONDS_MAX)] | None = None
    #: The present time of the jobs, an RFC 3339 time; the server's when absent.
    now: str | None = None


class CompactBody(BaseModel):
    """The time of a compaction. The body may be empty."""

    model_config = ConfigDict(extra="forbid")

    #: The time that is compared with due times, an RFC 3339 time; the present when absent.
    now: str | None = None
    #: Append nothing, and return what would be appended.
    dry_run: bool = False


@router.post(f"{_NAMESPACE_PATH}/settle", name="settle", openapi_extra=body_reference("SettleBody", required=False))
@allow("write", cost=10, audited=False)
async def settle(memory: Memory, namespace: str, request: Request) -> Response:
    """Complete the background work on a namespace: catch up, extract, observe, embed. The answer comes after it.

    With `timeout_seconds` it comes when the time is over, and `missing` names what is left.
    """
    body = await parse_body(SettleBody, request, optional=True)
    settled = run_in_threadpool(memory.settle, namespace, timeout_seconds=body.timeout_seconds, now=body.now)
    return json_response((await settled).as_json())


@router.post(f"{_NAMESPACE_PATH}/compact", name="compact", openapi_extra=body_reference("CompactBody", required=False))
@allow("admin", cost=10)
async def compact(memory: Memory, namespace: str, request: Request) -> Response:
    """Run the nightly jobs on a namespace; return the number of appended events by step, and the tiers."""
    body = await parse_body(CompactBody, request, optional=True)
    compaction = await run_in_threadpool(memory.compact, namespace, now=body.now, dry_run=body.dry_run)
    return json_response(asdict(compaction))


@router.post(f"{_NAMESPACE_PATH}/replay", name="replay")
@allow("admin", cost=10)
async def replay(memory: Memory, namespace: str, parks: Annotated[bool, Query()] = False) -> Response:
    """Rebuild the read model of a namespace while it keeps serving; return the number of events.

    With `parks=true`, an event that cannot be projected parks the new read model there, in place of an error.
    """
    return json_response({"events": await run_in_threadpool(memory.replay, namespace, parks=parks)})


@router.post(f"{_NAMESPACE_PATH}/check", name="check")
@allow("admin", cost=10, audited=False)
async def check(memory: Memory, namespace: str) -> Response:
    """Rebuild the read model in a second file and compare it with the one in use."""
    checked = await run_in_threadpool(memory.check, namespace)
    return json_response(asdict(checked) | {"equal": checked.is_equal})


@router.get(f"{_NAMESPACE_PATH}/verify", name="verify")
@allow("read", cost=10, audited=False)
async def verify(memory: Memory, namespace: str) -> Response:
    """Recompute the hash chain of a namespace and compare it with what is stored."""
    verified = await run_in_threadpool(memory.verify, namespace)
    return json_response(asdict(verified) | {"hash": verified.hash.hex(), "intact": verified.is_intact})


@router.get(f"{_NAMESPACE_PATH}/version", name="version")
@allow("read", audited=False)
async def read_version(memory: Memory, namespace: str, as_of: AsOfText = None) -> Response:
    """Return the version of `as_of`: the last one recorded by then, 0 before the first event; the head without it."""
    check_namespace(namespace)
    version = await run_in_threadpool(memory.version, namespace, as_of)
    if version is None:
        version = (await run_in_threadpool(memory.parts.log.head, namespace)).version
    return json_response({"version": version})


@router.get(f"{_NAMESPACE_PATH}/tiers", name="tiers")
@allow("read", audited=False)
async def read_tiers(memory: Memory, namespace: str) -> Response:
    """Return how many episodes and tokens the memory holds, by tier."""
    tiers = await run_in_threadpool(memory.tiers, namespace)
    return json_response({"tiers": {tier: asdict(totals) for tier, totals in tiers.items()}})
