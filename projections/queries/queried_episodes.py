"""Queried episodes: the records that queries on episodes return."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from recollect.events.local_time import fixed_zone, local_time


class EpisodeRow(Struct, frozen=True, kw_only=True):
    """An episode as the input of summaries."""

    version: int
    #: Id of its event.
    id: str
    session_id: str | None
    #: user, assistant, system or tool:<name>; None for actions and observations.
    role: str | None
    speaker: str
    text: str
    #: The captions of its attachments; None: no captions.
    caption: str | None
    #: 1 to 10.
    importance: int
    occurred_at_us: int
    #: Minutes east of UTC; None: not known, so UTC.
    utc_offset: int | None = None

    @property
    def sent_at(self) -> datetime:
        """Return the time in its own zone."""
        return local_time(self.occurred_at_us, fixed_zone(self.utc_offset or 0))

    def line(self) -> str:
        """Return the text with the caption in parentheses."""
        return f"{self.text} ({self.caption})" if self.caption else self.text


class NamedDate(NamedTuple):
    """A range of time that the words of a message may mean."""

    words: str
    start_us: int
    #: Exclusive.
    end_us: int
    probability: float


class SummaryRow(Struct, frozen=True, kw_only=True):
    """A summary: an episode of the tier compressed or distilled."""

    version: int
    id: str
    session_id: str | None
    text: str


class EpisodeDetails(NamedTuple):
    """An episode as the item of a retrieval's result. A retrieval reads dozens, which frozen dataclasses make slow."""

    version: int
    id: str
    #: conversation, action or observation.
    type: str
    text: str
    caption: str | None
    occurred_at_us: int
    session_id: str | None
    speaker: str
    #: raw, compressed or distilled.
    tier: str
    role: str | None
    short: str | None = None
    #: The id of the summary that has the episode as a source, once the episode has expired; None before.
    summary_id: str | None = None
    #: Minutes east of UTC.
    utc_offset: int = 0


class SpokenText(NamedTuple):
    """The text of an episode with its speaker."""

    speaker: str
    text: str
    caption: str | None

    def line(self) -> str:
        """Return speaker, text and caption on one line."""
        caption = f" ({self.caption})" if self.caption else ""
        return f"{self.speaker}: {self.text}{caption}"


class EpisodeToEmbed(Struct, frozen=True, kw_only=True):
    """An episode as the input of an embedding model."""

    version: int
    id: str
    #: raw, compressed or distilled.
    tier: str
    spoken: SpokenText
    #: Version of the previous episode of its session, which may have expired; None: the first one.
    previous: int | None


class SpokenAfter(NamedTuple):
    """The text of an episode, and which episode it follows."""

    spoken: SpokenText
    #: Version of the previous episode of its session, which may have expired; None: the first one.
    previous: int | None


class TierTotals(Struct, frozen=True, kw_only=True):
    """Number and size of the episodes of one tier."""

    episodes: int
    #: Estimated tokens of their texts and captions.
    tokens: int
