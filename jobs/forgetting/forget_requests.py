"""Forget requests: reads from a message what its sender asks the assistant to forget.

Trained models read each sentence with the one before it: `I always forget my keys`, `don't forget the milk` and
`delete the file` ask for nothing, `forget my wifi password` does. What a request names is found among the earlier
messages: `forget_matches.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice

from msgspec import Struct

from recollect.events.late_pattern import late_pattern
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.jobs.extraction.author_text import author_text
from recollect.jobs.extraction.clauses import clauses
from recollect.jobs.extraction.statement_reader import read_clauses
from recollect.jobs.extraction.statements import KEEP_BY_WORDS_MIN, KEEP_MIN
from recollect.jobs.forgetting.forget_model import model
from recollect.jobs.forgetting.request_parts import request_parts
from recollect.projections.embeddings.reading_encoder import Embed, ReadPairs
from recollect.projections.text.sentences import iterate_sentences
from recollect.projections.text.stems import content_stems

#: Characters of a message and of a sentence, and sentences, that are read: a request is short.
_TEXT_CHARS_MAX = 2_000
_SENTENCE_CHARS_MAX = 300
SENTENCES_MAX = 20
#: Characters of a sentence that is read as a whole.
_WHOLE_CHARS_MAX = 120
#: A sentence whose words ask with a smaller probability is not read by the encoder: 8 % of held-out requests, which are
#: worded as no writer did before, and 93 % of the sentences of conversations.
_GATE_MIN = 0.01
#: Share of the words next to the encoder: of .3 to .6 the one with most held-out requests at the same false ones.
_WORDS_SHARE = 0.4
#: Probability from which a request is carried out, and by words alone: 4 of 1,719 messages of conversations that ask
#: for nothing have it. What it names must be sure as well before anything is forgotten.
_SURE_MIN, ASKS_BY_WORDS_MIN = 0.55, 0.4
#: Probability from which it is answered with candidates: 15 more of 237 held-out requests and 5 more of 1,388 messages
#: of conversations have it.
_ASKS_MIN = 0.3
#: Probability by words alone from which a sentence next to a request belongs to it.
_BELONGS_MIN = 0.2
#: Probability by words alone from which a request means what is next to it, as `forget this` does: `my salary` before a
#: colon has 0, `don't remember this` and the like .32 to .55.
_POINTS_MIN = 0.25
#: `Don't forget that I am allergic` asks for the opposite; none of 434 labelled requests has these words.
_KEEPS = late_pattern(
    r"\b(?:do not|don't|dont|never) (?:you |ever |please )?forget\b|\bvergiss (?:bitte )?(?:nicht|nie)\b"
    r"|\bno (?:te |se )?olvid|\bn'oublie[sz]? pas\b|\bnon (?:ti )?(?:dimentic|scord)|忘れないで|别忘|不要忘",
    re.IGNORECASE,
)
#: Probability by words alone that a sentence is worth keeping, from which a request that names nothing may take it
#: back: 143 of 151 labelled take-backs have it, 108 of 171 requests that mean an earlier message and name it before.
_STATES_MIN = 0.1
#: Words of a sentence that is not worth keeping.
_EMPTY_STEMS_MAX = 1
_CERTAIN = 1e-4
#: The probabilities by words of the sentences read last: a sentence of an append is asked about up to four times.
_cached_by_words: BoundedCache[str, tuple[float, float, float]] = BoundedCache(64)


class ForgetRequest(Struct, frozen=True, kw_only=True):
    """A sentence that asks to forget something."""

    text: str
    #: The sentence with the one before it, and with the one after it, which may name it.
    around: tuple[str, ...] = ()
    #: The sentence before it, to which `him` and `her` refer.
    before: str = ""
    #: Whether the statement just before is meant: `forget what I just said`.
    previous: bool = False
    #: Whether what follows in its message is meant: `don't remember this: my pin is 4711`.
    following: bool = False
    #: The text before it in its message.
    said: str = ""
    #: Log odds that it asks for anything.
    odds: float
    #: Whether it is carried out when what it names is clear; else it is answered with candidates.
    is_sure: bool = True


def may_request(text: str) -> bool:
    """Return whether a text may ask to forget, by words alone; cheap, since it is asked for each message."""
    parts = [*(sentence for sentence, _ in _sentences(text)), *_leads(text)]
    asking = [part for part in parts if not _KEEPS.search(part)]
    return any(1 - nothing >= _GATE_MIN for nothing, _, _ in _by_words(asking))


def forget_requests(text: str, speaker: str, read_pairs: ReadPairs | None = None) -> list[ForgetRequest]:
    """Return what a message of `speaker` asks to forget.

    Parameters:
        read_pairs: the reading of pairs by the encoder of forgetting; None: words decide alone.
    """
    author = author_text(text[:_TEXT_CHARS_MAX], speaker)
    parts = _sentences(author)
    sentences = [sentence for sentence, _ in parts]
    requests: dict[str, ForgetRequest] = {}
    said: list[str] = []
    for place, (sentence, is_whole) in enumerate(parts):
        if sentence in requests:
            continue
        before, after = sentences[:place][-1:], sentences[place + 1 :][:1]
        asks = _asks("".join(before), sentence, read_pairs)
        if asks >= _asks_min(is_whole=is_whole, has_encoder=read_pairs is not None):
            asking, keeps = request_parts(sentence, asks_alone)
            for part in asking:
                first = sentence[: max(sentence.find(part), 0)]
                wider = [*before, part] if before else [], [part, *after] if after else []
                requests[part] = ForgetRequest(
                    text=part,
                    around=tuple(
                        " ".join(it) for it in ([sentence] if part != sentence and not keeps else [], *wider) if it
                    ),
                    before="".join(before),
                    previous=_means_previous(part),
                    said=" ".join(said if _is_empty(first) else [*said, first.strip()]),
                    odds=_log_odds(asks),
                    is_sure=read_pairs is None or asks >= _SURE_MIN,
                )
        if not _is_empty(sentence):
            said.append(sentence)
    leads = [_following_request(lead, read_pairs) for lead in _leads(text, author)]
    following = [request for request in leads if request is not None]
    return following or [*requests.values()]


def _leads(text: str, author: str | None = None) -> list[str]:
    """Return the words before the colon of each sentence that has one and is no question.

    Parameters:
        author: the part of the text that its author wrote. What a colon introduces may not be, as in `Bob wrote: …`.
    """
    plain = text[:_TEXT_CHARS_MAX].replace("’", "'")
    if ":" not in plain:
        return []
    sentences = [*islice(iterate_sentences(plain), SENTENCES_MAX)]
    leads = [lead.strip() for lead, colon, _ in (it.partition(":") for it in sentences if it[-1:] != "?") if colon]
    if author is not None:
        own = author.replace("’", "'")
        after = next(iterate_sentences(plain.removeprefix(own)), "") if plain.startswith(own) else ""
        leads = [lead for lead in leads if f"{lead}:" in own or after.startswith(f"{lead}:")]
    return [lead for lead in leads if 0 < len(lead) <= _WHOLE_CHARS_MAX and plain.partition(f"{lead}:")[2].strip()]


def _following_request(lead: str, read_pairs: ReadPairs | None) -> ForgetRequest | None:
    """Return the request to forget what a colon introduces; None for words that do not surely ask, or name a thing."""
    asks = _asks("", lead, read_pairs)
    _, _, points = _by_words([lead])[0]
    is_sure = points >= _POINTS_MIN and asks >= (ASKS_BY_WORDS_MIN if read_pairs is None else _SURE_MIN)
    return ForgetRequest(text=lead, following=True, odds=_log_odds(asks)) if is_sure else None


def _asks_min(*, is_whole: bool, has_encoder: bool) -> float:
    """Return the probability from which a sentence, or a clause of a long one, is answered.

    By words alone clauses of 7 of 7,530 messages of conversations ask by mistake, and whole sentences of none.
    """
    if has_encoder:
        return _ASKS_MIN if is_whole else _SURE_MIN
    return ASKS_BY_WORDS_MIN if is_whole else math.inf


def asks_alone(part: str) -> bool:
    """Return whether a part of a sentence asks to forget, by words alone."""
    return asks_by_words(part) >= ASKS_BY_WORDS_MIN


def _means_previous(part: str) -> bool:
    """Return whether a part that asks means what was said just before it, rather than what it names."""
    _, named, previous = _by_words([part])[0]
    return previous > named


def _asks(before: str, sentence: str, read_pairs: ReadPairs | None) -> float:
    """Return the probability that a sentence asks to forget.

    Parameters:
        before: the sentence before it in its message.
    """
    by_words = asks_by_words(sentence)
    if by_words < _GATE_MIN or read_pairs is None:
        return by_words
    read = model().asks_by_pair((before, sentence), read_pairs)
    odds = _WORDS_SHARE * _log_odds(by_words) + (1 - _WORDS_SHARE) * read
    return 1 / (1 + math.exp(-odds))


def _log_odds(probability: float) -> float:
    return math.log(max(probability, _CERTAIN) / max(1 - probability, _CERTAIN))


def stays(sentence: str, requests: Sequence[ForgetRequest], embed: Embed | None) -> bool:
    """Return whether a sentence of a message that asks to forget is worth keeping, and none of its requests.

    Parameters:
        embed: the embedding of sentences by the reading encoder; None: words decide alone.
    """
    sentence = " ".join(sentence.split()).replace("’", "'")
    # What is not surely worth keeping mostly names what is to be forgotten: `my son's arrest.`
    return not (any(it.text in sentence for it in requests) or _is_empty(sentence)) and _is_kept(sentence, embed)


def states_something(text: str) -> bool:
    """Return whether a text before a request states what the request may take back, by words alone.

    `My abortion. If you forget one thing only, let it be this` names what was said earlier.
    """
    return any(it.keep >= _STATES_MIN for part, _ in _sentences(text) for it in read_clauses(part, to_assistant=True))


def _is_kept(sentence: str, embed: Embed | None) -> bool:
    read = read_clauses(sentence, to_assistant=True, embedding=None if embed is None else embed([sentence])[0])
    return any(part.keep >= (KEEP_MIN if part.has_vector else KEEP_BY_WORDS_MIN) for part in read)


def _is_empty(sentence: str) -> bool:
    """Return whether a sentence belongs to a request, or says next to nothing."""
    return len(content_stems(sentence)) <= _EMPTY_STEMS_MAX or asks_by_words(sentence) >= _BELONGS_MIN


def asks_by_words(sentence: str) -> float:
    """Return the probability by words alone that a sentence asks to forget."""
    if _KEEPS.search(sentence):
        return 0.0
    return 1 - _by_words([sentence])[0][0]


def _by_words(sentences: Sequence[str]) -> list[tuple[float, float, float]]:
    """Return the probabilities by words alone of `ASKS` for sentences."""
    cached = _cached_by_words.get_all(sentences)
    if new := [it for it in sentences if it not in cached]:
        rows: list[tuple[float, float, float]] = [*map(tuple, model().asks(new).tolist())]
        read = dict(zip(new, rows, strict=True))
        _cached_by_words.put_all(read)
        cached |= read
    return [cached[it] for it in sentences]


def _sentences(text: str) -> list[tuple[str, bool]]:
    """Return the first sentences of a text with plain apostrophes, and whether each is whole.

    Of a long one its clauses: people who dictate seldom end a sentence.
    """
    plain = text[:_TEXT_CHARS_MAX].replace("’", "'")
    return [
        (part, part == sentence)
        for sentence in islice(iterate_sentences(plain), SENTENCES_MAX)
        for part in ([sentence] if len(sentence) <= _WHOLE_CHARS_MAX else [it.text for it in clauses(sentence)])
        if len(part) <= _SENTENCE_CHARS_MAX
    ]
