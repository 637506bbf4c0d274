"""Training of the name reader: fits the weights of `jobs/extraction/entity_weights.npz` to labelled sentences.

    .venv/bin/python ops/train/entities [--write] [--show] [--lists]

One voice in three is held out: prints precision and recall of the names there and the accuracy of their types.
`--lists` builds the lists of names and words first, see `word_lists.py`.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from label_files import LabelledText, labelled_texts
from numpy.typing import NDArray
from word_lists import write_lists

from recollect.jobs import extraction as package
from recollect.jobs.extraction import entity_names
from recollect.jobs.extraction.entity_extractor import names_of
from recollect.jobs.extraction.entity_names import BUCKETS, TYPES, Words, listed_before
from recollect.jobs.extraction.name_lexicon import first_names, places
from recollect.projections.text.sentence_language import language_of

#: Inverse strength of the L2 penalty, and copies of a text with other names: by four folds over the trained voices.
_C = 2.0
_COPIES = 6
#: Share of the copies that are typed without capitals.
_LOWER_SHARE = 0.3
_INT8_MAX = 127
_SYLLABLES = "ba ko ri te lu mi sha no ve da ni ga rel to an so kei bre lin mo zu fer han ta".split()


#: Share of the names in the copies that get more words, and these words: before a space, after it.
_LONGER_SHARE = 0.3
_LONGER = {
    "location": "New |San |Lake |Mount |North |Port | Park| Street| Beach| Road| Island| Station| Valley".split("|"),
    "organization": " Bank| Labs| Hospital| University| College| School| GmbH| Inc| Group| Foundation|University_of |"
    "Bank_of | Studios| FC| Club|Universidad_de | Airlines".split("|"),
    "event": " Festival| Marathon| Conference| Summit| Parade| Cup".split("|"),
    "work": "The | Story|The_Lord_of_the ".split("|"),
    "tool": " Pro| Premium| API".split("|"),
}


def main() -> None:
    """Train, score and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the weights")
    parser.add_argument("--show", action="store_true", help="print the errors")
    parser.add_argument("--lists", action="store_true", help="build the lists of names and words first")
    options = parser.parse_args()
    if options.lists:
        write_lists()
    trained, held_out = labelled_texts()
    weights, bias, scale = _fitted(trained)
    # The reader under test has the weights as they are written.
    entity_names.entity_weights = lambda: (weights.astype(np.float32) * scale, bias)
    for name, texts in (("trained", trained), ("held out", held_out)):
        print(name)
        score(texts, names_of, show=options.show and name == "held out")
    if options.write:
        path = Path(next(iter(package.__path__))) / "entity_weights.npz"
        np.savez_compressed(path, weights=weights, bias=bias, scale=scale)
        print(path, path.stat().st_size, "bytes")


def _fitted(texts: Sequence[LabelledText]) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.float32]]:
    """Return the weights, the bias and the scale of each type."""
    random = Random(30)
    pools = _pools(texts)
    rows: list[list[int]] = []
    labels: list[int] = []
    counts: list[float] = []
    for text in texts:
        copies = [_renamed(text, pools, random) for _ in range(_COPIES if text.names else 0)]
        copies = [copy if random.random() > _LOWER_SHARE else _lowered(copy) for copy in copies]
        for copy in (text, *copies):
            for features, label in _examples(copy):
                rows.append(features)
                labels.append(label)
                counts.append(1 / (1 + len(copies)))
    ends = np.cumsum([0, *(len(row) for row in rows)])
    indices = np.concatenate([np.array(row) for row in rows])
    sparse: Any = import_module("scipy.sparse")
    linear_model: Any = import_module("sklearn.linear_model")
    matrix = sparse.csr_matrix((np.ones(len(indices), np.float32), indices, ends), shape=(len(rows), BUCKETS))
    model = linear_model.LogisticRegression(C=_C, max_iter=300)
    model.fit(matrix, labels, sample_weight=np.array(counts) * 2)
    coefficients = np.zeros((BUCKETS, len(TYPES)), np.float32)
    bias = np.full(len(TYPES), -20, np.float32)
    classes: Any = model.classes_
    coefficients[:, classes] = model.coef_.T
    bias[classes] = model.intercept_
    scale = np.maximum(np.abs(coefficients).max(axis=0), 1e-6) / _INT8_MAX
    print(len(texts), "texts,", len(rows), "words with copies")
    return np.rint(coefficients / scale).astype(np.int8), bias, scale.astype(np.float32)


