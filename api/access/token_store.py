"""Token store: the bearer tokens of a data folder, as hashes in one file that only its owner reads.

The file is small and changes seldom, so a server reads it again when its size or time has changed: a token that is
revoked stops at the next request. It is a file, and not in the log, because the log never forgets and tokens must end,
and because several machines on one log share it as they share other secrets: mounted or copied, named by
`RECOLLECT_TOKENS`.
"""

from __future__ import annotations

import hmac
import os
import secrets
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from recollect.api.access.callers import Caller, Scope, check_patterns, check_scopes
from recollect.events.envelope import now_us, rfc3339
from recollect.events.errors import ForeignFile, InvalidInput, NotFound, ReadOnly, Unauthenticated
from recollect.events.late_pattern import late_pattern
from recollect.events.storage.atomic_file import write_atomically
from recollect.events.storage.database import storage_errors
from recollect.events.storage.file_lock import file_lock

#: `rcl_<id>_<secret>`: secret scanners recognise the beginning; the id can be shown, the secret has 256 random bits.
_TOKEN = late_pattern(r"rcl_([0-9a-z]{12})_([A-Za-z0-9_-]{43})")
_SECRET_BYTES = 32
#: Characters of an id, without those that look alike.
_ID_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
_ID_CHARS = 12
#: Live secrets of one token: the present one, and the one before while a rotation goes on.
_SECRETS_MAX = 2
_DAY_US = 86_400_000_000
_HOUR_US = 3_600_000_000
#: Characters of a token's name.
_NAME_CHARS_MAX = 100


class Token(Struct, frozen=True, kw_only=True):
    """A token, without its secret."""

    id: str
    #: What it is for.
    name: str
    scopes: frozenset[Scope]
    #: The patterns of its namespaces.
    patterns: tuple[str, ...]
    created_at_us: int
    #: The end of the token; None when it has none.
    expires_at_us: int | None
    #: When it was revoked; None while it is not.
    revoked_at_us: int | None
    #: The sha256 of each live secret in hex, with its own end in microseconds, None when it ends with the token.
    digests: tuple[tuple[str, int | None], ...]

    def is_live(self, at_us: int) -> bool:
        """Return whether the token is accepted at `at_us`."""
        return self.revoked_at_us is None and (self.expires_at_us is None or at_us < self.expires_at_us)

    def state(self, at_us: int) -> str:
        """Return `live`, `expired` or `revoked`."""
        if self.revoked_at_us is not None:
            return "revoked"
        return "live" if self.is_live(at_us) else "expired"

    @property
    def caller(self) -> Caller:
        """Return who sends requests with this token."""
        return Caller(id=self.id, scopes=self.scopes, patterns=self.patterns)

    def as_json(self, at_us: int) -> dict[str, Any]:
        """Return the token for a list, without its hashes."""
        return {
            "id": self.id,
            "name": self.name,
            "state": self.state(at_us),
            "scopes": sorted(self.scopes),
            "namespaces": list(self.patterns),
            "created_at": rfc3339(self.created_at_us),
            "expires_at": _time(self.expires_at_us),
            "revoked_at": _time(self.revoked_at_us),
        }


