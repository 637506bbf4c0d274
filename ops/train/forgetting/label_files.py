"""Label files: the labelled scenes, and further ones composed of topics and of ways to ask."""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from recollect.jobs.extraction.change_features import stems_of
from recollect.jobs.extraction.clause_features import word_forms
from recollect.jobs.forgetting.forget_requests import asks_by_words
from recollect.projections.text.sentences import split_sentences

FOLDER = Path(__file__).parent
LABELS = FOLDER / "labels"
#: One topic, way to ask or voice in this many is held out of the training that is reported.
FOLDS = 5
#: Times that a topic is filled with other values.
VARIANTS = 2
#: Share of the scenes whose request names all of a group of topics: `my health`.
_GROUP_SHARE = 0.2
#: With the labelled chats of the choice model.
_CHATS = FOLDER.parent / "relevance"
#: Characters of a message and of a sentence of whole conversations that are read: those of a request.
_SAID_CHARS_MAX, _SAID_SENTENCE_MAX = 2_000, 300
#: Sentences without a conversation that the encoder is trained with: their kinds in `asked_sentences`, and how many.
_SINGLES, _SINGLES_MAX = ("request", "topic", "way", "previous", "report", "reader"), 8_000
#: Probability by words that a sentence of a conversation asks, from which the encoder learns that it does not.
_NEAR_MIN = 0.005
_LANGUAGES = ("de", "es", "fr", "it", "ja", "zh")
_SLOT = re.compile(r"\{(?P<name>[A-Za-z]+\d?)\}")
_NAMES = (
    "Marta Igor Lena Tom Priya Noor Bruno Wanda Felix Yusuf Ines Carl Greta Hugo Mina Oskar Paula Rafa Sonja Theo Vera "
    "Ken Olga Dmitri Ruth Jonas Leila Colin Faye Anders Kofi Mei Pavel Rosa Sven Tilda"
).split()
_PLACES = (
    "Ghent Leeds Porto Lund Graz York Perth Malmö Turin Bergen Lyon Cork Riga Bath Trier Split Utrecht Basel".split()
)
_FIRMS = "Plinth|Bosch|Halbert & Co|Kestrel|Siemens|Orla Foods|Nimbus|Danfoss|Harrow Ltd|Tesco".split("|")
#: Shares of sentences that are typed in haste: with other words before or after them, and with a letter that is wrong.
_ENDS_SHARE, _TYPO_SHARE = 0.35, 0.12
_TYPO_CHARS_MIN = 4
#: Sentences of the statement reader that have a word of the ways to ask, or any word, that is kept in a frame.
_SAID_MIN = (25, 60)
_SOUNDS = "ka mo ri ta lu ne vo pi sha dro mi fel ber tok zan qui".split()


class Topic(NamedTuple):
    """Something that people ask to forget."""

    name: str
    groups: frozenset[str]
    #: How a request names it.
    names: tuple[str, ...]
    #: How a speaker states it.
    statements: tuple[str, ...]
    #: What a speaker says of other people about it.
    others: tuple[str, ...]

    @property
    def language(self) -> str:
        """Return the language of its texts."""
        language = self.name.partition("-")[0]
        return language if language in _LANGUAGES else "en"


class Scene(NamedTuple):
    """A request, what its speaker has said before it, and which of these sentences it names."""

    #: What is trained on or held out as a whole: a topic or a voice.
    voice: str
    request: str
    said: tuple[str, ...]
    named: frozenset[int]


class Asked(NamedTuple):
    """A sentence with the one before it in its message, and whether it asks to forget anything."""

    before: str
    sentence: str
    asks: bool


def fold(voice: str) -> int:
    """Return the part of the folds that a voice belongs to."""
    return crc32(voice.encode()) % FOLDS


@cache
def lines(name: str) -> list[str]:
    """Return the lines of a file of labels."""
    return (LABELS / name).read_text(encoding="utf-8").splitlines()


