"""Knowledge fit: fits the relevance of knowledge items to the questions of `knowledge_cases.json`.

    python ops/fit/knowledge_fit.py

Every case is a memory of its own, and so are its crops of 1, 3 and 7 items. The questions of the other cases, of the
rest of the case, and general ones have no answer in a memory. Prints the coefficients of `knowledge_measures.py`, and
for each case, left out of the fit, how often the item that answers comes first, passes the gate, and how often another
one does.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from recollect import Recollect
from recollect.api.retrieval import namespace_search
from recollect.api.retrieval.knowledge_search import KnowledgeSearch
from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.ranking.knowledge_measures import MEASURES, KnowledgeMeasures
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.understanding.first_person import is_first_person
from recollect.projections.embeddings.embedder import NO_MODEL
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.projection_settings import DEFAULT_MODEL
from recollect.projections.queries.knowledge_items import KnowledgeItem

sys.path.append(str(Path(__file__).parents[1]))
from evaluation.unanswerable_questions import GENERAL_QUESTIONS

_CASES = Path(__file__).with_name("knowledge_cases.json")
#: What is expected of each measure before the cases are seen, with vectors and without. The cases are few, so the fit
#: is pulled towards it: a matched name, title or rare word counts even where the cases have other signs enough.
_EXPECTED = {
    DEFAULT_MODEL: (0.4, 1.0, 0.2, 2.0, 1.5, 0.7, 1.0, 0.6, -1.5),
    NO_MODEL: (0.0, 0.0, 0.0, 4.0, 2.0, 1.0, 1.5, 0.8, -1.0),
}
#: The strength of the L2 penalty on the distance from it, and the steps of Newton's method.
_PENALTY = 3.0
_STEPS = 30
#: The sizes of small memories that a case is cut into, in items.
_CROP_SIZES = (1, 3, 7)
#: The probability that an item needs to pass the gate.
_PASS_MIN = 0.1


Floats = NDArray[np.floating[Any]]


class _Question(NamedTuple):
    """A question to a memory."""

    text: str
    #: The places of the items that answer it.
    answers: tuple[int, ...]


class _Sample(NamedTuple):
    """One question to one memory."""

    #: The name of the case.
    memory: str
    question: str
    #: Shape (items, measures).
    matrix: Vector
    #: Whether each item answers the question, shape (items,).
    answers: Mask


def _event(item: Sequence[Any]) -> dict[str, Any]:
    """Return the event of an item of a case."""
    kind, *values = item
    names = {
        "fact": ("fact.stated", ("subject", "predicate", "object")),
        "preference": ("preference.stated", ("category", "key", "value")),
        "procedure": ("procedure.recorded", ("name", "trigger", "steps")),
        "relationship": ("relationship.stated", ("source", "type", "target")),
        "document": ("document.added", ("document_id", "title", "text")),
        "entity": ("entity.described", ("name", "type", "description")),
    }
    type, fields = names[kind]
    return {"type": type, "payload": dict(zip(fields, values, strict=True))}


class _RecordingSearch(KnowledgeSearch):
    """A knowledge search that keeps the measures of the last query."""

    items: Sequence[KnowledgeItem] = ()
    matrix: Vector = np.empty((0, len(MEASURES)), np.float32)

    def measure(self, context: SearchContext, idf: Mapping[str, float], embedding: Vector | None) -> KnowledgeMeasures:
        """Return the measures of every item, and keep them for all instances."""
        measured = super().measure(context, idf, embedding)
        _RecordingSearch.items, _RecordingSearch.matrix = context.index.knowledge.items, measured.matrix()
        return measured


def _samples(
    memory: Recollect, name: str, items: Sequence[Any], speaker: str | None, questions: Sequence[_Question]
) -> list[_Sample]:
    """Return a sample for each question, asked to a namespace with `items`."""
    memory.append(name, [_event(item) for item in items])
    if speaker is not None:
        greeting = {"role": "user", "name": speaker, "text": "Good morning!"}
        memory.append(name, {"type": "message.added", "session_id": "first", "payload": greeting})
    if os.environ["RECOLLECT_EMBEDDING_MODEL"] != NO_MODEL:
        memory.embed(namespace=name)
    samples: list[_Sample] = []
    for question in questions:
        memory.retrieve(name, question.text, gate=False)
        # Each item is an event of its own, so its version is its place in the case.
        places = {place: row for row, place in enumerate(_places(_RecordingSearch.items, items))}
        wanted = np.zeros(len(_RecordingSearch.matrix), np.bool_)
        wanted[[places[place] for place in question.answers if place in places]] = True
        samples.append(_Sample(name, question.text, _RecordingSearch.matrix, wanted))
    return samples


def _places(found: Sequence[KnowledgeItem], items: Sequence[Any]) -> list[int]:
    """Return the place of each knowledge item in its case; -1 for one without."""
    by_text = {" ".join(str(value) for value in item[1:4]): place for place, item in enumerate(items)}
    places: list[int] = []
    for item in found:
        match item.kind:
            case "fact" | "relationship":
                key = item.line
            case _:
                key = next((text for text in by_text if all(title in text for title in item.titles[:1])), "")
        places.append(by_text.get(key, -1))
    return places


def _fit(samples: Sequence[_Sample], expected: Sequence[float]) -> Vector:
    """Return the coefficients and the constant of a logistic regression on the items of all samples."""
    matrix = np.concatenate([sample.matrix for sample in samples]).astype(np.float64)
    matrix = np.column_stack([matrix, np.ones(len(matrix))])
    answers = np.concatenate([sample.answers for sample in samples])
    prior = np.array([*expected, -5.0])
    penalty = np.array([_PENALTY] * len(expected) + [0.0])
    weights = _newton(matrix, answers, prior, penalty)
    # A weight of the wrong sign compensates for another measure in these cases, so the measure is left out.
    matrix[:, np.append(np.sign(weights[:-1]) == -np.sign(prior[:-1]), False)] = 0
    return (_newton(matrix, answers, prior, penalty) * matrix.any(axis=0)).astype(np.float32)


def _newton(matrix: Floats, answers: Mask, prior: Floats, penalty: Floats) -> Floats:
    """Return the coefficients with the highest posterior probability, by Newton's method."""
    # From zero, where the curvature is greatest, the method does not overshoot.
    weights = np.zeros(len(prior))
    for _ in range(_STEPS):
        values = 1 / (1 + np.exp(-matrix @ weights))
        gradient = matrix.T @ (values - answers) + penalty * (weights - prior)
        curvature = (matrix * (values * (1 - values))[:, None]).T @ matrix + np.diag(penalty)
        weights = weights - np.linalg.solve(curvature, gradient)
    return weights


