"""Model of changes: the network whose weights `jobs/extraction/comparison.py` uses, and its training with PyTorch."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from labels import LabelledSentence
from numpy.typing import NDArray

from recollect.jobs.extraction.change_features import KINDS, VECTOR_FEATURES, Read, cues, pair_features, prior_text
from recollect.jobs.extraction.comparison import HINTED, RELATIONS

Array = NDArray[Any]
Item = TypeVar("Item")
# PyTorch comes with sentence-transformers, and its types are incomplete.
torch: Any = import_module("torch")
nn: Any = torch.nn
CHANGES = ("none", "ends", "replaces", "corrects")
_CUES_MAX = 110
#: A word with a capital letter that does not begin the text.
_CAPITAL = re.compile(r"(?<!^)\b[A-Z][^\W\d_]+")
#: Cues of fewer sentences, or of one voice, have no weights.
_COUNT_MIN = 12
_CODE, _PRODUCT, _HIDDEN = 16, 8, 48
_DROPPED, _DROPPED_CUES, _WITHOUT_VECTORS, _WITHOUT_KIND = 0.2, 0.3, 0.25, 0.4
#: Sentences of a batch, and statements that each is compared with.
_BATCH, _STATEMENTS_MAX = 24, 12
_RATE, _DECAY = 3e-3, 5e-2
#: Share of the sentences of conversations in an epoch, of which there are too many alike.
_CONVERSATION_SHARE = 0.4
#: Weights of what the words alone say: what a sentence changes and of which kind a text is.
_CHANGE_WEIGHT, _KIND_WEIGHT = 0.4, 0.3


@dataclass(slots=True)
class Examples:
    """Pairs as arrays: one row a pair, and one a text."""

    #: The sentence of each pair, features, cues, the reader's hint by words and with vectors, rows of the texts of the
    #: sentence and the statement, relation. The pairs of a sentence are neighbours.
    sentence: Array
    features: Array
    cues: Array
    hint: Array
    text: Array
    prior: Array
    kind: Array
    relation: Array
    #: Cues and vectors of each distinct text, its kind and its change; -1: not labelled.
    text_cues: Array
    vectors: Array
    text_kind: Array
    text_change: Array


def batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Yield the items in groups of `size`."""
    yield from (items[start : start + size] for start in range(0, len(items), size))


def known_words(sentences: Sequence[LabelledSentence]) -> frozenset[str]:
    """Return the words that are cues of their own: names in English are not."""
    counts: Counter[str] = Counter()
    capitals: Counter[str] = Counter()
    voices: defaultdict[str, set[str]] = defaultdict(set)
    texts = {(sentence.voice, sentence.language, sentence.text) for sentence in sentences}
    texts |= {(it.voice, it.language, prior_text(prior)) for it in sentences for prior in it.statements}
    for voice, language, text in texts:
        for word in set(Read(text).words):
            counts[word] += 1
            voices[word].add(voice)
        if language == "en":
            capitals.update({word.lower() for word in _CAPITAL.findall(text)})
    common = {word for word, count in counts.items() if count >= _COUNT_MIN and len(voices[word]) > 1}
    return frozenset(word for word in common if capitals[word] * 2 < counts[word] or word == "i")


def vocabulary_of(sentences: Sequence[LabelledSentence], known: frozenset[str]) -> list[str]:
    """Return the cues with weights; those of one word are the known words."""
    counts: Counter[str] = Counter()
    voices: defaultdict[str, set[str]] = defaultdict(set)
    seen: set[tuple[str, str]] = set()
    for sentence in sentences:
        texts = {sentence.text, *(prior_text(prior) for prior in sentence.statements)}
        read = Read(sentence.text)
        lists = [cues(Read(text).words, known) for text in texts if (sentence.voice, text) not in seen]
        seen |= {(sentence.voice, text) for text in texts}
        # A change in a conversation is labelled without the statements that it changes.
        if sentence.statements:
            priors = [Read(prior_text(prior)) for prior in sentence.statements]
            lists += pair_features(read, priors, sentence.speaker, None, known)[1]
        for cue in {cue for words in lists for cue in words}:
            counts[cue] += 1
            voices[cue].add(sentence.voice)
    common = {cue for cue, count in counts.items() if count >= _COUNT_MIN and len(voices[cue]) > 1}
    return sorted(common | known)


def _indexed(lists: Sequence[Sequence[str]], places: dict[str, int]) -> Array:
    """Return the places of cues, shape (n, `_CUES_MAX`), filled up with 0."""
    array = np.zeros((len(lists), _CUES_MAX), np.int64)
    for row, words in enumerate(lists):
        known = [places[word] + 1 for word in words if word in places][:_CUES_MAX]
        array[row, : len(known)] = known
    return array