class TokenStore:
    """The tokens in the file `path`. Safe to use from many threads and processes.

    Parameters:
        clock: the present time in microseconds.
    """

    def __init__(self, path: Path, *, clock: Callable[[], int] = now_us) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._signature: tuple[int, int, int] | None = None
        self._tokens: dict[str, Token] = {}

    def is_empty(self) -> bool:
        """Return whether no token was ever created. Revoked and expired ones count: their end must not open a server.

        Raises:
            StorageError: the file cannot be read.
        """
        return not self._current()

    def has_live(self) -> bool:
        """Return whether a token is accepted now."""
        present_us = self._clock()
        return any(token.is_live(present_us) for token in self._current().values())

    def tokens(self) -> list[Token]:
        """Return all tokens, oldest first."""
        return sorted(self._current().values(), key=lambda token: token.created_at_us)

    def id_of(self, text: str) -> str:
        """Return the id of the live token with this name; any other text, such as an id, as it is.

        Raises:
            InvalidInput: several live tokens have the name.
        """
        if text in self._current():
            return text
        ids = [token.id for token in self.tokens() if token.name == text and token.is_live(self._clock())]
        if len(ids) > 1:
            raise InvalidInput(
                f"{len(ids)} live tokens have the name {text!r}; give one of {', '.join(ids)}", field="id"
            )
        return ids[0] if ids else text

    def authenticate(self, text: str) -> Caller:
        """Return the caller of the token `text`.

        Raises:
            Unauthenticated: it is unknown, revoked or expired, in the same words. StorageError: the file.
        """
        parts = _TOKEN.fullmatch(text)
        token = self._current().get(parts[1]) if parts else None
        if parts is not None and token is not None:
            digest, present_us = _digest(parts[2]), self._clock()
            accepted = [
                hmac.compare_digest(digest, stored) and (end_us is None or present_us < end_us)
                for stored, end_us in token.digests
            ]
            if any(accepted) and token.is_live(present_us):
                return token.caller
        raise Unauthenticated("the token is unknown, revoked or expired; ask the operator for a new one")

    def create(
        self, *, name: str, scopes: Sequence[str], patterns: Sequence[str], days: float | None
    ) -> tuple[Token, str]:
        """Store a new token; return it and its text, which cannot be read again.

        Parameters:
            days: the days after which it expires; None for never.

        Raises:
            InvalidInput: a value is wrong. StorageError: the file cannot be written.
        """
        if not name.isprintable() or not 1 <= len(name) <= _NAME_CHARS_MAX:
            raise InvalidInput(f"give 1 to {_NAME_CHARS_MAX} printable characters", field="name")
        present_us = self._clock()
        id, secret = "".join(secrets.choice(_ID_LETTERS) for _ in range(_ID_CHARS)), _new_secret()
        token = Token(
            id=id,
            name=name,
            scopes=check_scopes(scopes),
            patterns=check_patterns(patterns),
            created_at_us=present_us,
            expires_at_us=None if days is None else present_us + round(days * _DAY_US),
            revoked_at_us=None,
            digests=((_digest(secret), None),),
        )
        with self._changing() as tokens:
            tokens[id] = token
        return token, f"rcl_{id}_{secret}"

    def revoke(self, id: str) -> Token:
        """Revoke a token: the next request with it is refused. Raise `NotFound` when there is none."""
        with self._changing() as tokens:
            token = _existing(tokens, id)
            if token.revoked_at_us is None:
                token = tokens[id] = replace(token, revoked_at_us=self._clock(), digests=())
        return token

    def rotate(self, id: str, *, overlap_hours: float) -> tuple[Token, str]:
        """Give a token a new secret; return it and its new text. The old secret ends after `overlap_hours`.

        Raises:
            NotFound: there is no such token, or it is revoked or expired.
        """
        secret, present_us = _new_secret(), self._clock()
        with self._changing() as tokens:
            token = _existing(tokens, id)
            if not token.is_live(present_us):
                raise NotFound("the token is revoked or expired; create another one", field="id")
            end_us = present_us + round(overlap_hours * _HOUR_US)
            # Of several rotations within the overlap, only the latest secret before the new one stays.
            previous = [(digest, end_us) for digest, end in token.digests[-1:] if end is None or end > present_us]
            digests = [*(previous if overlap_hours else []), (_digest(secret), None)]
            token = tokens[id] = replace(token, digests=tuple(digests[-_SECRETS_MAX:]))
        return token, f"rcl_{id}_{secret}"

    def _current(self) -> dict[str, Token]:
        """Return the tokens by id, read again when the file has changed."""
        status = self._status()
        signature = None if status is None else (status.st_mtime_ns, status.st_size, status.st_ino)
        with self._lock:
            if status is None and self._tokens:
                # A server that had tokens must not open itself because a mount is gone.
                raise ForeignFile("the file of tokens is missing; restore it, or end the server and start it again")
            if signature != self._signature:
                self._tokens = {} if status is None else self._read(status.st_mode)
                self._signature = signature
            return self._tokens

    def _status(self) -> os.stat_result | None:
        """Return the status of the file, which every request asks for; None without a file."""
        try:
            return self._path.stat()
        except FileNotFoundError:
            return None
        except OSError:
            with storage_errors(self._path):
                raise

    def _read(self, mode: int) -> dict[str, Token]:
        if os.name != "nt" and mode & 0o022:
            raise ReadOnly("the file of tokens can be changed by other users; restrict it: chmod 600")
        with storage_errors(self._path):
            content = self._path.read_bytes()
        try:
            records: list[dict[str, Any]] = orjson.loads(content)["tokens"]
            return {record["id"]: _token(record) for record in records}
        except (ValueError, KeyError, TypeError, InvalidInput) as error:
            raise ForeignFile("the file of tokens is damaged; restore it, or delete it and create new ones") from error

    @contextmanager
    def _changing(self) -> Generator[dict[str, Token]]:
        """Yield the tokens and store them afterwards; other changes wait."""
        with file_lock(self._path.with_name(f"{self._path.name}.lock")):
            tokens = dict(self._current())
            yield tokens
            content = {"version": 1, "tokens": [_record(token) for token in tokens.values()]}
            with storage_errors(self._path):
                write_atomically(self._path, orjson.dumps(content, option=orjson.OPT_INDENT_2))
        with self._lock:
            self._signature = (0, 0, 0)


def _existing(tokens: dict[str, Token], id: str) -> Token:
    if id not in tokens:
        raise NotFound(
            "there is no token with this id, and no live one with this name; see recollect token list", field="id"
        )
    return tokens[id]


def _new_secret() -> str:
    return secrets.token_urlsafe(_SECRET_BYTES)


def _digest(secret: str) -> str:
    """Return the hash of a secret. It is random, so that no slow hash is needed: 256 bits cannot be guessed."""
    return sha256(secret.encode()).hexdigest()


def _record(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "scopes": sorted(token.scopes),
        "namespaces": list(token.patterns),
        "created_at_us": token.created_at_us,
        "expires_at_us": token.expires_at_us,
        "revoked_at_us": token.revoked_at_us,
        "secrets": [{"sha256": digest, "expires_at_us": end_us} for digest, end_us in token.digests],
    }


def _token(record: dict[str, Any]) -> Token:
    return Token(
        id=record["id"],
        name=record["name"],
        scopes=check_scopes(record["scopes"]),
        patterns=check_patterns(record["namespaces"]),
        created_at_us=record["created_at_us"],
        expires_at_us=record["expires_at_us"],
        revoked_at_us=record["revoked_at_us"],
        digests=tuple((secret["sha256"], secret["expires_at_us"]) for secret in record["secrets"]),
    )


def _time(at_us: int | None) -> str | None:
    return None if at_us is None else rfc3339(at_us)
