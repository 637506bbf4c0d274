"""OpenAI client: `wrap` gives the client of OpenAI, or of a provider with the same protocol, a memory."""

from __future__ import annotations

import atexit
import threading
from pathlib import Path
from typing import Any, TypeVar, Unpack, cast, get_args

from recollect.api.integrations.conversation_scope import check_session
from recollect.api.integrations.limited_calls import FIRST_WAIT_SECONDS, WAIT_SECONDS, LimitedCalls
from recollect.api.integrations.model_exchange import ExchangeSettings, ModelExchanges, new_session
from recollect.api.integrations.model_request import Placement
from recollect.api.integrations.openai_transport import memory_client
from recollect.api.memory.async_recollect import AsyncRecollect
from recollect.api.memory.memory_protocols import AsyncMemory, SyncMemory, check_memory
from recollect.api.memory.recollect import Recollect
from recollect.api.retrieval.contract.options import AppendOptions, check_options
from recollect.events.errors import InvalidInput
from recollect.events.limits import check_namespace

ClientT = TypeVar("ClientT")

#: The open memories of this process, by data folder; the one of the settings under None.
_opened: dict[str | None, Recollect] = {}
_lock = threading.Lock()
#: The arguments of `wrap` besides the options.
_ARGUMENTS = ("namespace", "session", "memory", "user_name", "assistant_name", "placement", "timeout_seconds")


def wrap(
    client: ClientT,
    *,
    namespace: str | None = None,
    session: str | None = None,
    memory: SyncMemory | AsyncMemory | Path | str | None = None,
    user_name: str | None = None,
    assistant_name: str | None = None,
    placement: Placement = "before_last_message",
    timeout_seconds: float = WAIT_SECONDS,
    **options: Unpack[AppendOptions],
) -> ClientT:
    """Return an OpenAI client that remembers: `chat.completions` and `responses`, streamed or not.

    >>> client = recollect.wrap(OpenAI(), namespace="ann")
    >>> client.chat.completions.create(model="gpt-5-mini", messages=[{"role": "user", "content": "I love tea"}])

    Every request gets the memories for the last message of the user; that message and the reply are recorded. When the
    memory fails, the request is sent as it is, and the failure is logged. Messages of the system, of tools and of
    earlier turns are not recorded.

    Parameters:
        client: an `OpenAI` or `AsyncOpenAI`, also of another provider. It stays as it is; close the returned one.
        namespace: whose memory it is. A server of many users names it for each request: `recollect.conversation`, or
            ``extra_headers={"X-Recollect-Namespace": "ann", "X-Recollect-Session": "s1"}``, which are not sent on.
        session: the conversation; a new one for each call of `wrap` when None.
        memory: a `Recollect`, an `AsyncRecollect` or a client of a server; or the data folder. When None, the folder of
            the settings (`RECOLLECT_DATA`).
        user_name: the name of the user, where messages have none.
        assistant_name: the name of the bot.
        placement: ``before_last_message``, which leaves all that precedes it to the provider's prompt cache; or
            ``system``, the end of the first system message, for models that accept no other.
        timeout_seconds: seconds that a request waits for the memory, and its reply to be recorded; without an answer
            in time the request is sent as it is. The first one waits up to 20, for a memory that this call opens.
        options: other fields of `RetrieveRequest`, such as ``budget_tokens=800``.

    Raises:
        InvalidInput: the client is not one of OpenAI, the memory does not fit it, an argument or an option is wrong,
            or the time-out is not over 0.
            InvalidNamespace: the name.
        StorageError: the data folder cannot be opened.
    """
    http_client: Any = getattr(client, "_client", None)
    if not hasattr(client, "with_options") or not hasattr(http_client, "send"):
        raise InvalidInput("give an OpenAI or AsyncOpenAI of the openai package", field="client")
    check_options(options, _ARGUMENTS)
    check_session(session)
    if placement not in get_args(Placement):
        raise InvalidInput(f"give one of {', '.join(get_args(Placement))}", field="placement")
    settings = ExchangeSettings(
        namespace=None if namespace is None else check_namespace(namespace),
        session=session or new_session(),
        user_name=user_name,
        assistant_name=assistant_name,
        placement=placement,
        options=options,
    )
    opened: Any = _open(memory) if memory is None or isinstance(memory, Path | str) else memory
    calls = LimitedCalls(timeout_seconds, first_seconds=0 if opened is memory else FIRST_WAIT_SECONDS)
    if isinstance(opened, AsyncRecollect) and not hasattr(http_client, "aclose"):
        opened = opened.memory
    check_memory(opened, SyncMemory, is_blocking=not hasattr(http_client, "aclose"))
    wrapped = memory_client(http_client, opened, ModelExchanges(settings), calls)
    return cast(ClientT, cast(Any, client).with_options(http_client=wrapped))


def close_memories() -> None:
    """Close the memories that `wrap` opened; the end of the process does it."""
    with _lock:
        for memory in _opened.values():
            memory.close()
        _opened.clear()


def _open(data: Path | str | None) -> Recollect:
    """Return the memory of a data folder, which all wrapped clients of this process share until it ends."""
    key = None if data is None else str(Path(data).resolve())
    with _lock:
        if not _opened:
            atexit.register(close_memories)
        if key not in _opened:
            _opened[key] = Recollect(data)
        return _opened[key]