def examples_of(
    sentences: Sequence[LabelledSentence], vectors: dict[str, Array], hints: dict[str, Array], vocabulary: Sequence[str]
) -> Examples:
    """Return the pairs of sentences and their statements."""
    places = {cue: place for place, cue in enumerate(vocabulary)}
    known = frozenset(cue for cue in vocabulary if " " not in cue)
    rows: dict[str, int] = {}
    texts: list[str] = []
    kinds: list[int] = []
    changes: list[int] = []

    def row_of(text: str, words: str, kind: str | None, change: int) -> int:
        if text not in rows:
            rows[text] = len(texts)
            texts.append(words)
            kinds.append(KINDS.index(kind) if kind in KINDS else -1)
            changes.append(change)
        return rows[text]

    columns: list[tuple[int, int, int, int, int]] = []
    features: list[list[float]] = []
    marked: list[list[str]] = []
    said: list[Array] = []
    for number, sentence in enumerate(sentences):
        change = CHANGES.index(sentence.change if sentence.change != "repeats" else "none")
        text = row_of(sentence.text, sentence.text, sentence.kind, change)
        if not sentence.statements:
            continue
        reads = [Read(prior_text(prior)) for prior in sentence.statements]
        cosines = [float(vectors[sentence.text] @ vectors[prior.text]) for prior in sentence.statements]
        values, words = pair_features(Read(sentence.text), reads, sentence.speaker, cosines, known)
        features += values
        marked += words
        said += [hints[sentence.text]] * len(reads)
        for prior, relation in zip(sentence.statements, sentence.relations, strict=True):
            place = row_of(prior.text, prior_text(prior), prior.kind, -1)
            kind = KINDS.index(prior.kind) if prior.kind in KINDS else -1
            columns.append((number, text, place, kind, RELATIONS.index(relation)))
    table = np.array(columns, np.int64)
    return Examples(
        sentence=table[:, 0],
        features=np.array(features, np.float32),
        cues=_indexed(marked, places),
        hint=np.array(said, np.float32),
        text=table[:, 1],
        prior=table[:, 2],
        kind=table[:, 3],
        relation=table[:, 4],
        text_cues=_indexed([cues(Read(text).words, known) for text in texts], places),
        vectors=np.array([vectors[text] for text in rows], np.float32),
        text_kind=np.array(kinds),
        text_change=np.array(changes),
    )


class Network(nn.Module):
    """The weights, and the scores of pairs."""

    def __init__(self, cue_count: int, examples: Examples) -> None:
        nn.Module.__init__(self)
        self.code = nn.Embedding(cue_count + 1, _CODE, padding_idx=0)
        self.kind = nn.Embedding(cue_count + 1, len(KINDS), padding_idx=0)
        for table in (self.code, self.kind):
            nn.init.normal_(table.weight, std=0.02)
        self.code_vector = nn.Linear(examples.vectors.shape[1], _CODE)
        self.kind_vector = nn.Linear(examples.vectors.shape[1], len(KINDS))
        self.product = nn.Linear(examples.vectors.shape[1], _PRODUCT)
        width = examples.features.shape[1] + len(HINTED) + _CODE + _PRODUCT + 2 * len(KINDS) + 1
        self.hidden = nn.Linear(width, _HIDDEN)
        self.output = nn.Linear(2 * _HIDDEN, len(RELATIONS))
        self.change = nn.Linear(_CODE, len(CHANGES))
        self.register_buffer("mean", torch.tensor(examples.features.mean(0)))
        self.register_buffer("scale", torch.tensor(1 / (examples.features.std(0) + 0.05)))

    def kinds(self, cues: Any, vectors: Any) -> Any:
        """Return the probabilities of the kinds of texts, as logarithms."""
        return (self.kind(cues).sum(1) + self.kind_vector(vectors) * 4).log_softmax(1)

    def codes(self, cues: Any, vectors: Any) -> Any:
        """Return the codes of sentences."""
        return torch.tanh(self.code(cues).sum(1) + self.code_vector(vectors) * 4)

    def forward(self, pairs: dict[str, Any]) -> Any:
        """Return the scores of the relations of pairs, shape (n, 5)."""
        features = (pairs["features"] - self.mean) * self.scale
        sentence, prior = pairs["sentence_kinds"].exp(), pairs["prior_kinds"].exp()
        affinity = ((sentence * prior).sum(1, keepdim=True) + 1e-3).log()
        product = torch.tanh(self.product(pairs["vectors"] * pairs["prior_vectors"] * 8))
        code = self.codes(pairs["cues"], pairs["vectors"])
        row = torch.cat([features.clamp(-4, 4), pairs["hint"] * 4, code, product, sentence, prior, affinity], 1)
        row = nn.functional.dropout(row, _DROPPED, self.training)
        activations = torch.relu(self.hidden(row))
        # The greatest values of all statements of the sentence: whether another one is changed.
        owner = pairs["owner"][:, None].expand_as(activations)
        most = torch.zeros_like(activations).scatter_reduce(0, owner, activations, "amax")
        return self.output(torch.cat([activations, most.gather(0, owner)], 1))


