"""Sentences: splits texts of any script into sentences."""

from __future__ import annotations

from collections.abc import Iterator

from recollect.events.late_pattern import late_pattern

#: Signs that end a sentence, in Western, Chinese and Japanese texts.
END_SIGNS = ".!?…。！？"
#: German months after a day with a full stop, "am 14. März"; those that are English too only after some words.
_GERMAN_MONTHS = "Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember|januar|februar|märz|mai|juni|juli|oktober|dezember"
_SHARED_MONTHS = "[Aa]pril|[Aa]ugust|[Ss]eptember|[Nn]ovember"
#: German words before a day, by their length; after them a day may go on in small letters, too: `am 17. die Kinder`.
_BEFORE_DAY = (r"(?<![Ii] )\b(?:am|ab)", r"\b(?:zum|vom|bis|den|der|dem)", r"\bbeim")
#: A sign or line break that may end a sentence, with the white space after it as a group: a set of signs comes first,
#: which `re` finds fast. White space ends a sentence after a sign and its closing quote, unless the sign belongs to a
#: number or an abbreviation. Chinese and Japanese sentences end without a space.
_END = late_pattern(
    rf"[{END_SIGNS}\n](?:(?<=[.!?…])[\"'”’)\]]?(?<!\b[A-Z]\.)"
    rf"(?<!\d\.(?=\s(?:{_GERMAN_MONTHS})\b))"
    + "".join(
        rf"(?<!{words} {digits}\.(?=\s(?:[a-zäöü]|(?:{_SHARED_MONTHS})\b)))"
        for words in _BEFORE_DAY
        for digits in (r"\d", r"\d\d")
    )
    + "".join(rf"(?<!, {digits}\.(?=\s(?:{_SHARED_MONTHS})\b))" for digits in (r"\d", r"\d\d"))
    + r"(?<!\b(?:Mr|Ms|Dr|St|Sr|mr|ms|dr|vs)\.)(?<!\b(?:Mrs|mrs|Dra|Sra|etc|e\.g|i\.e)\.)(\s+)"
    r"|(?<=[。！？])(\s*)|(?<=\n)\n*)"
)
#: Characters before the first word of a sentence, a clause or a quotation, except white space. A change of this set
#: changes the rows of read models, so it raises `SCHEMA_VERSION`.
_OPENING = frozenset(END_SIGNS + ':;"“”(*>-')


def split_sentences(text: str) -> list[str]:
    """Return the sentences of `text` with their punctuation, each on one line."""
    return [*iterate_sentences(text)]


def iterate_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of `text` as `split_sentences` returns them, each when it is asked for."""
    for start, end in sentence_bounds(text):
        yield " ".join(text[start:end].split())


def sentence_bounds(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each sentence of `text`."""
    start = 0
    for match in _END.finditer(text):
        # A line break is no part of the sentence before it, as a sign is.
        end = match.start(match.lastindex or 0)
        if text[start:end].strip():
            yield start, end
        start = match.end()
    if text[start:].strip():
        yield start, len(text)


def opens_sentence(text: str, start: int) -> bool:
    """Return whether a sentence, a line or a quotation begins at `start`."""
    before = text[max(0, start - 3) : start]
    left = before.rstrip()
    return left[-1] in _OPENING if left and "\n" not in before[len(left) :] else start <= 3 or "\n" in before
