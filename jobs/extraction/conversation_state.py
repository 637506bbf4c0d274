"""Conversation state: what the earlier messages of a session say about the next one: who takes part, and whether a play goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from recollect.jobs.extraction.message_kinds import play_end, play_start
from recollect.projections.queries.session_queries import EarlierTurn

#: Messages of one speaker after which a pronoun no longer refers to a person whom they mentioned.
_MESSAGES_MAX = 3
#: Earlier messages of a session that are read for its state: a play of more messages than this is rare.
EARLIER_TURNS_MAX = 40


class Conversation:
    """The state of one session, which its messages change in their order."""

    def __init__(self) -> None:
        #: Whether a role play goes on.
        self.is_play = False
        #: Whether an assistant takes part.
        self.has_assistant = False
        #: The people who take part, without the assistant.
        self._speakers: dict[str, None] = {}
        #: The last people of each gender whom a speaker mentioned, and the number of the speaker's message.
        self._people: dict[str, dict[str, tuple[str, int]]] = {}
        self._messages: dict[str, int] = {}
        #: The last messages of each speaker that were read before; their people are not yet known.
        self._unread: dict[str, deque[str]] = {}

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
        self._speakers[speaker] = None
        self._messages[speaker] = self._messages.get(speaker, 0) + 1

    def is_alone(self, speaker: str) -> bool:
        """Return whether no other person has taken part."""
        return self._speakers.keys() <= {speaker}

    def other_than(self, speaker: str) -> str | None:
        """Return the other participant of a conversation of two people; None when there are more or fewer."""
        others = [other for other in self._speakers if other != speaker]
        return others[0] if len(others) == 1 and speaker in self._speakers else None

    def people(self, speaker: str) -> dict[str, str]:
        """Return the last people of each gender whom the last messages of a speaker mention."""
        message = self._messages.get(speaker, 0)
        listed = self._people.get(speaker, {})
        return {gender: words for gender, (words, number) in listed.items() if message - number <= _MESSAGES_MAX}

    def keep_people(self, speaker: str, people: dict[str, str]) -> None:
        """Keep the last people of each gender whom a message of a speaker mentions."""
        message = self._messages.get(speaker, 0)
        before = self._people.get(speaker, {})
        self._people[speaker] = {
            gender: before[gender] if gender in before and before[gender][0] == words else (words, message)
            for gender, words in people.items()
        }

    def add_earlier(self, turns: Iterable[EarlierTurn]) -> None:
        """Add the earlier messages of the session, in order."""
        for turn in turns:
            self.has_assistant |= turn.role == "assistant"
            if turn.role == "user":
                self.join(turn.speaker)
                own = self.outside_of_play(turn.text)
                self._unread.setdefault(turn.speaker, deque(maxlen=_MESSAGES_MAX - 1)).append(own)

    def take_unread(self, speaker: str) -> Sequence[str]:
        """Return the last earlier messages of a speaker, once."""
        return tuple(self._unread.pop(speaker, ()))


class Conversations:
    """The states of the sessions of a batch of messages."""

    def __init__(self, earlier_turns: Callable[[str], Iterable[EarlierTurn]]) -> None:
        """Create it.

        Parameters:
            earlier_turns: returns the earlier messages of a session, in order.
        """
        self._earlier_turns = earlier_turns
        self._conversations: dict[str, Conversation] = {}

    def of(self, session_id: str | None) -> Conversation:
        """Return the state of a session; a message without a session is a conversation of its own."""
        if session_id is None:
            return Conversation()
        conversation = self._conversations.get(session_id)
        if conversation is None:
            conversation = self._conversations[session_id] = Conversation()
            conversation.add_earlier(self._earlier_turns(session_id))
        return conversation
