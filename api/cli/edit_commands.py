"""Edit commands: add, list, get, update, pin, unpin, end, forget, undo, separate."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any, cast

import orjson
import typer

from recollect.api.cli.session import no_namespace, open_cli_memory, record_command
from recollect.api.cli.terminal import echo
from recollect.events.errors import InvalidInput

_Namespace = Annotated[str, typer.Argument(help="The namespace: 1 to 200 letters, digits and . _ : @ -")]
_MemoryId = Annotated[str, typer.Argument(help="The id of the memory, as lists and retrievals have it.")]
_Reason = Annotated[str | None, typer.Option(help="The reason; it is recorded with the event.")]
_AsOf = Annotated[
    str | None, typer.Option("--as-of", help="A past state: a version, or a time such as 2026-11-20T09:00:00Z.")
]


def add(
    context: typer.Context,
    namespace: _Namespace,
    messages: Annotated[
        str,
        typer.Argument(help='A text by a user, or messages as JSON: [{"role": …, "content": …}]; - reads them.'),
    ] = "-",
    session: Annotated[str | None, typer.Option(help="The conversation that they belong to.")] = None,
    occurred_at: Annotated[
        str | None, typer.Option(help="When they were sent, such as 2026-11-20T09:00:00Z.", show_default="now")
    ] = None,
    metadata: Annotated[
        list[str] | None, typer.Option(help="A label of every message, as name=value; may be repeated.")
    ] = None,
) -> None:
    """Append the messages of a chat."""
    text = sys.stdin.read() if messages == "-" else messages
    given: Any = _json_or_text(text) if text.lstrip().startswith(("[", "{")) else text.rstrip("\n")
    pairs = [_pair(label, "--metadata") for label in metadata or ()]
    labels = {name: _json_or_text(value) for name, value in pairs}
    with open_cli_memory(context.obj) as memory:
        recorded = memory.add(namespace, given, session_id=session, occurred_at=occurred_at, metadata=labels)
    for appended in recorded:
        echo(f"{appended.version}\t{appended.id}{'	duplicate' if appended.duplicate else ''}")


def list_memories(
    context: typer.Context,
    namespace: _Namespace,
    name: Annotated[str, typer.Argument(help="The list: episodes, facts, preferences, entities …")],
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter", help="A filter as name=value, such as status=active or metadata.channel=email; may be repeated."
        ),
    ] = None,
    after: Annotated[str, typer.Option(help="`next` of the previous page.")] = "",
    limit: Annotated[int, typer.Option(metavar="<number>", min=1, max=1_000, help="Maximum number of items.")] = 100,
    as_of: _AsOf = None,
) -> None:
    """Print a page of a list as JSON, one item a line."""
    if context.args:
        extra = context.args[0]
        shown = extra if "=" in extra else "name=value"
        raise InvalidInput(f"has no argument {extra!r}; a filter is given as --filter {shown}", field="list")
    selected: dict[str, Any] = {}
    for pair in filters or ():
        key, value = _pair(pair, "--filter")
        group, dot, label = key.partition(".")
        if dot and group == "metadata":
            selected.setdefault(group, {}).setdefault(label, []).extend([value, _json_or_text(value)])
        else:
            selected.setdefault(key, []).append(value)
    selected |= {key: selected[key][-1] for key in ("since", "until") if key in selected}
    with open_cli_memory(context.obj) as memory:
        if memory.parts.log.head(namespace).version == 0:
            raise no_namespace(namespace)
        page = memory.list(namespace, name, after=after, limit=limit, as_of=as_of, filters=selected)
    record_command(context, "read", count=len(page["items"]))
    for item in page["items"]:
        echo(orjson.dumps(item).decode())
    if not page["items"]:
        echo(f"nothing in {name}; `recollect settle {namespace}` or a running server reads new messages", err=True)
    if page["next"] is not None:
        echo(f"more: --after {page['next']}", err=True)


def get(context: typer.Context, namespace: _Namespace, memory_id: _MemoryId, as_of: _AsOf = None) -> None:
    """Print one memory of any kind as JSON."""
    with open_cli_memory(context.obj) as memory:
        item = memory.get(namespace, memory_id, as_of=as_of)
    record_command(context, "read", count=1)
    _print(item)


def update(
    context: typer.Context,
    namespace: _Namespace,
    memory_id: _MemoryId,
    text: Annotated[
        str | None, typer.Argument(help="The new text of a message, object of a fact, value of a preference …")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another field as name=value, with a value in JSON or as text; may be repeated."),
    ] = None,
) -> None:
    """Correct a memory, and print it as it is afterwards."""
    fields = dict(_pair(pair, "--set") for pair in changes or ())
    with open_cli_memory(context.obj) as memory:
        given = {name: _json_or_text(value) for name, value in fields.items()}
        given |= {} if text is None else {"text": text}
        _print_changed(context, memory.update(namespace, memory_id, **given))


def pin(context: typer.Context, namespace: _Namespace, memory_id: _MemoryId, reason: _Reason = None) -> None:
    """Pin a memory, which exempts it from ageing and retention limits."""
    with open_cli_memory(context.obj) as memory:
        _print_changed(context, memory.pin(namespace, memory_id, reason=reason))


def unpin(context: typer.Context, namespace: _Namespace, memory_id: _MemoryId, reason: _Reason = None) -> None:
    """Remove the pin of a memory."""
    with open_cli_memory(context.obj) as memory:
        _print_changed(context, memory.unpin(namespace, memory_id, reason=reason))


def end(
    context: typer.Context,
    namespace: _Namespace,
    memory_id: _MemoryId,
    ended_at: Annotated[
        str | None, typer.Option(help="The end, such as 2026-11-20T09:00:00Z.", show_default="now")
    ] = None,
    reason: _Reason = None,
) -> None:
    """End a fact, a task, a preference, a procedure or a relationship, which was true until then."""
    with open_cli_memory(context.obj) as memory:
        _print_changed(context, memory.end(namespace, memory_id, ended_at=ended_at, reason=reason))


def forget(context: typer.Context, namespace: _Namespace, memory_id: _MemoryId, reason: _Reason = None) -> None:
    """Forget a memory and what was derived from it: no list and no retrieval returns it. The log keeps the bytes."""
    with open_cli_memory(context.obj) as memory:
        forgotten = memory.forget(namespace, memory_id, reason=reason)
    record_command(context, "write", count=1)
    echo(f"{forgotten['kind']} {forgotten['id']} is forgotten at version {forgotten['version']}")
    if forgotten["kind"] != "entity":
        echo(f"to undo it: recollect undo {namespace} {forgotten['event_id']}", err=True)


def undo(
    context: typer.Context,
    namespace: _Namespace,
    event_id: Annotated[str, typer.Argument(help="The id of the event that changed a memory, or of an undo.")],
    reason: _Reason = None,
) -> None:
    """Undo an edit: the memory is exactly as before it. To undo the undo makes the edit again."""
    with open_cli_memory(context.obj) as memory:
        undone = memory.undo(namespace, event_id, reason=reason)
    record_command(context, "write", count=1)
    echo(f"{undone['undoes']} is undone by {undone['id']} at version {undone['version']}")


def separate(
    context: typer.Context,
    namespace: _Namespace,
    memory_id: Annotated[str, typer.Argument(help="The name of an entity.")],
    alias: Annotated[str, typer.Argument(help="One of its aliases, which is the name of another entity.")],
    reason: _Reason = None,
) -> None:
    """Undo a merge of two entities, and print the entity as it is afterwards."""
    with open_cli_memory(context.obj) as memory:
        _print_changed(context, memory.separate(namespace, memory_id, alias, reason=reason))


def quarantine(
    context: typer.Context,
    namespace: _Namespace,
    status: Annotated[str, typer.Option(help="waiting, approve, reject or redact.")] = "waiting",
    after: Annotated[int, typer.Option(metavar="<number>", min=0, help="`next` of the previous page.")] = 0,
) -> None:
    """Print the memories that wait for a review as JSON, one a line: they look like instructions by others."""
    with open_cli_memory(context.obj) as memory:
        page = memory.quarantine(namespace, status=status, after=after)
    record_command(context, "review", count=len(page["items"]))
    for item in page["items"]:
        echo(orjson.dumps(item).decode())
    if page["next"] is not None:
        echo(f"more: --after {page['next']}", err=True)


def review(
    context: typer.Context,
    namespace: _Namespace,
    memory_id: _MemoryId,
    decision: Annotated[str, typer.Argument(help="approve, reject, or redact: remove the instructions.")],
    reason: _Reason = None,
) -> None:
    """Decide on a memory in quarantine, and print it."""
    with open_cli_memory(context.obj) as memory:
        _print_changed(context, memory.review(namespace, memory_id, cast(Any, decision), reason=reason))


def _print_changed(context: typer.Context, item: Mapping[str, Any]) -> None:
    """Print a memory that was changed, and write the line of the audit log."""
    record_command(context, "write", count=1)
    _print(item)


def _print(item: Mapping[str, Any]) -> None:
    """Print a memory as indented JSON."""
    echo(orjson.dumps(item, option=orjson.OPT_INDENT_2).decode())


def _pair(text: str, option: str) -> tuple[str, str]:
    """Return name and value of ``name=value``; raise `InvalidInput` for other text."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise InvalidInput(f"give name=value, not {text[:80]!r}", field=option)
    return name, value


def _json_or_text(text: str) -> Any:
    """Return the JSON value in `text`; the text itself when it is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
