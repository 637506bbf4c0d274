"""Prompt fence: marks recalled text in a prompt as data, and disables imitations of its tags and tokens of models."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from recollect.events.intake.recalled_context import NOTE, TAG
from recollect.events.late_pattern import late_pattern

#: The first and the last line of a fence without a random part.
OPENING = f'<{TAG} note="{NOTE}">'
CLOSING = f"</{TAG}>"

#: Tokens that end or begin the turn of a role in the chat templates of ChatML, Llama, Gemma, Mistral and DeepSeek, and
#: the tags of roles that stand in for them. A tokenizer may read them as its own, also within other text. By their
#: first sign, as the codes below: a search for one sign takes a tenth of the time of a search for several.
_ANGLE_TOKENS = r"<\|[a-z][^\s<>|]{0,40}\|>|<(?:start|end)_of_turn>|</?(?:s|bos|eos|unk|system|assistant)>|<</?sys>>"
_SQUARE_TOKENS = r"\[/?(?:inst|system_prompt|available_tools|tool_(?:calls|results))\]"
#: A tag of the fence, by its letters: case, spaces and signs around them do not matter to a language model; or a token.
_IMITATION = late_pattern(rf"<[^\w<>]{{0,8}}recalled[\W_]{{0,4}}memor|{_ANGLE_TOKENS}|{_SQUARE_TOKENS}")
_ANGLE_TOKEN, _SQUARE_TOKEN = late_pattern(_ANGLE_TOKENS), late_pattern(_SQUARE_TOKENS)
#: What is shown in place of the first sign of an imitation.
_DISABLED = {"<": "‹", "[": "［"}
#: Signs that a language model reads as another: entities of HTML, percent and backslash codes.
_CODES = (
    r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8});?",
    r"%[0-9a-fA-F]{2}",
    r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})",
)
_CODED = late_pattern("|".join(_CODES))
_CODED_BY_FIRST_SIGN = [late_pattern(code) for code in _CODES]
#: Codes within codes that are decoded: `&amp;lt;`, `%253C`.
_DECODINGS_MAX = 3
#: Letters of other scripts and signs that look like those of the tag.
_LOOKALIKES = str.maketrans(
    {"а": "a", "с": "c", "е": "e", "о": "o", "у": "y", "г": "r", "м": "m", "ԁ": "d", "ӏ": "l", "ı": "l", "α": "a",
     "ϲ": "c", "ε": "e", "ο": "o", "ᴇ": "e", "ᴍ": "m", "ʏ": "y", "〈": "<", "⟨": "<", "❮": "<", "˂": "<", "≺": "<",
     "ᐸ": "<", "〉": ">", "⟩": ">", "❯": ">", "˃": ">", "≻": ">", "ᐳ": ">", "⁄": "/", "∕": "/", "⧸": "/"}
)  # fmt: skip
#: Signs that no reader sees, or that turn the direction of a text: not joiners, which emoji and Persian need.
_UNSEEN = late_pattern(
    "[\\x00-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\\u00ad\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff"
    "\\ufff9-\\ufffb\\U000e0000-\\U000e007f]"
)
#: Those of them that are white space for Python.
_UNSEEN_SPACES = "\x1c\x1d\x1e\x1f"
#: The signs that are read as the bracket of a tag, and the first signs of codes; a text without them has no tag.
_OPENING_OR_CODE = late_pattern(r"[<˂≮〈❮⟨〈︿﹤＜≺ᐸ&%\\\[［]")
#: A letter or sign of `_LOOKALIKES`.
_LOOKALIKE = late_pattern(f"[{''.join(map(chr, _LOOKALIKES))}]")
#: The lower-case letter of each ASCII letter, and the ASCII characters that are not letters.
_LETTERS = bytes(range(256)).lower()
_OTHER_THAN_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())


def fence(lines: Sequence[str], random_part: str = "") -> str:
    """Return `lines` inside the fence; an empty text when `lines` is empty.

    Parameters:
        random_part: of the names of the tags; no stored text can know it.
    """
    if not lines:
        return ""
    name = f"{TAG}-{random_part}" if random_part else TAG
    return "\n".join([f'<{name} note="{NOTE}">', *map(disable_tags, lines), f"</{name}>"])


def single_line(text: str) -> str:
    """Return recalled text on one line, without unseen signs, with imitated tags of the fence disabled."""
    line = " ".join(text.split())
    # Unseen signs are not printable; the four that are white space for `split` are gone from the line.
    if not line.isprintable() or any(sign in text for sign in _UNSEEN_SPACES):
        line = " ".join(_UNSEEN.sub("", text).split())
    return disable_tags(line)


def disable_tags(text: str) -> str:
    """Return `text` with a sign that opens no tag in place of the first one of each imitation in any disguise."""
    if not _may_imitate(text):
        return text
    signs = _decoded(text)
    parts: list[str] = []
    position = 0
    for tag in _IMITATION.finditer("".join(sign.text for sign in signs)):
        bracket = signs[tag.start()]
        parts += [text[position : bracket.start], _DISABLED[bracket.text]]
        position = bracket.end
    return "".join([*parts, text[position:]])


def _has_opening_or_code(text: str) -> bool:
    """Return whether `text` has a sign that may be read as the bracket of a tag."""
    if text.isascii():
        # Faster than the pattern, which compares each sign with the class.
        return "<" in text or "[" in text or "&" in text or "%" in text or "\\" in text
    return _OPENING_OR_CODE.search(text) is not None


def _may_imitate(text: str) -> bool:
    """Return whether `text` has a token, or a bracket and the letters of the tag in a row; cheap, for few have."""
    if not _has_opening_or_code(text):
        return False
    for _ in range(_DECODINGS_MAX):
        if not any(code.search(text) for code in _CODED_BY_FIRST_SIGN):
            break
        text = _CODED.sub(lambda code: _value(code[0]), text)
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text).casefold()
        if _LOOKALIKE.search(text):
            text = text.translate(_LOOKALIKES)
    text = text.lower()
    if _SQUARE_TOKEN.search(text):
        return True
    if "<" not in text:
        return False
    if _ANGLE_TOKEN.search(text):
        return True
    letters = text.encode("ascii", "ignore").translate(_LETTERS, _OTHER_THAN_LETTERS)
    return b"recalledmemor" in letters


class _Sign(NamedTuple):
    """A sign of a text as a reader takes it, and its place in the text."""

    #: One letter, without case, width, marks and codes.
    text: str
    start: int
    end: int


def _decoded(text: str) -> list[_Sign]:
    """Return the signs of `text`, one for each letter, with codes decoded and without unseen ones."""
    signs = [_Sign(sign, place, place + 1) for place, sign in enumerate(text)]
    for _ in range(_DECODINGS_MAX):
        joined = "".join(sign.text for sign in signs)
        if _CODED.search(joined) is None:
            break
        signs = _decode_once(joined, signs)
    return [_Sign(letter, sign.start, sign.end) for sign in signs for letter in _folded(sign.text)]


def _decode_once(joined: str, signs: list[_Sign]) -> list[_Sign]:
    """Return `signs`, whose texts are `joined` and have one letter each, with one layer of codes decoded."""
    decoded: list[_Sign] = []
    position = 0
    for code in _CODED.finditer(joined):
        decoded += signs[position : code.start()]
        value = _value(code[0])
        if len(value) == 1:
            decoded.append(_Sign(value, signs[code.start()].start, signs[code.end() - 1].end))
        else:
            decoded += signs[code.start() : code.end()]
        position = code.end()
    return decoded + signs[position:]


def _value(code: str) -> str:
    """Return the sign that a code means; the code itself when it means none."""
    if code[0] == "&":
        return html.unescape(code if code.endswith(";") else f"{code};")
    return chr(int(code[1:].lstrip("ux"), 16))


def _folded(sign: str) -> str:
    """Return a sign without case, width and marks, a lookalike as what it looks like; empty for an unseen sign."""
    if sign.isascii():
        return sign.lower()
    plain = unicodedata.normalize("NFKD", sign).casefold().translate(_LOOKALIKES)
    return "".join(letter for letter in plain if unicodedata.category(letter) not in ("Cf", "Mn", "Me", "Cc"))
