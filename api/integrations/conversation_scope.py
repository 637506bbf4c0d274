"""Conversation scope: whose memory and which conversation the requests of a task belong to."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from recollect.events.errors import InvalidInput
from recollect.events.limits import check_namespace


class Scope(NamedTuple):
    """The namespace, the session and the user's name of requests; None: that of the wrapped client."""

    namespace: str | None = None
    session: str | None = None
    user_name: str | None = None


#: The scope of requests outside `conversation`.
_NO_SCOPE = Scope()
#: The scope of the running task or thread.
_SCOPE: ContextVar[Scope] = ContextVar("recollect_scope", default=_NO_SCOPE)


@contextmanager
def conversation(namespace: str, session: str | None = None, user_name: str | None = None) -> Generator[None]:
    """Let the requests in the block belong to a namespace and a session, in this task or thread alone.

    >>> with recollect.conversation("ann", session="s1"):
    ...     client.chat.completions.create(...)

    Parameters:
        namespace: whose memory it is.
        session: the conversation; that of the wrapped client when None.
        user_name: the name of the user; that of the wrapped client when None.

    Raises:
        InvalidInput: the session is not a text. InvalidNamespace: the name, such as None for a user who is not known.
    """
    check_namespace(namespace)
    check_session(session)
    token = _SCOPE.set(Scope(namespace, session, user_name))
    try:
        yield
    finally:
        _SCOPE.reset(token)


def check_session(session: object) -> None:
    """Refuse a session that no message could be recorded in, such as the number of a chat."""
    if not isinstance(session, str | None):
        raise InvalidInput(f"give text, such as str(chat_id), not {type(session).__name__}", field="session")


def running_scope() -> Scope:
    """Return the scope of the running task or thread."""
    return _SCOPE.get()
