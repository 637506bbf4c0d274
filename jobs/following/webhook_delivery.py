"""Webhook delivery: sends an item of a feed to a webhook, signed as https://www.standardwebhooks.com says.

A webhook names a host, and its owner decides to which address the name resolves. So the address is checked at each
delivery, and the connection is made to the one that was checked: no webhook reaches a service of the private network.
"""

from __future__ import annotations

import base64
import hmac
import socket
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from recollect.jobs.following.consumers import Consumer
from recollect.jobs.following.webhook_store import Webhook, is_public

if TYPE_CHECKING:
    import httpx2

#: Attempts in turn before a webhook is parked: with the pauses, some 40 minutes.
ATTEMPTS_MAX = 12
#: Seconds until the connection is made, and until each part of the answer arrives.
_TIMEOUT_SECONDS = 10.0


class DeliveryFailed(Exception):
    """A webhook did not take an item; the message says why, without what was sent."""


class WebhookSender:
    """Sends items to webhooks. Safe to use from many threads."""

    def __init__(self) -> None:
        self._http: httpx2.Client | None = None

    def consumer(self, webhook: Webhook) -> Consumer:
        """Return the consumer that sends the items of a webhook's feed."""
        return Consumer(
            name=f"webhook {webhook.name}",
            handle=lambda _, items: self._send_all(webhook, items),
            reset=None,
            types=webhook.types,
            knowledge=webhook.knowledge,
            attempts_max=ATTEMPTS_MAX,
            namespace=webhook.namespace,
            is_stepwise=True,
        )

    def _send_all(self, webhook: Webhook, items: Sequence[Mapping[str, Any]]) -> None:
        """Send items of one event; raise `DeliveryFailed` when one is not taken."""
        for number, item in enumerate(items):
            position: int = item.get("position") or item["version"]
            self.send(webhook, f"{webhook.name}-{position}-{number}", item)

    def send(self, webhook: Webhook, message_id: str, item: Mapping[str, Any]) -> None:
        """Send one item.

        Parameters:
            message_id: the same one at each attempt, by which a webhook recognises what it has.

        Raises:
            DeliveryFailed: the address is not a public one, or the answer is not one of success.
        """
        # Late: most folders have no webhook.
        import httpx2  # noqa: PLC0415

        body = orjson.dumps(item)
        host, url = _pinned(webhook)
        headers = signed_headers(webhook.key(), message_id, int(time.time()), body) | {"host": host}
        try:
            # Its body is not read.
            with self._client().stream(
                "POST",
                url,
                content=body,
                headers=headers | {"content-type": "application/json", "user-agent": "recollect"},
                extensions={"sni_hostname": urlsplit(webhook.url).hostname},
            ) as response:
                status = response.status_code
        except httpx2.HTTPError as error:
            raise DeliveryFailed(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from error
        if not 200 <= status < 300:
            raise DeliveryFailed(f"the answer is {status}; redirects are not followed")

    def _client(self) -> httpx2.Client:
        # No connection stays open: one to the same address may be of another host. A proxy would resolve names again.
        import httpx2  # noqa: PLC0415

        if self._http is None:
            self._http = httpx2.Client(
                timeout=_TIMEOUT_SECONDS,
                follow_redirects=False,
                trust_env=False,
                limits=httpx2.Limits(max_keepalive_connections=0),
            )
        return self._http


def signed_headers(key: bytes, message_id: str, at_seconds: int, body: bytes) -> dict[str, str]:
    """Return the headers with the id, the time and the signature of a message."""
    signed = f"{message_id}.{at_seconds}.".encode() + body
    signature = base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(at_seconds),
        "webhook-signature": f"v1,{signature}",
    }


def _pinned(webhook: Webhook) -> tuple[str, str]:
    """Return the header `host` of a webhook, and its URL with the address to which the name resolves now.

    Raises:
        DeliveryFailed: the name does not resolve, or to an address of a private network.
    """
    parts = urlsplit(webhook.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        resolved = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise DeliveryFailed(f"the name of the host does not resolve: {error.strerror}") from error
    addresses = [str(entry[4][0]) for entry in resolved]
    if not webhook.allows_private and not all(map(is_public, addresses)):
        raise DeliveryFailed("the host has an address of a private network; add the webhook with --allow-private")
    address = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
    return parts.netloc, parts._replace(netloc=f"{address}:{port}", fragment="").geturl()
