"""Screening: removes private sections, secrets and recalled contexts from events before they are appended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, cast

import orjson
from msgspec import Struct

from recollect.events.catalogue import LABELLED_TYPES
from recollect.events.envelope import EventDraft
from recollect.events.intake.payload_lines import line_numbers, to_read
from recollect.events.intake.private_sections import remove_private
from recollect.events.intake.recalled_context import TAG, strip_recalled
from recollect.events.intake.secret_formats import lines_with_formats, may_have_format
from recollect.events.intake.secrets import CREDENTIAL_KINDS, EVERYDAY_KINDS, find_secrets, redact
from recollect.events.intake.stated_secrets import lines_stating_secrets, may_state_secrets
from recollect.events.late_pattern import late_pattern

#: What happens with a secret: nothing; it is kept, and contexts show it only when asked for it; it is never stored.
SecretPolicy = Literal["off", "label", "redact"]

#: Fields of payloads that hold ids, not texts.
_IDS = frozenset({"memory_id", "document_id", "trace_id", "memory_ids", "source_events", "labels", "echo_of"})
#: White space as JSON writes it.
_ESCAPED_SPACE = late_pattern(r"\\[nrtbf]")
#: The tags of private sections and of contexts.
_TAGS = late_pattern(rf"<\s{{0,4}}private|<{TAG}", re.IGNORECASE)


class SecretPolicies(Struct, frozen=True, kw_only=True):
    """The policies of one namespace."""

    #: Of keys, cards, accounts and passwords.
    credentials: SecretPolicy = "redact"
    #: Of PINs and codes of everyday life.
    everyday: SecretPolicy = "label"

    def kinds(self, policy: SecretPolicy) -> frozenset[str]:
        """Return the kinds of secrets that have `policy`."""
        credentials = CREDENTIAL_KINDS if self.credentials == policy else frozenset[str]()
        return credentials | EVERYDAY_KINDS if self.everyday == policy else credentials


def matching_policy(
    namespace: str, default: SecretPolicy, by_namespace: Sequence[tuple[str, SecretPolicy]]
) -> SecretPolicy:
    """Return the policy of the first pattern that `namespace` matches, such as ``team-*``; `default` for no match."""
    for pattern, policy in by_namespace:
        if fnmatchcase(namespace, pattern):
            return policy
    return default


def screen(draft: EventDraft, policies: SecretPolicies) -> EventDraft:
    """Return the draft without private sections and recalled contexts, with its secrets treated by `policies`.

    Screening a draft again changes nothing. Labels name the kinds of secrets, such as ``secret: card``.
    """
    if not _may_change(draft.payload.decode()):
        return draft
    payload: dict[str, Any] = orjson.loads(draft.payload)
    kinds: set[str] = set()
    screened = {name: value if name in _IDS else _screened(value, policies, kinds) for name, value in payload.items()}
    if draft.type in LABELLED_TYPES and kinds:
        screened["labels"] = sorted({*screened.get("labels", ()), *(f"secret: {kind}" for kind in kinds)})
    return draft if screened == payload else draft._replace(payload=orjson.dumps(screened))


def _may_change(payload: str) -> bool:
    """Return whether a text in a JSON payload can hold a secret or a tag; cheap, for most hold none."""
    if may_have_format(payload) or may_state_secrets(payload) or ("<" in payload and _TAGS.search(payload)):
        return True
    # A name at the beginning of a line has the letter of the escape before it: `\npw: …`.
    return "\\" in payload and may_state_secrets(_ESCAPED_SPACE.sub(" ", payload))


def screen_all(drafts: Sequence[EventDraft], policies: SecretPolicies) -> list[EventDraft]:
    """Return the drafts, each screened."""
    screened = list(drafts)
    for place in to_read(drafts, _lines_to_change):
        screened[place] = screen(drafts[place], policies)
    return screened


def _lines_to_change(payloads: str) -> set[int]:
    """Return the numbers of the lines, each a payload, that `_may_change`, of all in one pass."""
    numbers = lines_with_formats(payloads) | lines_stating_secrets(payloads)
    if "<" in payloads:
        numbers.update(line_numbers(payloads, (match.start() for match in _TAGS.finditer(payloads))))
    if "\\" in payloads:
        lines = payloads.split("\n")
        # One payload of twelve has an escape; a second search of all of them took a fifth of the screening.
        places = [place for place, line in enumerate(lines) if "\\" in line]
        escaped = "\n".join([lines[place] for place in places])
        numbers.update(map(places.__getitem__, lines_stating_secrets(_ESCAPED_SPACE.sub(" ", escaped))))
    return numbers


def screen_text(text: str, policies: SecretPolicies) -> str:
    """Return a text, such as a query, without private sections and without the secrets that are never stored."""
    return _screened_text(text, policies, set())


def _screened(value: Any, policies: SecretPolicies, kinds: set[str]) -> Any:
    """Return a JSON value with all its texts screened; add the kinds of secrets to `kinds`."""
    if isinstance(value, str):
        return _screened_text(value, policies, kinds)
    if isinstance(value, list):
        return [_screened(item, policies, kinds) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {name: _screened(member, policies, kinds) for name, member in members.items()}
    return value


def _screened_text(text: str, policies: SecretPolicies, kinds: set[str]) -> str:
    """Return a text without private sections and without the secrets that are never stored."""
    text = strip_recalled(text)
    text = remove_private(text) if "private" in text.casefold() else text
    secrets = find_secrets(text)
    if not secrets:
        return text
    kinds |= {secret.kind for secret in secrets} - policies.kinds("off")
    return redact(text, secrets, dict.fromkeys(policies.kinds("redact"), "redacted"))
