"""Corrected messages: which of the last messages of a speaker the next one puts right, replaces or ends.

`19th`, `*Lena`, `the left one i mean` are not statements: by themselves they mean nothing. So a separate encoder reads
each message with the messages before it. What it may change is only doubted: nothing ends, and where the earlier
message is shown, the later one is shown with it. `ops/train/changes/messages.py` trains the encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from recollect.events.intake.secrets import probable_secrets
from recollect.jobs.extraction.changes import DOUBT_MAX
from recollect.jobs.extraction.comparison import CHANGES, pair_probabilities
from recollect.jobs.extraction.conversation_state import Said
from recollect.jobs.extraction.rule_extractor import ExtractedItem
from recollect.projections.embeddings.reading_encoder import ReadPairs

#: From this probability on a message is in doubt: `ops/train/changes/README.md` has the figures.
_DOUBTFUL_MIN = 0.75
#: Longer messages are not read: of 317 held-out and trained messages that were rightly found, none has more characters
#: (`ops/train/changes/README.md`).
_CHARS_MAX = 160
_WEIGHTS = "message_weights.npz"


def corrected_messages(
    speaker: str, said: Said, last: Sequence[Said], reader: Callable[[], ReadPairs | None]
) -> Iterator[ExtractedItem]:
    """Yield the doubt of the message that `said` most likely changes; none when it changes none.

    Parameters:
        last: the messages of its speaker before it, oldest first; none is empty.
        reader: returns the reading of pairs of messages, which loads the encoder at the first one; None: there is none.
    """
    read_pairs = reader() if last and len(said.text) <= _CHARS_MAX else None
    if read_pairs is None:
        return
    texts = [(it.text, said.text) for it in last]
    changes = pair_probabilities(read_pairs, _WEIGHTS)(texts)[:, CHANGES].sum(axis=1)
    place = int(changes.argmax())
    # `7714# careful` does not say that it is a code: it would be shown where the wrong one is hidden.
    if changes[place] >= _DOUBTFUL_MIN and not probable_secrets(last[place].text):
        probability = min(round(float(changes[place]), 3), DOUBT_MAX)
        doubt = {"subject": speaker, "event": last[place].event_id, "probability": probability}
        # It goes when either message is erased.
        yield ExtractedItem("doubts", doubt | {"source_events": (said.event_id, last[place].event_id)})
