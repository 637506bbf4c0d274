"""Memory tools: remember, correct and forget.

A model writes notes with the role of a tool, which is what they are: the words of neither the user nor a person. So
what they state is inferred, and a note that looks like instructions waits for a review before it is retrieved.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import uuid4

from recollect.api.mcp.noted_statements import noted_statements
from recollect.api.mcp.shown_memories import existing, fenced, memory_text, shortened, shown_memory
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
#: Whom `the user` means when the client does not name who asks.
_USER = "user"
#: Characters of the hash of a note in its id.
_HASH_CHARS = 16
#: The argument of each field of an event.
_ARGUMENTS = {"events.0.id": "idempotency_key", "events.0.occurred_at": "when"}
#: Memories that a dry run of `forget` lists.
_CANDIDATES_MAX = 10
_STATUS_TEXTS: dict[RememberStatus, str] = {
    "accepted": "Remembered.",
    "duplicate": "This was remembered before; nothing was added.",
    "echo": "This repeats what was just recalled, so it is stored and not retrieved; nothing is lost.",
    "quarantined": "Stored, but it looks like instructions for an assistant, so it is not retrieved until the user "
    "approves it (recollect quarantine).",
}


def remember(session: ToolSession, arguments: RememberArguments) -> ToolAnswer:
    """Append a note and what it states. The next `recall` finds it. The same note of the same day is one note."""
    try:
        appended = session.append(_note_events(session, arguments))
        if appended.is_duplicate and arguments.idempotency_key is None and existing(session, appended.id) is None:
            # It was forgotten, and is noted again.
            appended = session.append(_note_events(session, arguments, again=uuid4().hex[:8]))
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


def _note_events(session: ToolSession, arguments: RememberArguments, *, again: str = "") -> list[dict[str, Any]]:
    """Return the event of a note, and those of what it states; `again` makes another id of the same text."""
    text, when = arguments.text, arguments.when
    day = datetime.now(UTC).date().isoformat() if when is None else when.start.isoformat()
    note: dict[str, Any] = {"type": "message.added"}
    if when is not None and when.is_longer_than_a_day:
        # A day of that time would be a guess.
        text = f"{text} ({when.words})"
    elif when is not None:
        note["occurred_at"] = when.start.isoformat()
    note["payload"] = {"role": NOTE_ROLE, "name": _NOTE_SPEAKER, "text": text}
    key = arguments.idempotency_key or sha256(f"{day} {text}".encode()).hexdigest()[:_HASH_CHARS] + again
    note["id"] = f"{_ID_PREFIX}{key}"
    statements = noted_statements(text, note["id"], session.speaker or _USER, _NOTE_SPEAKER)
    ids = ({"id": f"{note['id']}:{place}"} for place in range(len(statements)))
    return [note, *(event | id for event, id in zip(statements, ids, strict=True))]


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
