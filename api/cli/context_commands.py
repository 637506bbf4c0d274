"""Context command: the context for a prompt, for hosts that run a command before each.

A hook runs before each prompt, so that it asks the running server, with as few imports as possible, and never fails: a
prompt without memories is better than none.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from subprocess import DEVNULL, Popen
from tempfile import TemporaryFile
from typing import Annotated, Any, BinaryIO, cast

import orjson
import typer
from msgspec import Struct
from msgspec.structs import replace

from recollect.api.cli.terminal import echo

#: Seconds in which a hook has to answer: a server needs milliseconds, a process of its own two seconds.
_SECONDS_MAX = 5.0
#: Tokens of a context: 6,000 characters, since Claude Code shows its model at most 10,000 of a hook's output.
_CONTEXT_TOKENS = 1_500
#: Seconds in which a process of its own records a prompt whose hook had no time to.
_LATE_SECONDS_MAX = 600.0
DEFAULT_DATA = "recollect-data"

HookNamespace = Annotated[str, typer.Option("--namespace", envvar="RECOLLECT_NAMESPACE", help="The namespace.")]
RecordOption = Annotated[bool, typer.Option("--record", help="Append the prompt to the memory, too.")]
#: Bytes of standard input that are read: a prompt with a pasted log; more than a request may have is cut.
_INPUT_BYTES_MAX = 1 << 20
#: Characters of an id of a host that becomes part of an event's id or session.
_ID_CHARS_MAX = 90
#: Events of hosts without a prompt: a conversation begins (Claude Code and Codex; Kiro).
_STARTS = frozenset(("SessionStart", "agentSpawn"))


def context(
    context: typer.Context,
    namespace: HookNamespace,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Read the prompt, or the JSON of a hook, from standard input.")
    ] = False,
    prompt: Annotated[str | None, typer.Argument(help="The prompt, without --stdin.")] = None,
    record: RecordOption = False,
    budget_tokens: Annotated[
        int, typer.Option(metavar="<number>", min=0, help="Maximum number of tokens of the context.")
    ] = _CONTEXT_TOKENS,
    seconds_max: Annotated[
        float, typer.Option(metavar="<number>", min=0.1, help="Seconds after which it prints nothing.")
    ] = _SECONDS_MAX,
) -> None:
    """Print the context for a prompt, and nothing when the memory has none. For hooks of editors and agents.

    The running server of the data folder answers. Without one, this process searches by keywords, which takes longer.
    The exit code is always 0, and a memory that cannot be reached is a warning.
    """
    data = context.obj or Path(DEFAULT_DATA)
    given = read_hook_input(sys.stdin.buffer) if stdin else HookInput(prompt=(prompt or "").strip())
    if record and given.prompt:
        # With an id, a prompt that was perhaps recorded in time can be recorded again.
        given = replace(given, prompt_id=given.prompt_id or token_hex(8))

    def retrieved() -> str:
        if not given.prompt and not given.is_start:
            return ""
        turn = _Turn(given, record=record and bool(given.prompt), budget_tokens=budget_tokens)
        answer = _ask_server(data, namespace, turn, seconds_max)
        return _ask_here(context, namespace, turn) if answer is None else answer

    def record_late() -> None:
        if record and given.prompt and seconds_max < _LATE_SECONDS_MAX:
            _record_late(data, namespace, given)

    text = _within(seconds_max, retrieved, record_late)
    if text:
        echo(text)


def _record_late(data: Path, namespace: str, given: HookInput) -> None:
    """Start a process that records a prompt, and outlives the hook."""
    fields = {"prompt": given.prompt, "session_id": given.session_id, "prompt_id": given.prompt_id}
    program = [sys.executable, "-c", "from recollect.api.cli.main import run; run()", "context", "--stdin", "--record"]
    options = ["--namespace", namespace, "--data", str(data), "--seconds-max", str(_LATE_SECONDS_MAX)]
    with TemporaryFile() as standard_input:
        standard_input.write(orjson.dumps(fields))
        standard_input.seek(0)
        # Arguments of this process and no shell.
        Popen(  # noqa: S603
            [*program, *options], stdin=standard_input, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )
    echo("recollect: the prompt is recorded in the background", err=True)


class _Turn:
    """One call of a hook: the message to append, if any, and the fields of the retrieval."""

    def __init__(self, given: HookInput, *, record: bool, budget_tokens: int) -> None:
        self.message: dict[str, Any] | None = {"role": "user", "content": given.prompt} if record else None
        if self.message is not None and given.prompt_id is not None:
            self.message["id"] = f"hook:{given.session_id or ''}:{given.prompt_id}"
        self.session_id = given.session_id
        self.options: dict[str, Any] = {"budget_tokens": budget_tokens}
        # Without its messages in the log, each prompt would be the start of a session, with the profile again.
        self.request: dict[str, Any] = {
            **self.options,
            "query": given.prompt,
            "mode": "passive" if given.is_start else "active",
        }

    def events(self) -> list[dict[str, Any]]:
        """Return the event of the message, if there is one."""
        from recollect.api.memory.chat_messages import chat_events  # noqa: PLC0415

        return (
            []
            if self.message is None
            else chat_events([self.message], session_id=self.session_id, occurred_at=None, metadata=None)
        )


def _ask_server(data: Path, namespace: str, turn: _Turn, seconds_max: float) -> str | None:
    """Return the context from the running server; None when no server answers.

    Another program at the address of a server that was killed does not know its secret, and cannot answer.
    """
    from recollect.api.cli.running_server import running_server  # noqa: PLC0415
    from recollect.events.errors import AppendUnknown, ServerUnavailable  # noqa: PLC0415

    server = running_server(data, timeout_seconds=seconds_max, quiet=True)
    if server is None:
        return None
    with server:
        try:
            if turn.message is None:
                return server.retrieve(namespace, **turn.request).context
            _, result = server.append_and_retrieve(namespace, turn.events(), **turn.options)
            return "" if result is None else result.context
        except (ServerUnavailable, AppendUnknown):
            return None


def _ask_here(context: typer.Context, namespace: str, turn: _Turn) -> str:
    """Return the context by keywords from the memory itself; loading the model takes seconds."""
    from recollect.api.cli.session import load_cli_settings, record_command  # noqa: PLC0415

    settings = load_cli_settings(context.obj, embedding_model="none")
    if not (settings.storage.log or (settings.storage.data / "log.db").exists()) and turn.message is None:
        # An empty memory needs no folder.
        return ""
    from recollect.api.memory.recollect import Recollect  # noqa: PLC0415

    with Recollect(settings=settings, workers=False) as memory:
        if turn.message is None:
            result = memory.retrieve(namespace, wait=False, **turn.request)
        else:
            _, result = memory.append_and_retrieve(namespace, turn.events(), wait=False, **turn.options)
        if result is None:
            return ""
        record_command(context, "read", count=len(result.items))
        return result.context


def _within(seconds_max: float, work: Callable[[], str], at_timeout: Callable[[], object]) -> str:
    """Return the result of `work`; an empty text, and a warning, when it fails or takes longer."""
    results: list[str] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            echo(f"recollect: no memories, {type(error).__name__}: {error}", err=True)
            results.append("")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds_max)
    if results:
        return results[0]
    echo(f"recollect: no memories within {seconds_max:g} seconds", err=True)
    at_timeout()
    sys.stdout.flush()
    sys.stderr.flush()
    # The thread would keep the process, and the prompt, until it ends.
    os._exit(0)


class HookInput(Struct, frozen=True, kw_only=True):
    """The input that a host gives its hook."""

    #: The user's message; empty at the start of a conversation.
    prompt: str
    #: The host's id of the conversation.
    session_id: str | None = None
    #: The host's id of the message in its session, by which recording it again adds nothing.
    prompt_id: str | None = None
    #: Whether a conversation begins, so that who the user is belongs into the context.
    is_start: bool = False


def read_hook_input(stream: BinaryIO) -> HookInput:
    """Return the input of a hook: JSON with the fields of a host, or else the text of a prompt."""
    content = stream.read(_INPUT_BYTES_MAX)
    text = content.decode("utf-8", errors="replace").strip()
    if text.startswith("{"):
        try:
            value: object = orjson.loads(content)
        except orjson.JSONDecodeError:
            # A prompt may begin with a brace.
            return HookInput(prompt=text)
        if isinstance(value, dict) and {"prompt", "hook_event_name"} & value.keys():
            return _from_host(cast("dict[str, Any]", value))
    return HookInput(prompt=text)


def _from_host(fields: dict[str, Any]) -> HookInput:
    """Return the input from the fields of Claude Code, Codex and Kiro, which have the same names."""
    prompt = fields.get("prompt")
    return HookInput(
        prompt=prompt.strip() if isinstance(prompt, str) else "",
        session_id=_id(fields.get("session_id")),
        # That of Claude Code; that of Codex.
        prompt_id=_id(fields.get("prompt_id")) or _id(fields.get("turn_id")),
        is_start=fields.get("hook_event_name") in _STARTS,
    )


def _id(value: object) -> str | None:
    """Return an id of a host; None when it cannot be one of an event."""
    is_id = isinstance(value, str) and value.isprintable() and 1 <= len(value) <= _ID_CHARS_MAX
    return str(value) if is_id else None