def _batch(network: Network, examples: Examples, rows: Array, *, vectors: bool, known: float, training: bool) -> Any:
    """Return the inputs of pairs."""
    at = torch.from_numpy
    texts, priors = examples.text[rows], examples.prior[rows]
    _, owner = np.unique(examples.sentence[rows], return_inverse=True)
    keeps = np.full(len(rows), float(vectors), np.float32)
    if training:
        keeps = (np.random.rand(owner.max() + 1) > _WITHOUT_VECTORS).astype(np.float32)[owner]
    features = examples.features[rows].copy()
    features[:, -VECTOR_FEATURES:] *= keeps[:, None]
    said, stated = (at(examples.vectors[places] * keeps[:, None]) for places in (texts, priors))
    marked, of_text, of_prior = (
        at(array) for array in (examples.cues[rows], examples.text_cues[texts], examples.text_cues[priors])
    )
    if training:
        marked, of_text, of_prior = (
            array * (torch.rand(array.shape) > _DROPPED_CUES) for array in (marked, of_text, of_prior)
        )
    prior_kinds = network.kinds(of_prior, stated)
    # The product knows which statements are rules.
    is_rule = examples.kind[rows] == KINDS.index("rule")
    is_known = is_rule | ((examples.kind[rows] >= 0) & (np.random.rand(len(rows)) < known))
    one = np.log(np.full((len(rows), len(KINDS)), 0.02 / len(KINDS), np.float32))
    one[np.arange(len(rows)), examples.kind[rows]] = np.log(0.98)
    prior_kinds = torch.where(at(is_known)[:, None], at(one), prior_kinds)
    return {
        "features": at(features),
        "hint": at(examples.hint[rows, keeps.astype(np.int64)]),
        "owner": at(owner),
        "cues": marked,
        "vectors": said,
        "prior_vectors": stated,
        "sentence_kinds": network.kinds(of_text, said),
        "prior_kinds": prior_kinds,
    }


def fitted(examples: Examples, cue_count: int, is_natural: Array, *, epochs: int, seed: int) -> Network:
    """Return a network that is fitted to examples.

    Parameters:
        is_natural: whether each sentence is of a conversation, without a change.
    """
    torch.manual_seed(seed)
    np.random.seed(seed)
    network = Network(cue_count, examples)
    optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=_DECAY)
    schedule: Any = None
    changed = np.nonzero(examples.text_change >= 0)[0]
    of_kind = np.nonzero(examples.text_kind >= 0)[0]
    pairs_of = _pairs_of(examples)
    for _ in range(epochs):
        draws = np.random.rand(len(is_natural))
        order = np.random.permutation([it for it in pairs_of if not is_natural[it] or draws[it] < _CONVERSATION_SHARE])
        if schedule is None:
            steps = int(epochs * len(order) / _BATCH * 1.1) + 10
            schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=steps)
        for numbers in batches(order.tolist(), _BATCH):
            batch = np.concatenate([_some(examples, pairs_of[it]) for it in numbers])
            scores = network(_batch(network, examples, batch, vectors=True, known=1 - _WITHOUT_KIND, training=True))
            loss = nn.functional.cross_entropy(scores, torch.from_numpy(examples.relation[batch]))
            for places, labels, weight in (
                (changed, examples.text_change, _CHANGE_WEIGHT),
                (of_kind, examples.text_kind, _KIND_WEIGHT),
            ):
                texts = np.random.choice(places, 64)
                of_text = torch.from_numpy(examples.text_cues[texts])
                of_text = of_text * (torch.rand(of_text.shape) > _DROPPED_CUES)
                keeps = (np.random.rand(64, 1) > _WITHOUT_VECTORS).astype(np.float32)
                said = torch.from_numpy(examples.vectors[texts] * keeps)
                if labels is examples.text_change:
                    auxiliary = network.change(network.codes(of_text, said))
                else:
                    auxiliary = network.kinds(of_text, said)
                loss = loss + weight * nn.functional.cross_entropy(auxiliary, torch.from_numpy(labels[texts]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return network.eval()


def _pairs_of(examples: Examples) -> dict[int, Array]:
    """Return the rows of the pairs of each sentence."""
    starts = np.nonzero(np.diff(examples.sentence, prepend=-1))[0]
    return {int(examples.sentence[rows[0]]): rows for rows in np.split(np.arange(len(examples.sentence)), starts[1:])}


def _some(examples: Examples, rows: Array) -> Array:
    """Return the pairs of a sentence with a relation, and some of the others."""
    related = rows[examples.relation[rows] > 0]
    others = np.random.permutation(rows[examples.relation[rows] == 0])
    return np.concatenate([related, others[: max(0, _STATEMENTS_MAX - len(related))]])


def probabilities(network: Network, examples: Examples, *, vectors: bool, known: bool = True) -> Array:
    """Return the probabilities of the relations of pairs."""
    with torch.no_grad():
        parts = [
            network(_batch(network, examples, rows, vectors=vectors, known=float(known), training=False)).softmax(1)
            for rows in map(np.concatenate, batches([*_pairs_of(examples).values()], _BATCH))
        ]
    return torch.cat(parts).numpy()