def topics() -> list[Topic]:
    """Return the topics of all files."""
    found: list[Topic] = []
    for path in sorted(LABELS.glob("topics-*.txt")):
        for block in path.read_text(encoding="utf-8").strip().split("# ")[1:]:
            head, *rows = block.strip().split("\n")
            parts = {row[0]: tuple(part.strip() for part in row[2:].split("|") if part.strip()) for row in rows}
            name, _, groups = head.partition(" [")
            found.append(Topic(name, frozenset(groups.rstrip("]").split()), parts["n"], parts["s"], parts.get("o", ())))
    return found


class Filler:
    """The values of the slots of one variant of a topic: a name with a number is the same one each time."""

    def __init__(self, seed: str) -> None:
        self._chance = random.Random(seed)
        self._fixed: dict[str, str] = {}

    def fill(self, text: str) -> str:
        """Return a text with values in place of its slots."""
        return _SLOT.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        name = match["name"]
        if name[0] in "NP" and len(name) > 1:
            return self._fixed.setdefault(name, self._made(name[0]))
        return self._made(name)

    def _made(self, name: str) -> str:
        chance = self._chance
        word = "".join(chance.choices(_SOUNDS, k=2))
        made = {
            "N": lambda: chance.choice(_NAMES),
            "P": lambda: chance.choice(_PLACES),
            "C": lambda: chance.choice(_FIRMS),
            "k": lambda: f"{chance.randint(1, 95)},{chance.randint(1, 99):02}0",
            "n": lambda: str(chance.randint(12, 990)),
            "y": lambda: str(chance.randint(1951, 2019)),
            "w": lambda: word,
            "D": lambda: chance.choice(lines("documents.txt")),
            "pw": lambda: f"{word.title()}{chance.choice('_!-.')}{chance.randint(1, 99)}",
        }
        if name in made:
            return made[name]()
        return "".join(chance.choices("0123456789", k=int(name[1:])))


class Variant(NamedTuple):
    """The texts of a topic with the same values."""

    topic: Topic
    statements: tuple[str, ...]
    others: tuple[str, ...]
    #: Requests that name it.
    requests: tuple[str, ...]
    #: Requests that name all of a group of topics, by the group.
    of_groups: tuple[tuple[str, str], ...]


def variants(ways: Sequence[str]) -> list[Variant]:
    """Return the variants of all topics; `ways` are requests with a slot, after their language."""
    found: list[Variant] = []
    for number, topic in enumerate(topics()):
        asked = [way[3:] for way in ways if way[:2] == topic.language]
        for seed in range(VARIANTS):
            filler, chance = Filler(f"{topic.name} {seed}"), random.Random(f"{topic.name} {seed}")
            # Each way to ask is used about as often as every other one.
            first = number * VARIANTS + seed
            requests = [
                written(filler.fill(asked[(first * 31 + place * 7) % len(asked)].replace("{X}", name)), chance)
                for place, name in enumerate(name for name in topic.names for _ in range(2))
            ]
            texts = [
                [written(filler.fill(text), chance, 0.3) for text in group]
                for group in (topic.statements, topic.others)
            ]
            groups = sorted(topic.groups & group_names().keys()) if topic.language == "en" else []
            of_groups = [
                (group, written(asked[(first * 17 + place * 5) % len(asked)].replace("{X}", name), chance))
                for group in groups
                for place, name in enumerate(chance.sample(group_names()[group], 2))
            ]
            found.append(Variant(topic, tuple(texts[0]), tuple(texts[1]), tuple(requests), tuple(of_groups)))
    return found


@cache
def group_names() -> dict[str, list[str]]:
    """Return how requests name all of a group of topics."""
    rows = (line.partition(": ") for line in lines("groups.txt"))
    return {group: names.split(" | ") for group, _, names in rows}


