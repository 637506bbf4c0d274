"""Conversation state: the participants and the open role play of a session, with which the next message is read."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from functools import cache, partial
from typing import NamedTuple

from recollect.jobs.extraction.message_kinds import play_end, play_start
from recollect.projections.queries.session_queries import EarlierTurn
from recollect.projections.text.earlier_days import EARLIER_MESSAGES_MAX, EarlierDays, days_named
from recollect.projections.text.words import folded_words

#: Earlier messages of a session that are read for its state: a play of more messages than this is rare.
EARLIER_TURNS_MAX = 40
#: Characters of a sentence, and of them the words, that may name who is spoken to.
_ADDRESS_CHARS, _ADDRESS_WORDS = 60, 3
#: Last messages of a speaker that the next one is read with: of the changes of the last three in 46 held-out chats, 274
#: are of the last message, 24 of the one before, 14 of the third.
LAST_MAX = 2


class Said(NamedTuple):
    """A message of a person."""

    event_id: str
    text: str


class ConversationState:
    """The state of one session, which its messages change in their order."""

    def __init__(self) -> None:
        #: Whether a role play goes on.
        self.is_play = False
        #: Whether an assistant takes part.
        self.has_assistant = False
        #: The people who take part, without the assistant.
        self._speakers: set[str] = set()
        #: The last messages of each of them.
        self._last: defaultdict[str, deque[Said]] = defaultdict(lambda: deque(maxlen=LAST_MAX))
        #: Each returns the days that one of the last messages names, which are read once, when they are asked for.
        self._days: deque[EarlierDays] = deque(maxlen=EARLIER_MESSAGES_MAX)

    def outside_of_play(self, text: str) -> str:
        """Return the part of a message in which its sender speaks as himself; the message may begin or end a play."""
        begin, end = play_start(text), play_end(text)
        if begin is None:
            own = "" if self.is_play and end is None else text[end:] if self.is_play else text
            self.is_play = self.is_play and end is None
            return own
        before = "" if self.is_play else text[:begin]
        is_over = end is not None and end > begin
        self.is_play = not is_over
        return f"{before}\n{text[end:]}" if is_over else before

    def join(self, speaker: str) -> None:
        """Add a participant."""
        self._speakers.add(speaker)

    def say(self, speaker: str, said: Said) -> None:
        """Add a message of a person."""
        self._last[speaker].append(said)

    def last_of(self, speaker: str) -> Sequence[Said]:
        """Return the last messages of a person, oldest first."""
        return tuple(self._last[speaker])

    def name_days(self, text: str, sent_at: datetime) -> None:
        """Add the days that a message names."""
        self._days.append(cache(partial(days_named, text, sent_at)))

    def earlier_days(self) -> Sequence[date]:
        """Return the days that the last messages name, the latest last."""
        return tuple(day for days in self._days for day in days())

    def is_alone(self, speaker: str) -> bool:
        """Return whether no other person has taken part."""
        return self._speakers <= {speaker}

    def addresses_other(self, sentence: str, speaker: str) -> bool:
        """Return whether a sentence begins with the name of another participant: `oh Mina, call me anytime`."""
        names = {word for name in self._speakers - {speaker} for word in folded_words(name)}
        return not names.isdisjoint(folded_words(sentence[:_ADDRESS_CHARS])[:_ADDRESS_WORDS])

    def add_earlier(self, turns: Iterable[EarlierTurn]) -> None:
        """Add the earlier messages of the session, in order."""
        for turn in turns:
            self.name_days(turn.text, turn.sent_at)
            self.has_assistant |= turn.role == "assistant"
            if turn.role == "user":
                self.join(turn.speaker)
                own = self.outside_of_play(turn.text)
                if own.strip():
                    self.say(turn.speaker, Said(turn.id, own))


class Conversations:
    """The states of the sessions of a batch of messages."""

    def __init__(self, earlier_turns: Callable[[str], Iterable[EarlierTurn]]) -> None:
        """Create it.

        Parameters:
            earlier_turns: returns the earlier messages of a session, in order.
        """
        self._earlier_turns = earlier_turns
        self._conversations: dict[str, ConversationState] = {}

    def of(self, session_id: str | None) -> ConversationState:
        """Return the state of a session; a message without a session is a conversation of its own."""
        if session_id is None:
            return ConversationState()
        conversation = self._conversations.get(session_id)
        if conversation is None:
            conversation = self._conversations[session_id] = ConversationState()
            conversation.add_earlier(self._earlier_turns(session_id))
        return conversation
