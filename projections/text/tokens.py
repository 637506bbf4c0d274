"""How many tokens a language model reads in a text, near enough to keep a budget."""

from __future__ import annotations


def estimate_tokens(text: str) -> int:
    """Return a quarter of the text's UTF-8 bytes, rounded up.

    English has about four letters a token; Chinese, Japanese and Korean about one sign of three bytes.
    """
    return (len(text.encode(errors="replace")) + 3) // 4
