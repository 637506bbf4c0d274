"""Withheld secrets: hides PINs, codes and passwords of recalled texts unless their speaker asks for just that one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b

from recollect.api.retrieval.contract.result import Item
from recollect.events.intake.asked_secrets import SecretQuestion
from recollect.events.intake.screening import SecretPolicies
from recollect.events.intake.secret_formats import Secret
from recollect.events.intake.secrets import mark, probable_secrets, redact
from recollect.events.storage.bounded_cache import BoundedCache

#: Texts whose secrets are cached, about 200 bytes each: finding them takes half a millisecond in a long message.
_TEXTS_MAX = 20_000
_DIGEST_BYTES = 16
#: Characters of a withheld value that is withheld in other texts as well: three digits are many things.
_VALUE_CHARS_MIN = 4
_TOKEN = re.compile(r"[^\s,.;:!?()\[\]\"'“”„«»]+")
#: The secrets of the texts shown last, by the digest of the text, so that no text stays in memory.
_cached_secrets: BoundedCache[bytes, Sequence[Secret]] = BoundedCache(_TEXTS_MAX)


class SecretFilter:
    """Hides the secrets of one namespace's texts that its policies, or the query, do not allow to be shown.

    A secret is shown only when it is asked for: a question about a day at the bank does not show the PIN of that day.

    Parameters:
        owns: returns whether the asker stated an item; None: everyone may ask.
    """

    def __init__(self, policies: SecretPolicies, query: str, *, owns: Callable[[Item], bool] | None = None) -> None:
        # The log of another policy, or of a time before it, may hold what is redacted now.
        self._redacted = policies.kinds("redact")
        self._hidden = policies.kinds("label")
        self._question = SecretQuestion(query)
        self._owns = owns
        #: The mark of each withheld value.
        self._marks: dict[str, str] = {}

    def text(self, text: str, *, is_own: Callable[[], bool] = lambda: True) -> str:
        """Return a text with marks in place of the secrets that are not shown.

        Parameters:
            is_own: returns whether the asker stated it; called only for a text with secrets.
        """
        if not (self._redacted or self._hidden):
            return text
        secrets = _secrets(text)
        if not secrets:
            return text
        marks = dict.fromkeys(self._redacted, "redacted") | dict.fromkeys(self._hidden, "hidden")
        shown = set(self._question.requested(text, secrets))
        if shown and not is_own():
            shown = set[Secret]()
        withheld = [it for it in secrets if it.kind in marks and (it.kind in self._redacted or it not in shown)]
        for it in withheld:
            if it.end - it.start >= _VALUE_CHARS_MIN:
                self._marks[text[it.start : it.end]] = mark(marks[it.kind], it.kind)
        return redact(text, withheld, marks)

    def items(self, items: Sequence[Item]) -> list[Item]:
        """Return the items without the secrets that are not shown, and without those of one in the words of another."""
        filtered = [self._item(item) for item in items]
        if not self._marks:
            return filtered
        hide = partial(_TOKEN.sub, lambda match: self._marks.get(match.group(), match.group()))
        return [_with_texts(item, hide, hide) for item in filtered]

    def _item(self, item: Item) -> Item:
        """Return one item, and its sources, without the secrets that are not shown."""
        own = partial(self.text, is_own=partial(self._is_own, item))
        if item.later is None:
            return _with_texts(item, own, own)
        of_later = replace(item, kind="fact", source_events=(item.later.source_event,))
        return _with_texts(item, own, partial(self.text, is_own=partial(self._is_own, of_later)))

    def _is_own(self, item: Item) -> bool:
        return self._owns is None or self._owns(item)


def _with_texts(item: Item, of_item: Callable[[str], str], of_later: Callable[[str], str]) -> Item:
    """Return an item whose texts a function has changed, and that of a later statement another one."""
    text, short = of_item(item.text), None if item.short is None else of_item(item.short)
    sources = tuple(source._replace(text=of_item(source.text)) for source in item.sources)
    later = None if item.later is None else replace(item.later, text=of_later(item.later.text))
    if (text, short, sources, later) == (item.text, item.short, item.sources, item.later):
        return item
    return replace(item, text=text, short=short, sources=sources, later=later)


def _secrets(text: str) -> Sequence[Secret]:
    """Return the secrets of a text, which are found once."""
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()
    secrets = _cached_secrets.get(digest)
    if secrets is None:
        secrets = tuple(probable_secrets(text))
        _cached_secrets.put(digest, secrets)
    return secrets
