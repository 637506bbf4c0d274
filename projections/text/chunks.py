"""Chunks: a long text in overlapping parts that an embedding model can read."""

from __future__ import annotations

#: Words in a chunk, and how many of them the next chunk repeats (see `RETRIEVAL.md`; the model reads 256 tokens).
CHUNK_WORDS = 170


OVERLAP_WORDS = 20


def chunks(text: str) -> list[str]:
    """Return `text` in chunks of `CHUNK_WORDS` words, each beginning with the end of the one before."""
    words = text.split()
    if len(words) <= CHUNK_WORDS:
        return [" ".join(words)]
    step = CHUNK_WORDS - OVERLAP_WORDS
    return [" ".join(words[start : start + CHUNK_WORDS]) for start in range(0, len(words) - OVERLAP_WORDS, step)]
