"""Tool session: the memory, the namespace and the caller that the tools of one client work for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from recollect.api.access.audit_log import AuditEntry, AuditLog
from recollect.api.access.callers import Caller, Scope
from recollect.api.mcp.tool_results import ToolAnswer
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result_json import RetrievalJson

if TYPE_CHECKING:
    from recollect.api.memory.recollect import Recollect

#: Returns the result of a retrieval as JSON.
Retrieve = Callable[[RetrieveRequest], RetrievalJson]


class AppendedNote(NamedTuple):
    """The event of a note."""

    id: str
    version: int
    #: Whether the log had it before.
    is_duplicate: bool


#: Appends the event of a note and those of its statements, all or none, and returns what became of the note.
AppendNote = Callable[[list[dict[str, Any]]], AppendedNote]
#: Records a call: the name of the tool, the scopes that it needs, and its answer.
RecordCall = Callable[[str, frozenset[Scope], ToolAnswer], None]


class ToolSession(Struct, frozen=True, kw_only=True):
    """What the tools of one client work on. The model names no namespace, so it reaches this one alone."""

    #: Returns the memory; a command opens it at the first call, so that it lists its tools at once.
    open_memory: Callable[[], Recollect]
    namespace: str
    caller: Caller
    retrieve: Retrieve
    append: AppendNote
    #: Writes the audit log.
    record: RecordCall
    #: Whether `search` and `fetch` are offered, for connectors that need these names.
    has_connector_tools: bool = False
    #: Who asks, by the configuration of the client and not by the model; None: it does not say.
    speaker: str | None = None

    @property
    def memory(self) -> Recollect:
        """Return the memory; the first use may raise the errors of opening it."""
        return self.open_memory()


def retrieve_here(memory: Recollect, namespace: str) -> Retrieve:
    """Return the retrieval by the memory of this process.

    It waits for the embedding model and embeds new messages first, so that a model finds what it has just remembered.
    """
    return lambda request: memory.retrieve(namespace, request, wait=True).as_json()


def append_here(memory: Recollect, namespace: str) -> AppendNote:
    """Return the append by the memory of this process."""

    def append(events: list[dict[str, Any]]) -> AppendedNote:
        note = memory.append(namespace, events)[0]
        return AppendedNote(note.id, note.version, note.duplicate)

    return append


def audited(audit: AuditLog, caller: Caller, namespace: str) -> RecordCall:
    """Return what writes a line of `audit` about each call."""

    def record(tool: str, scopes: frozenset[Scope], answer: ToolAnswer) -> None:
        entry = AuditEntry(
            token_id=caller.id,
            namespace=namespace,
            route=f"MCP {tool}",
            scopes=tuple(sorted(scopes)),
            status=answer.status,
            count=answer.count,
        )
        audit.record(entry)

    return record
