"""Memory tools: remember, correct and forget.

A model writes notes with the role of a tool, which is what they are: the words of neither the user nor a person. So no
fact is extracted from them, and a note that looks like instructions waits for a review before it is retrieved.
"""

from __future__ import annotations

from typing import Any

from recollect.api.mcp.shown_memories import fenced, memory_text, shortened, shown_memory
from recollect.api.mcp.tool_arguments import CorrectArguments, ForgetArguments, RememberArguments
from recollect.api.mcp.tool_results import (
    CorrectResult,
    ForgetResult,
    ForgottenMemory,
    RememberResult,
    RememberStatus,
    ToolAnswer,
)
from recollect.api.mcp.tool_session import ToolSession
from recollect.api.result_types import MemoryItem
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.errors import EventIdConflict, InvalidEvent, InvalidInput
from recollect.events.intake.instructions import looks_like_instructions

#: The role and the speaker of a note.
NOTE_ROLE = "tool:mcp"
_NOTE_SPEAKER = "assistant's note"
_ID_PREFIX = "mcp:"
#: The argument of each field of an event.
_ARGUMENTS = {"events.0.id": "idempotency_key", "events.0.occurred_at": "when"}
#: Memories that a dry run of `forget` lists.
_CANDIDATES_MAX = 10
_STATUS_TEXTS: dict[RememberStatus, str] = {
    "accepted": "Remembered.",
    "duplicate": "This key was used before with the same text; nothing was added.",
    "echo": "This repeats what was just recalled, so it is stored and not retrieved; nothing is lost.",
    "quarantined": "Stored, but it looks like instructions for an assistant, so it is not retrieved until the user "
    "approves it (recollect quarantine).",
}


def remember(session: ToolSession, arguments: RememberArguments) -> ToolAnswer:
    """Append a note. The next `recall` finds it."""
    event: dict[str, Any] = {
        "type": "message.added",
        "payload": {"role": NOTE_ROLE, "name": _NOTE_SPEAKER, "text": arguments.text},
    }
    if arguments.idempotency_key is not None:
        event["id"] = f"{_ID_PREFIX}{arguments.idempotency_key}"
    if arguments.when is not None:
        event["occurred_at"] = arguments.when.isoformat()
    try:
        appended = session.append(event)
    except EventIdConflict:
        raise InvalidInput(
            "this key was used before with another text; give another key, or correct the memory",
            field="idempotency_key",
        ) from None
    except InvalidEvent as error:
        raise InvalidInput(error.reason, field=_ARGUMENTS.get(error.field, "text")) from None
    status: RememberStatus = "duplicate" if appended.is_duplicate else _status(session, appended.id)
    result = RememberResult(memory_id=appended.id, version=appended.version, status=status)
    return ToolAnswer(text=f"{_STATUS_TEXTS[status]} Id: {appended.id}", data=result.as_json(), count=1)


def _status(session: ToolSession, memory_id: str) -> RememberStatus:
    """Return what became of a new note."""
    status = session.memory.get(session.namespace, memory_id).get("status")
    return "quarantined" if status == "quarantined" else "echo" if status == "echo" else "accepted"


def correct(session: ToolSession, arguments: CorrectArguments) -> ToolAnswer:
    """Correct a memory. The old one is superseded and stays in the log.

    Raises:
        InvalidInput: the memory is what a person or an assistant said; or the text looks like instructions.
    """
    memory = shown_memory(session, arguments.memory_id)
    if memory["kind"] == "episode" and memory["role"] != NOTE_ROLE:
        raise InvalidInput(
            "this is what a person or an assistant said, which is not rewritten; correct the fact that was made of it, "
            "which history lists for its subject, or remember the correction",
            field="memory_id",
        )
    if looks_like_instructions(arguments.new_text):
        raise InvalidInput("this looks like instructions for an assistant; state the fact alone", field="new_text")
    new_text = _object_of(memory, arguments.new_text)
    corrected = session.memory.update(session.namespace, arguments.memory_id, text=new_text)
    text = memory_text(corrected)
    result = CorrectResult(superseded_id=str(memory["id"]), memory_id=str(corrected["id"]), text=text)
    return ToolAnswer(text=f"Now: {text} (id {corrected['id']})", data=result.as_json(), count=1)


def _object_of(memory: MemoryItem, new_text: str) -> str:
    """Return the object of a fact, which models give with its subject and predicate: `Ann lives in Porto`."""
    if memory["kind"] != "fact":
        return new_text
    beginning = f"{memory['subject']} {memory['predicate']} "
    if new_text.casefold().startswith(beginning.casefold()):
        return new_text[len(beginning) :].rstrip(".") or new_text
    return new_text


def forget(session: ToolSession, arguments: ForgetArguments) -> ToolAnswer:
    """Forget a memory by its id; with a query only list the memories that it matches.

    Raises:
        InvalidInput: neither or both are given. NotFound: no memory has this id.
    """
    if (arguments.memory_id is None) == (arguments.query is None):
        raise InvalidInput("give memory_id, or query to find ids", field="memory_id")
    if arguments.memory_id is None:
        return _candidates(session, str(arguments.query))
    memory = shown_memory(session, arguments.memory_id)
    forgotten = session.memory.forget(session.namespace, arguments.memory_id, reason=arguments.why)
    entry = ForgottenMemory(id=str(forgotten["id"]), kind=memory["kind"], text=memory_text(memory))
    result = ForgetResult(dry_run=False, memories=[entry], version=forgotten["version"], event_id=forgotten["event_id"])
    return ToolAnswer(text=f"Forgotten: {entry.kind} {entry.id}: {entry.text}", data=result.as_json(), count=1)


def _candidates(session: ToolSession, query: str) -> ToolAnswer:
    """Return the memories that a query matches; nothing is forgotten."""
    retrieved = session.retrieve(RetrieveRequest(query=query, limit=_CANDIDATES_MAX, speaker=session.speaker))
    entries = [
        ForgottenMemory(id=item["id"], kind=item["kind"], text=shortened(item["text"])) for item in retrieved["items"]
    ]
    lines = [f"- {entry.id} = {entry.kind}: {entry.text}" for entry in entries]
    heading = (
        "Nothing was forgotten. Ask the user which of these to forget, then call forget with its memory_id:"
        if lines
        else "Nothing was forgotten, and no memory matches."
    )
    result = ForgetResult(dry_run=True, memories=entries)
    text = f"{heading}\n{fenced(lines)}" if lines else heading
    return ToolAnswer(text=text, data=result.as_json(), count=len(entries))
