"""Recall echoes: detects messages that repeat memories recalled in their session, so that they are not stored again.

A bot that puts memories into its prompt, and stores its prompts and answers, stores its memories again, and each round
makes them more frequent. Contexts with their fence are removed before the append; this finds those without one.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from hashlib import blake2b, sha256
from typing import Any

import orjson
import uuid_utils

from recollect.api.retrieval.contract.result import Item
from recollect.events.envelope import EventDraft
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.events.validation import draft
from recollect.projections.text.words import folded_words

#: Words of a shingle, and the share of a text's shingles that a memory has, from which the text repeats it. On real
#: conversations all verbatim echoes were found, and none of 967 other turns (PRIVACY §3.4).
_SHINGLE_WORDS = 5
_CONTAINMENT_MIN = 0.5
#: Words of a text that is compared, at least: people repeat short sentences on their own.
_WORDS_MIN = 8
#: Words of a user's text that repeats one memory, at least: users repeat themselves, but do not quote a page by heart.
_USER_WORDS_MIN = 25
#: Contexts of a session that are kept, and the shingles of all sessions: 40 MB. Characters of one memory that are read.
_CONTEXTS_MAX = 5
_SHINGLES_MAX = 400_000
_CHARS_MAX = 4_000
_DIGEST_BYTES = 16

#: A namespace and a session.
_Key = tuple[str, str | None]
#: The digests of the shingles of each memory of a context, by the memory's id.
_Context = dict[str, frozenset[int]]


class RecallEchoes:
    """What was recalled lately, by session. Safe to use from many threads; other processes do not know of it."""

    def __init__(self) -> None:
        self._contexts = BoundedCache[_Key, tuple[_Context, ...]](_SHINGLES_MAX, _shingle_count)
        #: The shingles of the memories recalled last, by the digest of the text; contexts share them.
        self._shingles = BoundedCache[bytes, frozenset[int]](_SHINGLES_MAX, len)
        self._adding = threading.Lock()

    def add(self, namespace: str, session_id: str | None, items: Sequence[Item]) -> None:
        """Keep the shingles of a context that was recalled in a session."""
        context = {item.id: self._shingles_of(item.text[:_CHARS_MAX]) for item in items}
        if context:
            with self._adding:
                contexts = self._contexts.get((namespace, session_id)) or ()
                self._contexts.put((namespace, session_id), (*contexts[1 - _CONTEXTS_MAX :], context))

    def drop(self, namespace: str) -> None:
        """Drop what was recalled in the sessions of a namespace, since some of it was erased."""
        with self._adding:
            self._contexts.remove(lambda key: key[0] == namespace)
            self._shingles.clear()

    def with_echoes(self, namespace: str, drafts: Sequence[EventDraft]) -> list[EventDraft]:
        """Return the drafts, and after them the status `echo` for each message that repeats recalled memories."""
        if not self._contexts:
            return [*drafts]
        marked: list[EventDraft] = []
        changes: list[EventDraft] = []
        for event in drafts:
            memory_ids = self._repeated(namespace, event)
            marked.append(event._replace(id=event.id or str(uuid_utils.uuid7())) if memory_ids else event)
            if memory_ids:
                changes.append(_echo(marked[-1], memory_ids))
        return [*marked, *changes]

    def _shingles_of(self, text: str) -> frozenset[int]:
        """Return the shingles of a memory's text; the same memories are recalled again and again."""
        digest = blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()
        shingles = self._shingles.get(digest)
        if shingles is None:
            shingles = _shingles(folded_words(text))
            self._shingles.put(digest, shingles)
        return shingles

    def _repeated(self, namespace: str, event: EventDraft) -> list[str]:
        """Return the ids of the recalled memories that a message repeats; empty for other events."""
        if event.type not in ("message.added", "observation.recorded"):
            return []
        contexts = self._contexts.get((namespace, event.session_id))
        if contexts is None:
            return []
        payload: dict[str, Any] = orjson.loads(event.payload)
        text: object = payload.get("text")
        words = folded_words(text) if isinstance(text, str) else []
        if len(words) < _WORDS_MIN:
            return []
        own = _shingles(words)
        recalled = (memory for context in contexts for memory in context.items())
        shared = {id: own & shingles for id, shingles in recalled if not own.isdisjoint(shingles)}
        if len(frozenset[int]().union(*shared.values())) < _CONTAINMENT_MIN * len(own):
            return []
        is_own_word = payload.get("role") == "user" and len(shared) < 2 and len(words) < _USER_WORDS_MIN
        return [] if is_own_word else sorted(shared)


def _shingles(words: Sequence[str]) -> frozenset[int]:
    """Return the digests of the runs of five words of a text; they hold in this process only."""
    return frozenset(map(hash, zip(*(words[start:] for start in range(_SHINGLE_WORDS)), strict=False)))


def _shingle_count(contexts: Sequence[_Context]) -> int:
    """Return the number of shingles of a session's contexts."""
    return sum(len(shingles) for context in contexts for shingles in context.values())


def _echo(event: EventDraft, memory_ids: Sequence[str]) -> EventDraft:
    """Return the event that gives the message of `event` the status `echo`."""
    return draft(
        {
            "id": f"echo:{sha256(str(event.id).encode(errors='replace')).hexdigest()[:32]}",
            "type": "memory.status_changed",
            "actor": "intake",
            "causation_id": event.id,
            "payload": {
                "memory_id": event.id,
                "status": "echo",
                "reason": f"repeats {', '.join(memory_ids[:10])}",
            },
        }
    )._replace(occurred_at_us=event.occurred_at_us)
