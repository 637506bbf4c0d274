"""Withheld secrets: hides PINs, codes and passwords of recalled texts unless their speaker asks for just that one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from hashlib import blake2b

from msgspec.structs import replace

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.whose_words import speakers_of
from recollect.events.intake.asked_secrets import SecretQuestion
from recollect.events.intake.screening import SecretPolicies
from recollect.events.intake.secret_formats import Secret
from recollect.events.intake.secrets import mark, probable_secrets, redact
from recollect.events.late_pattern import late_pattern
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.projector.predicates import normalised

#: The speaker of a user's message without a name.
_UNNAMED = "user"


class SecretOwners:
    """The users of a namespace, and who of them asks.

    In a namespace of one user everything is that user's. With several, a secret is shown only to the user who stated
    it; without the name of the asker, to no user. Documents belong to all users.
    """

    def __init__(self, context: SearchContext) -> None:
        self._context = context
        # The session alone does not identify the asker: several users may speak in it.
        self._asker = normalised(context.request.speaker or "")

    @cached_property
    def is_alone(self) -> bool:
        """Return whether the namespace has no user other than the asker."""
        return not speakers_of(self._context).several

    def owns(self, item: Item) -> bool:
        """Return whether the user who asks stated an item."""
        if item.provenance == "document":
            return True
        if item.namespace != self._context.namespace:
            # The users of another namespace are not known here.
            return normalised(item.speaker or "") in (self._asker or _UNNAMED, _UNNAMED)
        if self.is_alone:
            return True
        return self._asker not in ("", _UNNAMED) and self._speakers_of(item) == {self._asker}

    def _speakers_of(self, item: Item) -> set[str]:
        """Return the users who stated an item; others than users are named by their role."""
        if item.kind == "episode" and item.speaker is not None and item.tier == "raw":
            return {normalised(item.speaker) if item.provenance == "user" else f"the {item.provenance}"}
        episodes = self._context.snapshot.episodes
        details = [episodes.details(version) for version in episodes.versions_of(item.source_events)]
        return {normalised(it.speaker) if it.role == "user" else f"the {it.role}" for it in details}


#: Texts whose secrets are cached, about 200 bytes each: finding them takes half a millisecond in a long message.
_TEXTS_MAX = 20_000
_DIGEST_BYTES = 16
#: Characters of a withheld value that is withheld in other texts as well: three digits are many things.
_VALUE_CHARS_MIN = 4
_TOKEN = late_pattern(r"[^\s,.;:!?()\[\]\"'“”„«»]+")
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
        return [_with_texts(item, self._without_values, self._without_values) for item in filtered]

    def _without_values(self, text: str) -> str:
        """Return a text with the mark of each withheld value in its place."""
        if not any(value in text for value in self._marks):
            return text
        return _TOKEN.sub(lambda match: self._marks.get(match.group(), match.group()), text)

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
