"""Webhook store: the webhooks of a data folder, in one file that only its owner reads, since it has their secrets.

They are not in the log, which never forgets. Several machines on one log share the file, as they share the tokens.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
from msgspec import Struct
from msgspec.structs import asdict

from recollect.events.errors import ForeignFile, InvalidInput, NotFound
from recollect.events.late_pattern import late_pattern
from recollect.events.limits import check_namespace
from recollect.events.storage.atomic_file import write_atomically
from recollect.events.storage.database import storage_errors
from recollect.events.storage.file_lock import file_lock
from recollect.jobs.following.feed import check_types

WEBHOOKS_FILE = "webhooks.json"
_NAME = late_pattern(r"[a-z0-9-]{1,40}")
_SECRET_BYTES = 32
_SECRET_PREFIX = "whsec_"  # noqa: S105 -- of all secrets, by https://www.standardwebhooks.com
_URL_CHARS_MAX = 2_000
#: Addresses that stand for one of IPv4, by RFC 6052.
_NAT64 = IPv6Network("64:ff9b::/96")
#: Webhooks of a data folder.
_WEBHOOKS_MAX = 1_000


class Webhook(Struct, frozen=True, kw_only=True):
    """A program that gets the items of a feed over HTTP."""

    name: str
    namespace: str
    url: str
    #: Signs what is sent: `whsec_` and 32 random bytes in base64.
    secret: str
    types: tuple[str, ...]
    knowledge: bool
    #: Whether its address may be one of a private network.
    allows_private: bool

    def key(self) -> bytes:
        """Return the key of its signatures."""
        return base64.b64decode(self.secret.removeprefix(_SECRET_PREFIX))


class WebhookStore:
    """The webhooks in the data folder `data`. Safe to use from many threads and processes."""

    def __init__(self, data: Path) -> None:
        self._path = data / WEBHOOKS_FILE
        self._signature: tuple[int, int, int] | None = None
        self._webhooks: dict[str, Webhook] = {}

    def webhooks(self) -> dict[str, Webhook]:
        """Return the webhooks by name, read again when the file has changed.

        Raises:
            ForeignFile: the file is damaged. StorageError: it cannot be read.
        """
        with storage_errors(self._path):
            try:
                status = self._path.stat()
            except FileNotFoundError:
                return {}
            signature = (status.st_mtime_ns, status.st_size, status.st_ino)
            if signature != self._signature:
                self._webhooks = _decoded(self._path.read_bytes())
                self._signature = signature
        return self._webhooks

    def add(
        self,
        namespace: str,
        url: str,
        *,
        name: str | None,
        types: tuple[str, ...],
        knowledge: bool,
        allows_private: bool,
    ) -> Webhook:
        """Store a webhook with a new secret, and return it.

        Raises:
            InvalidInput: an argument is wrong, or the name is taken.
        """
        check_types(types, knowledge=knowledge)
        webhook = Webhook(
            name=f"hook-{secrets.token_hex(3)}" if name is None else name,
            namespace=check_namespace(namespace),
            url=check_url(url),
            secret=_SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode(),
            types=types,
            knowledge=knowledge,
            allows_private=allows_private,
        )
        if not _NAME.fullmatch(webhook.name):
            raise InvalidInput("give 1 to 40 lower case letters, digits and -", field="--name")
        with self._changing() as webhooks:
            if webhook.name in webhooks:
                raise InvalidInput(f"{webhook.name!r} is taken; give another name", field="--name")
            if len(webhooks) >= _WEBHOOKS_MAX:
                raise InvalidInput(f"there are {_WEBHOOKS_MAX} webhooks, the most; remove one", field="webhook")
            webhooks[webhook.name] = webhook
        return webhook

    def remove(self, name: str) -> Webhook:
        """Remove a webhook, and return it; raise `NotFound` when there is none of this name."""
        with self._changing() as webhooks:
            self.get(name)
            return webhooks.pop(name)

    def get(self, name: str) -> Webhook:
        """Return a webhook; raise `NotFound` when there is none of this name."""
        webhook = self.webhooks().get(name)
        if webhook is None:
            raise NotFound("there is no webhook of this name; `recollect webhook list` has the names", field="name")
        return webhook

    @contextmanager
    def _changing(self) -> Generator[dict[str, Webhook]]:
        """Yield the webhooks and store them afterwards; other changes wait."""
        with file_lock(self._path.with_name(f"{WEBHOOKS_FILE}.lock")):
            webhooks = dict(self.webhooks())
            yield webhooks
            content = {"version": 1, "webhooks": [asdict(webhook) for webhook in webhooks.values()]}
            with storage_errors(self._path):
                write_atomically(self._path, orjson.dumps(content, option=orjson.OPT_INDENT_2))


def check_url(url: str) -> str:
    """Return the address of a webhook; raise `InvalidInput` when it is not one of http or https."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or len(url) > _URL_CHARS_MAX or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput("give an address such as https://example.org/hook", field="url")
    if "@" in urlsplit(url).netloc:
        raise InvalidInput("has a name or a password; leave them out, what is sent is signed", field="url")
    return url


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the public Internet."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        # A gateway sends what goes to these to an address of IPv4.
        for embedded in (ip.ipv4_mapped, ip.sixtofour, IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else None):
            if embedded is not None:
                return is_public(str(embedded))
    return ip.is_global and not ip.is_multicast


def _decoded(content: bytes) -> dict[str, Webhook]:
    try:
        records: list[dict[str, Any]] = orjson.loads(content)["webhooks"]
        for record in records:
            record["types"] = tuple(record["types"])
        webhooks = [Webhook(**record) for record in records]
        return {webhook.name: webhook for webhook in webhooks}
    except (ValueError, KeyError, TypeError) as error:
        raise ForeignFile(f"{WEBHOOKS_FILE} is damaged; restore it, or delete it and add the webhooks again") from error
