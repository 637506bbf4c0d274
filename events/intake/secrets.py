"""Secrets: finds keys, cards, accounts, passwords, PINs and codes in a text, and redacts them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from recollect.events.intake.code_numbers import code_numbers
from recollect.events.intake.code_words import code_words
from recollect.events.intake.secret_formats import Secret, secrets_by_format
from recollect.events.intake.stated_secrets import stated_secrets

#: Kinds that people ask their own memory for: a PIN, the code of a door, the password of the wireless network at home.
EVERYDAY_KINDS = frozenset({"pin", "code"})
#: Kinds that give a stranger access to an account or to money.
CREDENTIAL_KINDS = frozenset({"key", "token", "private key", "card", "card code", "iban", "password", "one-time code"})


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets of `text` in order, without overlaps: a form outweighs the words around it."""
    return _apart((*secrets_by_format(text), *stated_secrets(text)))


def probable_secrets(text: str) -> list[Secret]:
    """Return the secrets of `text`, and the numbers that are probably codes: what is shown without them.

    A number that was never stored for that reason would be lost, so an append looks for the sure ones only.
    """
    return _apart((*find_secrets(text), *code_numbers(text)))


def unsent_secrets(text: str) -> list[Secret]:
    """Return the probable secrets of `text` and the words that are probably passwords: no model gets them.

    A context shows such a word, since half of its owner's questions for it are not recognised.
    """
    return _apart((*find_secrets(text), *code_numbers(text), *code_words(text)))


def _apart(candidates: Iterable[Secret]) -> list[Secret]:
    """Return secrets in their order, without those that overlap one before them."""
    secrets: list[Secret] = []
    for secret in candidates:
        # In order and without overlaps, so only the two neighbours of its place can overlap it.
        place = bisect_left(secrets, secret)
        if (place == 0 or secrets[place - 1].end <= secret.start) and (
            place == len(secrets) or secrets[place].start >= secret.end
        ):
            secrets.insert(place, secret)
    return secrets


def mark(word: str, kind: str) -> str:
    """Return the mark that replaces a secret: ``[redacted: card]``."""
    return f"[{word}: {kind}]"


def redact(text: str, secrets: Sequence[Secret], marks: Mapping[str, str]) -> str:
    """Return `text` with a mark such as ``[redacted: card]`` in place of each secret.

    Parameters:
        marks: the word of the mark by the kinds of secrets; other kinds stay.
    """
    parts: list[str] = []
    position = 0
    for secret in secrets:
        if secret.kind in marks:
            parts += [text[position : secret.start], mark(marks[secret.kind], secret.kind)]
            position = secret.end
    return "".join([*parts, text[position:]])