def composed(all_variants: Sequence[Variant], count: int, seed: int) -> Iterator[Scene]:
    """Yield scenes: what is asked to be forgotten, or what others do, among other topics."""
    chance = random.Random(seed)
    for number in range(count):
        yield _scene(all_variants[number % len(all_variants)], all_variants, chance)


def _scene(asked: Variant, all_variants: Sequence[Variant], chance: random.Random) -> Scene:
    topic = asked.topic
    is_known = chance.random() < 0.75
    own = chance.sample(asked.statements, min(len(asked.statements), chance.choice((1, 1, 1, 2)))) if is_known else []
    near = [it for it in all_variants if it.topic.groups & topic.groups and not _is_same(it.topic, topic)]
    near = [it for it in near if it.topic.language == topic.language]
    apart = [it for it in all_variants if not it.topic.groups & topic.groups and it.topic.language == topic.language]
    rest = [
        *chance.sample(near, min(len(near), chance.choice((0, 0, 1, 2)))),
        *chance.sample(apart, chance.randint(2, 5)),
    ]
    request, group = chance.choice(asked.requests), None
    if asked.of_groups and chance.random() < _GROUP_SHARE:
        group, request = chance.choice(asked.of_groups)
    texts = [(text, True) for text in own]
    for it in rest:
        is_other = it.others and chance.random() < 0.2
        texts.append(
            (chance.choice(it.others if is_other else it.statements), not is_other and group in it.topic.groups)
        )
    if asked.others and chance.random() < 0.5:
        texts.append((chance.choice(asked.others), False))
    chance.shuffle(texts)
    named = frozenset(place for place, (_, is_named) in enumerate(texts) if is_named)
    return Scene(topic.name, request, tuple(text for text, _ in texts), named)


def _is_same(one: Topic, other: Topic) -> bool:
    """Return whether a name of one topic may mean the other one."""
    return one is other or bool(set(one.names) & set(other.names))


def written(text: str, chance: random.Random, share: float = 0.5) -> str:
    """Return a text, for a share with a capital letter and a full stop."""
    if chance.random() > share:
        return text
    return text[0].upper() + text[1:] + ("" if text[-1] in "?!." else ".")


def typed(text: str, chance: random.Random, *, is_request: bool) -> str:
    """Return a text as people type it: for some, with words before and after it, a reason, or a wrong letter."""
    if chance.random() < _ENDS_SHARE:
        kinds = "htr" if is_request else "ht"
        end = chance.choice([it[2:] for it in lines("ends.txt") if it[0] in kinds])
        text = end.replace("{X}", text.rstrip(".") if end[-1] != "}" else text)
    words = text.split(" ")
    place = chance.randrange(len(words))
    word = words[place]
    if chance.random() < _TYPO_SHARE and len(word) > _TYPO_CHARS_MIN and word.isalpha():
        at = chance.randrange(1, len(word) - 1)
        words[place] = chance.choice((word[:at] + word[at + 1 :], word[:at] + word[at] + word[at:]))
    return " ".join(words)


def frame_words() -> frozenset[str]:
    """Return the words by which sentences ask; all others of a sentence are what it speaks of."""
    of_ways: Counter[str] = Counter()
    for name, start in (("requests", 3), ("task-negatives", 0), ("negatives", 0), ("previous", 0), ("ends", 2)):
        for line in lines(f"{name}.txt"):
            of_ways.update({*word_forms(line[start:].replace("{X}", " "))})
    said = Counter(word for _, text in reader_sentences() for word in {*word_forms(text)})
    common = {word for word, count in of_ways.items() if count > 1 or said[word] >= _SAID_MIN[0]}
    common |= {word for word, count in said.items() if count >= _SAID_MIN[1]}
    return frozenset(common | {word for line in lines("documents.txt") for word in word_forms(line)})


