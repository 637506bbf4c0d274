"""First person: recognises questions of a speaker about himself, such as `what's my job?`."""

from __future__ import annotations

from recollect.projections.text.words import WORD

#: Pronouns of the first person in English, German and Russian.
_PRONOUNS = frozenset(
    """
    i me my mine myself we us our ours ourselves
    ich mich mir mein meine meinen meinem meiner meines wir uns unser unsere unseren unserem unserer
    я меня мне мной мой моя моё мое мои моего моей моих моему моим мы нас нам наш наша наше наши нашего нашей наших
    """.split()
)
#: Words of a long message that are read.
_WORDS_MAX = 256


def is_first_person(text: str) -> bool:
    """Return whether `text` speaks of its speaker."""
    return not _PRONOUNS.isdisjoint(WORD.findall(text.casefold())[:_WORDS_MAX])
