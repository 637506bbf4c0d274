"""Withheld secrets: hides PINs, codes and passwords of recalled texts unless the query asks for one of their kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

from recollect.api.retrieval.contract.result import Item
from recollect.events.intake.screening import SecretPolicies
from recollect.events.intake.secret_formats import Secret
from recollect.events.intake.secrets import find_secrets, redact
from recollect.events.intake.stated_secrets import requested_kinds
from recollect.events.storage.bounded_cache import BoundedCache

#: Texts whose secrets are cached, about 200 bytes each: finding them takes half a millisecond in a long message.
_TEXTS_MAX = 20_000
_DIGEST_BYTES = 16
#: The secrets of the texts shown last, by the digest of the text, so that no text stays in memory.
_cached_secrets: BoundedCache[bytes, Sequence[Secret]] = BoundedCache(_TEXTS_MAX)


class SecretFilter:
    """Hides the secrets of one namespace's texts that its policies, or the query, do not allow to be shown.

    A secret must not come along with something else: who asks about a day at the bank is not shown the PIN of that day.
    """

    def __init__(self, policies: SecretPolicies, query: str) -> None:
        # The log of another policy, or of a time before it, may hold what is redacted now.
        redacted = policies.kinds("redact")
        hidden = policies.kinds("label") - requested_kinds(query)
        self._marks = dict.fromkeys(redacted, "redacted") | dict.fromkeys(hidden, "hidden")

    def text(self, text: str) -> str:
        """Return a text with marks in place of the secrets that are not shown."""
        secrets = _secrets(text) if self._marks else ()
        return redact(text, secrets, self._marks) if secrets else text

    def items(self, items: Sequence[Item]) -> list[Item]:
        """Return the items without the secrets that are not shown."""
        return [self._item(item) for item in items]

    def _item(self, item: Item) -> Item:
        """Return one item, and its sources, without the secrets that are not shown."""
        text = self.text(item.text)
        sources = tuple(source._replace(text=self.text(source.text)) for source in item.sources)
        return item if text == item.text and sources == item.sources else replace(item, text=text, sources=sources)


def _secrets(text: str) -> Sequence[Secret]:
    """Return the secrets of a text, which are found once."""
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()
    secrets = _cached_secrets.get(digest)
    if secrets is None:
        secrets = tuple(find_secrets(text))
        _cached_secrets.put(digest, secrets)
    return secrets
