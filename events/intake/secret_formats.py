"""Secret formats: finds keys, private keys, cards, accounts and passwords in addresses by their own form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from stdnum import iban, luhn  # pyright: ignore[reportMissingTypeStubs] -- the package has no types

from recollect.events.intake.payload_lines import line_numbers, lines_with
from recollect.events.late_pattern import late_pattern


class Secret(NamedTuple):
    """A secret within a text: its place and its kind, such as `card`."""

    start: int
    end: int
    kind: str


#: Keys by the prefix that their issuer documents, with the length that it documents, or a lower one.
_KEY = late_pattern(
    r"(?<![A-Za-z0-9_-])(?:"
    r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"  # Amazon
    r"|gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_\w{22,255}"
    r"|gl(?:pat|dt|rt|sa|cbt|ptt|oas)-[\w-]{20,255}|glsa_[A-Za-z0-9_]{32,255}"  # GitLab, Grafana
    r"|sk-(?=[\w-]{0,60}\d)[\w-]{20,255}"  # OpenAI, Anthropic, OpenRouter; a digit, unlike `sk-learn-based-something`
    r"|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,255}|whsec_[A-Za-z0-9+/=]{24,255}"  # Stripe
    r"|xox[abeoprs]-(?=[\w-]{0,60}\d)[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{20,255}"  # Slack
    r"|AIza[\w-]{35}|GOCSPX-[\w-]{20,64}|ya29\.[\w-]{30,255}"  # Google
    r"|hf_[A-Za-z0-9]{30,64}|gsk_[A-Za-z0-9]{30,255}|r8_[A-Za-z0-9]{30,64}|pplx-[A-Za-z0-9]{30,64}|xai-[A-Za-z0-9]{40,255}"
    r"|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,255}|dckr_pat_[\w-]{20,64}"
    r"|SG\.[\w-]{16,32}\.[\w-]{32,64}|SK[0-9a-f]{32}(?![0-9a-f])|AC[0-9a-f]{32}(?![0-9a-f])"  # SendGrid, Twilio
    r"|do[opr]_v1_[0-9a-f]{64}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|dapi[0-9a-f]{32}|hvs\.[\w-]{24,255}"
    r"|\d{8,10}:AA[\w-]{33}"  # Telegram
    r"|lin_api_[A-Za-z0-9]{30,64}|ntn_[A-Za-z0-9]{40,64}|sq0(?:atp|csp)-[\w-]{22,64}|key-[0-9a-f]{32}"
    r"|ATATT3[\w=-]{50,255}|NRAK-[A-Z0-9]{27}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|AGE-SECRET-KEY-1[A-Z0-9]{58}"
    r"|rcl_[A-Za-z0-9]{1,32}_[\w-]{32,64}"  # Recollect
    r")"
)
_TOKEN = late_pattern(r"(?<![\w-])eyJ[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{10,1000}")
_PEM_BEGIN = late_pattern(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = late_pattern(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
#: `user:password@` of an address: the password.
_URL_PASSWORD = late_pattern(
    r"(?<![\w+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@?#]{0,100}:([^\s/@]{1,200})@(?=[\w\[])"
)
#: Passwords of examples: a variable, or the word itself.
_PLACEHOLDER = late_pattern(
    r"\A(?:[<{$*%.]|x+$|(?:your|my|test|example|user)?[-_]?(?:pass(?:word|wd)?|pwd|secret)$)", re.IGNORECASE
)
#: 12 to 19 digits, in groups of four as cards have them, in those of American Express, or without spaces.
_CARD = late_pattern(
    r"(?<![\w.,+-])(?:\d{12,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,4}(?:\1\d{1,3})?|\d{4}([ -])\d{6}\2\d{4,5})"
    r"(?![\w-]|[.,]\d)"
)
#: The issuers' prefixes and lengths: Visa, Mastercard, American Express, Diners, Discover, JCB, UnionPay, Maestro.
_CARD_NUMBER = late_pattern(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[689]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}"
    r"|(?:50|5[6-9]|6[37])\d{10,17}"
)
_IBAN = late_pattern(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}")
_IBAN_CHARS_MIN = 15
_LETTER_OR_DIGIT = late_pattern(r"[A-Za-z0-9]")


#: What every key has, and what every card and account has.
_LONG_RUN = late_pattern(r"[A-Za-z0-9_.:-]{15}")
_DIGITS = late_pattern(r"\d[ -]?\d[ -]?\d[ -]?\d")
#: The letters of `_LONG_RUN` as `a`, and its shortest match. Finding that in a translated text takes 0.4 µs for a
#: message; the pattern, which begins again at each letter of a word, takes 2.
_RUN_LETTERS = bytes(97 if _LONG_RUN.match(chr(byte) * 15) else 10 if byte == 10 else 32 for byte in range(256))
_RUN = b"a" * 15
#: What cards and accounts have, in the same way: twelve digits in a row when spaces and hyphens are removed, or
#: two letters and two digits. Years and times, which every tenth message has, are neither.
_DIGIT_LETTERS = bytes(48 if 48 <= byte < 58 else 10 if byte == 10 else 32 for byte in range(256))
_CARD_DIGITS = b"0" * 12
_LETTERS_AND_DIGITS = bytes(
    48 if 48 <= byte < 58 else 65 if byte < 128 and chr(byte).isalpha() else 10 if byte == 10 else 32
    for byte in range(256)
)
_ACCOUNT_BEGIN = b"AA00"
#: Characters of a key, at least; no key has white space.
_KEY_CHARS_MIN = 15
_DIGIT_RUN = late_pattern(r"\d{2,}")
#: Digits that a card begins with, and letters before the first digits of an account.
_CARD_DIGITS_MIN = 4
_COUNTRY_LETTERS = 2


def may_have_format(text: str) -> bool:
    """Return whether `text` can hold a secret with a form of its own; cheap, for most texts hold none."""
    if "://" in text or "PRIVATE KEY" in text:
        return True
    encoded = text.encode(errors="replace")
    return _has_long_run(encoded) or _may_have_number(text, encoded)


def _may_have_number(text: str, encoded: bytes) -> bool:
    """Return whether `text` can hold the number of a card or of an account."""
    if not text.isascii():
        # Other scripts have digits of their own.
        return _DIGITS.search(text) is not None
    return _ACCOUNT_BEGIN in encoded.translate(_LETTERS_AND_DIGITS) or _CARD_DIGITS in encoded.translate(
        _DIGIT_LETTERS, b" -"
    )


def secrets_by_format(text: str) -> Iterator[Secret]:
    """Yield the secrets of `text` that their form gives away: a prefix, a check digit, a frame."""
    encoded = text.encode(errors="replace")
    if _has_long_run(encoded):
        yield from _keys(text)
    if "eyJ" in text:
        yield from (Secret(*match.span(), "token") for match in _TOKEN.finditer(text))
    if "PRIVATE KEY" in text:
        yield from _private_keys(text)
    if "://" in text:
        for match in _URL_PASSWORD.finditer(text):
            if not _PLACEHOLDER.match(match[1]):
                yield Secret(*match.span(1), "password")
    if not _may_have_number(text, encoded):
        return
    # Patterns are tried only where digits begin: a third of the time of a search of the whole text.
    runs = [match.span() for match in _DIGIT_RUN.finditer(text)]
    for match in matches_at(_CARD, text, (start for start, end in runs if end - start >= _CARD_DIGITS_MIN)):
        digits = "".join(filter(str.isdigit, match[0]))
        if _CARD_NUMBER.fullmatch(digits) and len(set(digits)) > 1 and luhn.is_valid(digits):
            yield Secret(*match.span(), "card")
    yield from _accounts(text, [start - _COUNTRY_LETTERS for start, _ in runs if start >= _COUNTRY_LETTERS])


def _has_long_run(encoded: bytes) -> bool:
    """Return whether a text has what every key has."""
    return _RUN in encoded.translate(_RUN_LETTERS)


def lines_with_formats(lines: str) -> set[int]:
    """Return the numbers of the lines for which `may_have_format` is true, of many lines in one pass.

    The lines are all of ASCII, or none is.
    """
    encoded = lines.encode()
    numbers = set[int]().union(
        lines_with(b"://", encoded),
        lines_with(b"PRIVATE KEY", encoded),
        lines_with(_RUN, encoded.translate(_RUN_LETTERS)),
    )
    if not lines.isascii():
        return numbers.union(line_numbers(lines, (match.start() for match in _DIGITS.finditer(lines))))
    return numbers.union(
        lines_with(_ACCOUNT_BEGIN, encoded.translate(_LETTERS_AND_DIGITS)),
        lines_with(_CARD_DIGITS, encoded.translate(_DIGIT_LETTERS, b" -")),
    )


def matches_at(pattern: re.Pattern[str], text: str, starts: Iterable[int]) -> Iterator[re.Match[str]]:
    """Yield the matches that begin at `starts`, ascending, without overlaps."""
    position = 0
    for start in starts:
        match = pattern.match(text, start) if start >= position else None
        if match is not None:
            position = match.end()
            yield match


def _keys(text: str) -> Iterator[Secret]:
    """Yield the keys by their prefixes, searched in long words only: a fifth of the time of a search of the text."""
    position = 0
    for word in text.split():
        if len(word) >= _KEY_CHARS_MIN:
            start = text.index(word, position)
            position = start + len(word)
            yield from (Secret(*match.span(), "key") for match in _KEY.finditer(text, start, position))


def _private_keys(text: str) -> Iterator[Secret]:
    """Yield the PEM blocks; one without an end is a secret to the end of the text."""
    position = 0
    while (begin := _PEM_BEGIN.search(text, position)) is not None:
        end = _PEM_END.search(text, begin.end())
        position = len(text) if end is None else end.end()
        yield Secret(begin.start(), position, "private key")


def _accounts(text: str, starts: Iterable[int]) -> Iterator[Secret]:
    """Yield the IBANs. Words after one may look like its continuation, so its end is where the check digits agree.

    Parameters:
        starts: where accounts may begin, ascending.
    """
    position = 0
    for start in starts:
        match = _IBAN.match(text, start) if start >= position else None
        if match is None:
            continue
        places = [match.start() + place.end() for place in _LETTER_OR_DIGIT.finditer(match[0])]
        characters = "".join(_LETTER_OR_DIGIT.findall(match[0]))
        lengths = range(len(characters), _IBAN_CHARS_MIN - 1, -1)
        length = next((length for length in lengths if iban.is_valid(characters[:length])), None)
        position = match.start() + 2 if length is None else places[length - 1]
        if length is not None:
            yield Secret(match.start(), position, "iban")
