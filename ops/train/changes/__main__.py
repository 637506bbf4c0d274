"""Training of changes: the encoder that reads a statement and a sentence as one text, and the change odds.

    OMP_NUM_THREADS=2 .venv/bin/python ops/train/changes [--write] [--odds] [--given FOLDER]

Fits the first logit of `jobs/extraction/change_odds.py` to whole conversations whose changes are marked, trains the
encoder on voices, lives and chats, and fits the second logit, which reads what the encoder says, to conversations that
the encoder is not trained on. Prints what each finds in those that are held out. With `--odds`, the encoder stays as it
is. Needs PyTorch, which comes with sentence-transformers, and the embedding model of the product.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from conversations import GIVEN, GIVEN_HELD_OUT, given_chats, lives, marked_chats
from encoder import Part, train_encoder
from labelled_pairs import LabelledPairs, ReadRelations, default_embedder, pairs_of_voices
from labels import FOLDER, read_scenarios
from odds import Logit, Rows, by_words, first_rows, fitted, folds, joined, odds_rows, report, write
from variants import coexisting, variants

from recollect.jobs.extraction.comparison import pair_probabilities
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import pair_reader
from recollect.projections.projection_settings import CHANGES_MODEL

_HELD_OUT_VOICES = FOLDER.parent / "held-out"
#: First letters of the voices of the third held-out file, which the reading encoder is trained on.
_READ_VOICES = "fgh"
#: First letters of the voices that the second logit is fitted to; the encoder is not trained on them.
_ODDS_VOICES = "odds-"
#: First letters of the chats with slips that the second logit is fitted to; the encoder is trained on the others.
_ODDS_SLIPS = ("c-", "g-")
#: Times that the pairs of lives are seen in an epoch of the encoder.
_LIVES_TIMES = 3


class Read(NamedTuple):
    """The sentences that are trained on, and those that are held out."""

    voices: list[LabelledPairs]
    odds_voices: list[LabelledPairs]
    #: Made of voices: in other words, and beside other statements.
    variants: list[LabelledPairs]
    coexisting: list[LabelledPairs]
    lives: list[LabelledPairs]
    chats: list[LabelledPairs]
    slips: list[LabelledPairs]
    given: list[LabelledPairs]
    held_out: dict[str, list[LabelledPairs]]

    @property
    def encoder_slips(self) -> list[LabelledPairs]:
        """Return the sentences of chats with slips that the encoder is trained on."""
        return [it for it in self.slips if not it.source.startswith(_ODDS_SLIPS)]

    @property
    def odds_sentences(self) -> list[LabelledPairs]:
        """Return the sentences besides the chats that the second logit is fitted to."""
        slips = [it for it in self.slips if it.source.startswith(_ODDS_SLIPS)]
        return [*self.odds_voices, *slips, *self.lives, *(it for it in self.given if it.source not in GIVEN_HELD_OUT)]


def read_sentences(given: Path, embedder: SentenceEmbedder) -> Read:
    """Return all sentences; the product reads the conversations, with the weights of the package."""
    labelled = [*read_scenarios()]
    scenarios = [it for it in labelled if not it.voice.startswith(_ODDS_VOICES)]
    of_odds = [it for it in labelled if it.voice.startswith(_ODDS_VOICES)]
    held_out = [it for it in read_scenarios(_HELD_OUT_VOICES) if it.voice[0] not in _READ_VOICES]
    of_given = given_chats(given)
    return Read(
        voices=[*pairs_of_voices(scenarios, embedder)],
        odds_voices=[*pairs_of_voices(of_odds, embedder)],
        variants=[*pairs_of_voices([*variants(scenarios, 1)], embedder)],
        coexisting=[*pairs_of_voices([*coexisting(scenarios, 1)][::2], embedder)],
        lives=lives(held_out=False),
        chats=marked_chats("chats"),
        slips=marked_chats("slips"),
        given=of_given,
        held_out={
            "voices": [*pairs_of_voices(held_out, embedder)],
            "lives": lives(held_out=True),
            "chats": marked_chats("held-out-chats"),
            "slips": marked_chats("held-out-slips"),
            "given conversations": [it for it in of_given if it.source in GIVEN_HELD_OUT],
        },
    )


def fit_first(read: Read, seen: Callable[[Rows], Rows], title: str) -> tuple[Logit, Logit]:
    """Return the first logit of statements and of rules; of rules, few conversations have a change.

    Parameters:
        seen: returns what is seen of the rows.
    """
    sentences = [*read.chats, *read.slips, *read.lives, *(it for it in read.given if it.source not in GIVEN_HELD_OUT)]
    logits: list[Logit] = []
    for rules in (False, True):
        rows = first_rows([*read.voices, *sentences] if rules else sentences, rules=rules)
        logits.append(fitted(seen(rows)))
        held_out = {name: seen(first_rows(it, rules=rules)) for name, it in read.held_out.items()}
        report_held_out(f"{title}, rules" if rules else title, logits[-1], held_out)
    return logits[0], logits[1]


def fit_odds(read: Read, first: Sequence[Logit], relations: ReadRelations) -> tuple[Logit, Logit]:
    """Return the second logit of statements and of rules."""
    more = odds_rows(read.odds_sentences, first, relations, rules=False)
    chats = odds_rows(read.chats, first, relations, rules=False)
    report("odds, chats, each read by the others", folds(chats, more), chats.is_change)
    statements = fitted(joined(chats, more))
    rules = fitted(odds_rows([*read.voices, *read.chats, *read.odds_sentences], first, relations, rules=True))
    for of_rules, logit in enumerate((statements, rules)):
        rows = {name: odds_rows(it, first, relations, rules=bool(of_rules)) for name, it in read.held_out.items()}
        report_held_out("odds, rules" if of_rules else "odds", logit, rows)
    return statements, rules


def report_held_out(title: str, logit: Logit, held_out: dict[str, Rows]) -> None:
    """Print what a logit finds in what is held out."""
    for name, rows in held_out.items():
        if len(rows.inputs):
            report(f"{title}, held-out {name}", logit.probabilities(rows.inputs), rows.is_change)


def main() -> None:
    """Fit, train, report and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights")
    parser.add_argument(
        "--odds", action="store_true", help="fit the logits only, to what the encoder of the package says"
    )
    parser.add_argument("--given", type=Path, default=GIVEN, help="folder of the given conversations")
    arguments = parser.parse_args()
    embedder = default_embedder()
    read = read_sentences(arguments.given, embedder)
    first, words = fit_first(read, lambda rows: rows, "first"), fit_first(read, by_words, "first by words")
    if arguments.odds:
        reader = pair_reader(CHANGES_MODEL, embedder)
        if reader is None:
            raise SystemExit("The encoder of changes is not ready.")
        relations = pair_probabilities(reader)
    else:
        relations = trained(read, first, writes=arguments.write)
    second = fit_odds(read, first, relations)
    if arguments.write:
        write(words=words, first=first, odds=second)


def trained(read: Read, first: Sequence[Logit], *, writes: bool) -> ReadRelations:
    """Return what a newly trained encoder says."""
    parts = (
        Part(read.voices, 3, 1.0, 1),
        Part(read.variants, 2, 0.5, 1),
        Part(read.coexisting, 3, 0.5, 1),
        Part(read.lives, 4, 1.0, _LIVES_TIMES),
        Part(read.encoder_slips, 3, 1.0, 1),
    )
    return train_encoder(parts, first, writes=writes)


if __name__ == "__main__":
    main()
