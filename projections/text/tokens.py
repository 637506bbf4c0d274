"""How many tokens a language model reads in a text, near enough to keep a budget."""

from __future__ import annotations


def estimate_tokens(text: str) -> int:
    """Return a quarter of the text's UTF-8 bytes, rounded up.

    English has about four letters a token; Chinese, Japanese and Korean about one sign of three bytes.
    """
    return (len(text.encode(errors="replace")) + 3) // 4


def cut_at_word(text: str, tokens_max: int) -> str:
    """Return the beginning of a `text` over `tokens_max`, cut at a word, with a token left for an ellipsis.

    A few letters stay however little room there is.
    """
    kept = text.encode(errors="replace")[: max(8, 4 * tokens_max - 4)].decode(errors="ignore")
    return kept.rsplit(" ", 1)[0]
