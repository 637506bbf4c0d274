"""Tokens: estimates the tokens of a text for a language model, and cuts texts to a budget."""

from __future__ import annotations


def estimate_tokens(text: str) -> int:
    """Return a quarter of the text's UTF-8 bytes, rounded up.

    English has about four letters per token; Chinese, Japanese and Korean have about one character of three bytes.
    """
    return (len(text if text.isascii() else text.encode(errors="replace")) + 3) // 4


def cut_at_word(text: str, tokens_max: int) -> str:
    """Return the beginning of `text`, which has more than `tokens_max` tokens, cut between words.

    The result leaves one token for an ellipsis, but has at least 8 bytes of the text to cut from.
    """
    start = text.encode(errors="replace")[: max(8, 4 * tokens_max - 4)].decode(errors="ignore")
    return start.rsplit(" ", 1)[0]
