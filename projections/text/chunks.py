"""Chunks: splits a long text into overlapping parts that an embedding model can read."""

from __future__ import annotations

#: Words in a chunk: the embedding model reads 256 tokens (see `RETRIEVAL.md`).
CHUNK_WORDS = 170
#: Words at the end of a chunk that the next chunk repeats.
OVERLAP_WORDS = 20


def chunks(text: str) -> list[str]:
    """Return `text` in chunks of `CHUNK_WORDS` words; each repeats the last `OVERLAP_WORDS` of the previous one."""
    words = text.split()
    if len(words) <= CHUNK_WORDS:
        return [" ".join(words)]
    step = CHUNK_WORDS - OVERLAP_WORDS
    return [" ".join(words[start : start + CHUNK_WORDS]) for start in range(0, len(words) - OVERLAP_WORDS, step)]