def _examples(text: LabelledText) -> list[tuple[list[int], int]]:
    """Return the features and the class of each word of a text that may be part of a name."""
    words = Words(text.text, language=language_of(text.text) or "")
    examples: list[tuple[list[int], int]] = []
    last: tuple[int, str] | None = None
    for number in words.candidates():
        it = words.tokens[number]
        end = it.start + len(it.text)
        if any(it.start < stop and start < end for start, stop in text.ignored):
            continue
        type = next((type for start, stop, type in text.names if it.start < stop and start < end), "none")
        before = last[1] if last is not None and last[0] == number - 1 else "none"
        examples.append((words.features(number, before, listed_before(words, number, last)), TYPES.index(type)))
        if type != "none":
            last = number, type
    return examples


def _pools(texts: Sequence[LabelledText]) -> dict[str, list[str]]:
    """Return the names that may stand for another name of their type."""
    pools: defaultdict[str, list[str]] = defaultdict(list)
    for text in texts:
        for start, end, type in text.names:
            pools[type].append(text.text[start:end].title() if text.text.islower() else text.text[start:end])
    people, towns = sorted(first_names()), sorted(places())
    pools["person"] = [name.title() for name in people]
    pools["location"] += [town.title() for town in towns if len(town.split()) < 3]
    # Names of software: invented words, often with a capital inside.
    ends = ("Hub", "DB", "Flow", ".js", "ly", "Stack", "Pad", "ify", ".io", "Kit", "", "")
    pools["tool"] += [
        f"{one.title()}{two}{end}" for one in _SYLLABLES for two, end in zip(_SYLLABLES[3:], ends * 2, strict=False)
    ]
    pools["animal"] += [name.title() for name in people[::40]]
    return pools


def _renamed(text: LabelledText, pools: dict[str, list[str]], random: Random) -> LabelledText:
    """Return a text with other names, some of which no list has."""
    said, names, ignored, end = "", list[tuple[int, int, str]](), list[tuple[int, int]](), 0
    marks = sorted([*text.names, *((start, stop, "") for start, stop in text.ignored)])
    for start, stop, type in marks:
        old = text.text[start:stop]
        new = old
        if type and random.random() < 0.8:
            is_invented = random.random() < 0.25 and type in ("person", "location", "animal", "organization")
            new = "".join(random.sample(_SYLLABLES, 2 + random.randrange(2))).title() if is_invented else ""
            new = _extended(new or random.choice(pools[type]), type, pools, random)
            new = new.lower() if old.islower() else new.upper() if old.isupper() and len(old) > 3 else new
        said += text.text[end:start] + new
        (
            names.append((len(said) - len(new), len(said), type))
            if type
            else ignored.append((len(said) - len(new), len(said)))
        )
        end = stop
    return LabelledText(
        source=text.source, voice=text.voice, text=said + text.text[end:], names=tuple(names), ignored=tuple(ignored)
    )


def _extended(name: str, type: str, pools: dict[str, list[str]], random: Random) -> str:
    """Return a name, or one of several words that ends or begins as such names do."""
    if " " in name or random.random() > _LONGER_SHARE:
        return name
    if type == "person":
        return f"{name} {random.choice(pools['person'])}"
    first, _, last = random.choice(_LONGER.get(type, ("",))).partition(" ")
    return f"{first} {name} {last}".strip().replace("_", " ")


def _lowered(text: LabelledText) -> LabelledText:
    """Return a text without capitals."""
    lower = "".join(char.lower() if len(char.lower()) == 1 else char for char in text.text)
    return LabelledText(source=text.source, voice=text.voice, text=lower, names=text.names, ignored=text.ignored)


def score(texts: Sequence[LabelledText], read: Callable[[str], dict[str, str]], *, show: bool) -> None:
    """Print how many names of the texts are read, by source."""
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for text in texts:
        gold = {text.text[start:end].casefold(): type for start, end, type in text.names}
        ignored = [text.text[start:end].casefold() for start, end in text.ignored]
        names = {name.casefold(): type for name, type in read(text.text).items()}
        wrong = [n for n in names if n not in gold and not any(n in it or it in n for it in ignored)]
        right = [name for name in names if name in gold]
        typed = sum(gold[name] == names[name] for name in right)
        for source in ("all", text.source, f"{text.source} {'lower' if text.text.islower() else 'cased'}"):
            counts[source] = [
                count + more
                for count, more in zip(counts[source], (len(gold), len(right), len(wrong), typed), strict=True)
            ]
        if show:
            missed = [name for name in gold if gold[name] != names.get(name)]
            for sign, listed in (("+", wrong), ("-", missed)):
                for name in listed:
                    print(f"  {sign} {name}: {gold.get(name)} read {names.get(name)} | {text.text[:110]}")
    for source, (all_names, right, wrong, typed) in sorted(counts.items()):
        precision, recall = right / max(right + wrong, 1), right / max(all_names, 1)
        print(
            f"  {source:22} {all_names:4} names, precision {precision:.3f}, recall {recall:.3f}, "
            f"F1 {2 * right / max(all_names + right + wrong, 1):.3f}, types {typed / max(right, 1):.3f}"
        )


if __name__ == "__main__":
    main()