def reader_sentences() -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the labels and the texts of the sentences of the statement reader."""
    for path in sorted((FOLDER.parent / "reader" / "labels").glob("own-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            yield row, row["text"]


def asked_sentences(given: Path) -> Iterator[tuple[str, str, int]]:
    """Yield the voice and the text of sentences, and which of `ASKS` they are.

    Parameters:
        given: the folder of the given conversations; without it, the texts of the repository alone are read.
    """
    chance = random.Random(1)
    ways = lines("requests.txt")
    for variant in variants(ways):
        yield from (("request " + it[:12], typed(it, chance, is_request=True), 1) for it in variant.requests)
        yield from (("topic " + variant.topic.name, text, 0) for text in (*variant.statements[:1], *variant.others[:1]))
    names = [(it.topic, it) for it in variants(ways) if it.topic.language == "en"]
    for way in lines("task-negatives.txt"):
        for topic, _ in chance.sample(names, 8):
            text = Filler(way + topic.name).fill(way.replace("{X}", chance.choice(topic.names)))
            yield "way " + way, typed(written(text, chance), chance, is_request=False), 0
    for text in (text for name in ("negatives", "negatives-2", "negatives-3") for text in lines(f"{name}.txt")):
        yield "way " + text, text, 0
        yield "way " + text, typed(written(text, chance, 1), chance, is_request=False), 0
    for text in (*lines("requests-2.txt"), *lines("requests-3.txt")):
        yield "way " + text, text, 1
        yield "way " + text, typed(written(text, chance, 1), chance, is_request=True), 1
    for name in lines("previous.txt"):
        for way in chance.sample(ways, 6):
            text = written(way[3:].replace("{X}", name), chance)
            yield "previous " + name, typed(text, chance, is_request=True), 2
    for text, label in take_backs():
        yield "take-back " + text, text, label
        yield "take-back " + text, typed(written(text, chance, 1), chance, is_request=True), label
    for text, label in reports("reports"):
        yield "report " + text, text, label
        yield "report " + text, typed(written(text, chance, 1), chance, is_request=label > 0), label
    for is_held_out in (False, True):
        yield from (
            ("voice " + voice, it.sentence, int(it.asks)) for voice, it in voice_sentences(held_out=is_held_out)
        )
    yield from ((f"chat {chat}", text, 0) for chat, text in dict.fromkeys(said_sentences(given)))
    for row, text in reader_sentences():
        yield "reader " + row["voice"], text, int(any(part["act"] == "forgets" for part in row["parts"]))


def asked_pairs(given: Path) -> Iterator[Asked]:
    """Yield the sentences that the encoder of requests is trained with; of what is said, half may ask by its words.

    Parameters:
        given: as in `asked_sentences`.
    """
    chance = random.Random(1)
    yield from (it for _, it in voice_sentences(held_out=False))
    singles = [(text, label) for voice, text, label in asked_sentences(given) if voice.split()[0] in _SINGLES]
    yield from (Asked("", text, label > 0) for text, label in chance.sample(singles, _SINGLES_MAX))
    said = [*dict.fromkeys(text for _, text in said_sentences(given))]
    near = [text for text in said if asks_by_words(text) >= _NEAR_MIN]
    yield from (Asked("", text, False) for text in (*near, *chance.sample(said, len(near))))


def voice_sentences(*, held_out: bool) -> Iterator[tuple[str, Asked]]:
    """Yield the voice and the sentences of the requests of voices, and of what they say without asking.

    Of a request, the sentence that asks: the others may ask as well.
    """
    for row in _rows(held_out=held_out):
        yield from ((row["voice"], _asking(*ask)) for ask in row["ask"])
        others = [text for text in row["said"] if not text.startswith("a: ")]
        yield from ((row["voice"], it) for text in (*row["none"], *others) for it in _not_asking(text))


def _asking(request: str, _: Sequence[int], place: int = 0) -> Asked:
    """Return the sentence at `place` of a request."""
    sentences = split_sentences(request.replace(" || ", " "))
    return Asked("".join(sentences[:place][-1:]), sentences[place], asks=True)


def _not_asking(text: str) -> Iterator[Asked]:
    sentences = split_sentences(text)
    yield from (Asked(before, it, asks=False) for before, it in zip(["", *sentences], sentences, strict=False))


def said_sentences(given: Path) -> Iterator[tuple[str, str]]:
    """Yield the conversation and the sentences of people in whole conversations, of which none asks to forget anything.

    Parameters:
        given: as in `asked_sentences`.
    """
    sys.path.append(str(_CHATS))
    chats: Any = import_module("labelled_chats").read_chats()
    conversations = [(chat.name, chat.events) for chat in chats]
    for path in sorted(given.glob("*.json")):
        conversations.append((path.stem, json.loads(path.read_text(encoding="utf-8"))["events"]))
    for name, events in conversations:
        payloads = (event["payload"] for event in events)
        yield from _sentences(name, (it["text"] for it in payloads if it.get("role") == "user"))
    for path in sorted((given / "training").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            dialogue = json.loads(line)
            yield from _sentences(dialogue["name"], (turn["text"] for turn in dialogue["turns"]))


def _sentences(name: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    sentences = (sentence for text in texts for sentence in split_sentences(text[:_SAID_CHARS_MAX]))
    yield from ((name, sentence) for sentence in sentences if len(sentence) <= _SAID_SENTENCE_MAX)


def reports(name: str) -> Iterator[tuple[str, int]]:
    """Yield reports of what is gone, which have no subject, and short requests with the same verbs, from a file."""
    for line in lines(f"{name}.txt"):
        yield line[2:], int(line[0])


def take_backs() -> Iterator[tuple[str, int]]:
    """Yield the last sentence of the last message of each chat, which asks, and which of `ASKS` it is.

    It means what was said just before where its message is to be forgotten and has none of its words.
    """
    for name in ("take-backs", "take-backs-2"):
        for asked, label in pairwise(lines(f"{name}.txt")):
            if asked.startswith("! "):
                *said, request = split_sentences(asked[2:])
                is_previous = label == "= SELF" and stems_of(request).isdisjoint(stems_of(" ".join(said)))
                yield request, 2 if said and is_previous else 1


def voices(*, held_out: bool) -> Iterator[Scene]:
    """Yield the scenes of voices, with the speaker's own sentences alone."""
    for row in _rows(held_out=held_out):
        places = [place for place, text in enumerate(row["said"]) if not text.startswith("a: ")]
        for request, named, *_ in row["ask"]:
            yield Scene(
                row["voice"],
                request.replace(" || ", " "),
                tuple(row["said"][place] for place in places),
                frozenset(number for number, place in enumerate(places) if place in named),
            )


def refused_scenes(*, held_out: bool) -> Iterator[Scene]:
    """Yield the scenes of voices with a sentence that asks for nothing in place of the request."""
    for row in _rows(held_out=held_out):
        said = tuple(text for text in row["said"] if not text.startswith("a: "))
        yield from (Scene(row["voice"], text, said, frozenset()) for text in row["none"])


def unseen_rows(*, held_out: bool) -> Iterator[Any]:
    """Yield the scenes that no network is trained on: those that the meaning is fitted to, or those held out of it."""
    tested = ("turns-heldout", "scenes-2-heldout", "scenes-3-heldout")
    names = tested if held_out else ("scenes-heldout", "chats-heldout", "voices-heldout")
    for name in names:
        yield from _rows_of(name)


def _rows(*, held_out: bool) -> Iterator[Any]:
    names = ("voices-heldout", "chats-heldout") if held_out else ("voices", "chats", "turns", "scenes", "scenes-3")
    yield from (row for name in names for row in _rows_of(name))


def _rows_of(name: str) -> Iterator[Any]:
    for line in (FOLDER / f"labels-{name}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
