"""First person: recognises questions of a speaker about himself, such as `what's my job?`."""

from __future__ import annotations

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.words import WORD

#: Pronouns of the first person in English, German, French, Spanish, Portuguese, Italian and Russian.
_PRONOUNS = frozenset(
    """
    i me my mine myself we us our ours ourselves
    ich mich mir mein meine meinen meinem meiner meines wir uns unser unsere unseren unserem unserer
    je mon ma mes moi nous notre nos yo mi mis mío mía nosotros nosotras nuestro nuestra nuestros nuestras
    eu meu minha meus minhas nós nosso nossa io mio mia miei mie noi nostro nostra
    я меня мне мной мой моя моё мое мои моего моей моих моему моим мы нас нам наш наша наше наши нашего нашей наших
    """.split()
)
#: Pronouns of scripts without spaces.
_PRONOUN_CHARACTERS = late_pattern("[我咱俺私僕]|うちの|わたし|나는|내가|우리|제가")
#: Words of a long message that are read.
_WORDS_MAX = 256
_CHARS_MAX = 1_000


def is_first_person(text: str) -> bool:
    """Return whether `text` speaks of its speaker."""
    if not _PRONOUNS.isdisjoint(WORD.findall(text.casefold())[:_WORDS_MAX]):
        return True
    return _PRONOUN_CHARACTERS.search(text[:_CHARS_MAX]) is not None