def _report(samples: Sequence[_Sample], weights: Vector) -> str:
    """Return how often an answer is first and passes the gate, and how often another item does."""
    own = [sample for sample in samples if sample.answers.any()]
    others = [sample for sample in samples if not sample.answers.any()]
    scores = {id(sample): relevance_of(sample.matrix, weights) for sample in samples}
    first = np.mean([sample.answers[scores[id(sample)].argmax()] for sample in own])
    passed = np.mean([(scores[id(sample)][sample.answers] >= _PASS_MIN).any() for sample in own])
    noise = np.mean([(scores[id(sample)][~sample.answers] >= _PASS_MIN).sum() for sample in own])
    spoken = np.mean([(scores[id(sample)] >= _PASS_MIN).any() for sample in others]) if others else 0.0
    return (
        f"{len(own)} questions: answer first {first:.0%}, passes {passed:.0%}, others that pass {noise:.1f}; "
        f"{len(others)} without an answer: spoken to {spoken:.0%}"
    )


def relevance_of(matrix: Vector, weights: Vector) -> Vector:
    """Return the probability of each item, shape (items,)."""
    return 1 / (1 + np.exp(-(matrix @ weights[:-1] + weights[-1])))


def main() -> None:
    """Fit both regressions and print them with reports."""
    cases: list[dict[str, Any]] = orjson.loads(_CASES.read_bytes())
    namespace_search.KnowledgeSearch = _RecordingSearch
    for model in (DEFAULT_MODEL, NO_MODEL) if len(sys.argv) < 2 else sys.argv[1:]:
        os.environ["RECOLLECT_EMBEDDING_MODEL"] = model
        with tempfile.TemporaryDirectory() as folder, Recollect(folder, workers=False) as memory:
            samples = _all_samples(memory, cases)
        print(model)
        for name in dict.fromkeys(sample.memory for sample in samples):
            kept = [sample for sample in samples if sample.memory != name]
            print(
                f"  {name} left out: {_report([s for s in samples if s.memory == name], _fit(kept, _EXPECTED[model]))}"
            )
        weights = _fit(samples, _EXPECTED[model])
        print("  all:", _report(samples, weights))
        names = (*MEASURES, "constant")
        print("  " + ", ".join(f"{name} {value:.2f}" for name, value in zip(names, weights, strict=True)))


def _all_samples(memory: Recollect, cases: Sequence[dict[str, Any]]) -> list[_Sample]:
    """Return the samples of each case as a memory, and of the small memories that it is cut into."""
    samples: list[_Sample] = []
    general = [_Question(text, ()) for text in GENERAL_QUESTIONS[::2]]
    for case in cases:
        items = case["items"]
        own = [_Question(text, tuple(places)) for text, places in case["questions"]]
        others = [
            _Question(text, ())
            for other in cases
            if other is not case
            for text, _ in other["questions"][::2]
            if not is_first_person(text)
        ]
        speaker = case.get("speaker")
        samples += _samples(memory, case["name"], items, speaker, [*own, *others, *general])
        for size in _CROP_SIZES:
            for start in range(0, len(items) - size + 1, size):
                crop = range(start, start + size)
                asked = [
                    _Question(text, tuple(place - start for place in places if place in crop)) for text, places in own
                ]
                name = f"{case['name']}-{size}-{start}"
                cropped = _samples(memory, name, items[start : start + size], speaker, [*asked, *others[::3]])
                samples += [sample._replace(memory=case["name"]) for sample in cropped]
    return samples


if __name__ == "__main__":
    main()
