"""Chunks: splits a long text into overlapping parts that an embedding model can read."""

from __future__ import annotations

from collections.abc import Iterator

from recollect.events.late_pattern import late_pattern

#: Words in a chunk: the embedding model reads 256 tokens (see `RETRIEVAL.md`).
CHUNK_WORDS = 170
#: Words at the end of a chunk that the next chunk repeats.
OVERLAP_WORDS = 20


#: Words of a paragraph that is a chunk of its own; a shorter one, such as a heading, belongs to the next.
_PARAGRAPH_WORDS_MIN = 8
#: Ends of a paragraph that is not a heading.
_ENDS = (".", "!", "?", "。", "！", "？")
_BLANK_LINE = late_pattern(r"\n[ \t\r]*\n")


def chunks(text: str) -> list[str]:
    """Return the paragraphs of `text`, each in chunks of `CHUNK_WORDS` words.

    A vector of paragraphs about different things is near to none of them. Of a long paragraph, each chunk repeats the
    last `OVERLAP_WORDS` of the previous one.
    """
    return [chunk for paragraph in _paragraphs(text) for chunk in _chunks_of(paragraph)] or [""]


def _paragraphs(text: str) -> Iterator[list[str]]:
    """Yield the words of each paragraph, with the headings before it."""
    words: list[str] = []
    for paragraph in _BLANK_LINE.split(text):
        own = paragraph.split()
        words += own
        is_heading = len(own) < _PARAGRAPH_WORDS_MIN and not paragraph.rstrip().endswith(_ENDS)
        if len(words) >= _PARAGRAPH_WORDS_MIN and not is_heading:
            yield words
            words = []
    if words:
        yield words


def _chunks_of(words: list[str]) -> list[str]:
    """Return the words of a paragraph as overlapping chunks."""
    if len(words) <= CHUNK_WORDS:
        return [" ".join(words)]
    step = CHUNK_WORDS - OVERLAP_WORDS
    return [" ".join(words[start : start + CHUNK_WORDS]) for start in range(0, len(words) - OVERLAP_WORDS, step)]
