"""Message kinds: finds role play and pasted texts, whose words are not those of the sender."""

from __future__ import annotations

import re

from recollect.events.late_pattern import late_pattern

#: Words of politeness and order before a request.
PLEASE = (
    r"(?:(?:one thing|by the way|btw|also|and|oh|ok|so|well|note)[,:]? )?(?:please,? |can you |could you |would you |will you |"
    r"i (?:want|would like|need) you to |you (?:should|must|can) )?"
)
_LETS = r"let(?:['’]?s| us)"
#: A role for the assistant or the sender anywhere in a message: its instructions hold for the play alone.
_PART = late_pattern(
    rf"\b(?:{_LETS} (?:play|pretend|role-?\s?play)|pretend (?:to be|you|that|we)|imagine (?:you|that you|we) (?:are|were)|"
    r"(?:do|start|play|try) (?:a |some )?role-?\s?play|act as|you are (?:now )?(?:a|an|the|my) \w{1,30}(?:,| and\b|\.)|in this (?:game|story|scene))|"
    r"^\W{0,5}(?:(?:please|hey|hi|ok|now|so|from now on),?\s)?(?:role-?\s?play\b|i want you to (?:act|be|pretend|play)|act like|simulate|"
    r"you(?: are|['’]re)(?: now)? (?:a|an|the|going to (?:act|be|play))|pretend|imagine|suppose|assume (?:that|the|you|i|we))\b",
    re.IGNORECASE,
)
#: A role play that goes on in the next messages. `act as a coach` is not one: the user still speaks as themselves.
_PLAY_BEGINS = late_pattern(
    r"(?:^|[.!?,:\n] ?|\b(?:please|you to|can you|could you|will you|now|ok|okay|so|and|hey) )(?:pretend (?:to be|you|that|we|i)\b|"
    r"imagine (?:that )?(?:you|we|i) (?:are|were|am|was) (?:a|an|the|in)\b|imagine (?:you're|you’re|i'm|i’m)\b)|"
    rf"\b(?:{_LETS} (?:all )?(?:pretend|role-?\s?play)|(?:do|start|play|try) (?:a |some )?role-?\s?play|"
    r"we are (?:now )?playing (?:a |the )?(?:game|part|role)s?|"
    r"^\W*role-?\s?play\b|\b(?:act as|you are|be) (?:my|a|an|the) [\w ]{1,30}(?:,| and) i(?:['’]?m| am|['’]ll be| will be) (?:a|an|the|your|called)\b|"
    rf"{_LETS} play\b[^\n.!?]{{0,60}}[:,;-] ?(?:i'm|i’m|im|i am|i'll|i’ll|you're|you’re|you are|you be|i be)\b|you play (?:a|an|the|my) \w)|"
    r"\byou(?:['’]re| are|['’]ll be| be| will be) (?:a|an|the|my) [\w ]{1,30}(?:,| and) i(?:['’]?m|['’]ll| am| be| will be| play)\b|"
    r"\bi(?:['’]m|['’]ll be| am| will be| play) (?:a|an|the|your) [\w ]{1,30}(?:,| and) you(?:['’]re|['’]ll| are| be| play)\b|"
    rf"\b{_LETS} (?:write|tell|make up|invent) (?:a|an|the|each other) (?:\w+ ){{0,2}}(?:story|stories|tale|scene|dialogue)\b|"
    r"\b(?:mock|practi[cs]e) interview\b",
    re.IGNORECASE,
)
#: The end of a play, from which on the sender speaks as himself.
_PLAY_ENDS = late_pattern(
    r"\b(?:(?:game|play|role-?\s?play|story|scene|pretending) (?:is |'s )?(?:over|done|finished|ended)|end of (?:the )?(?:game|play|role-?\s?play|story|scene)|"
    r"(?:stop|end|quit|finish|leave) (?:the |this |our |with the )?(?:game|play|playing|pretending|role-?\s?play|roleplaying|story|scene)|"
    r"in real life|out of (?:character|role)|no more (?:pretending|role-?\s?play|playing)|(?:done|finished) (?:playing|pretending)|be yourself again|"
    r"back to (?:reality|normal|real life|being)|seriously now|jokes? aside)\b|"
    r"(?:^|[.!?\n] {0,3})(?:(?:ok(?:ay)?|alright),? )?(?:stop|enough|that's enough|the end)(?= {0,3}(?:[.!?,\n]|$))",
    re.IGNORECASE,
)
#: A task on a text, which follows: `translate this into German: …`.
_TASK_ON_TEXT = late_pattern(
    rf"^{PLEASE}(?:translate|summari[sz]e|proofread|rephrase|rewrite|paraphrase|review|correct|shorten|simplify|explain|"
    r"analy[sz]e|check|fix|improve|answer|read)\b[^\n:]{0,80}(?::|\n)",
    re.IGNORECASE,
)
#: Signs of a text by another author: headers of mails, quoted lines, tags, code, log lines, a signature.
_PASTED = late_pattern(
    r"^(?:from|to|subject|sent|date|cc|von|an|betreff|re|fwd?): |^>|```|</?[a-z][\w-]{0,40}[ />]|^\[?\d{4}-\d\d-\d\d[ T]\d\d:|"
    r"^(?:dear|hi|hello) [^\n]{1,60},\s*$|^(?:system|assistant|user|human|ai|instructions?|important|note to (?:the )?(?:ai|assistant))\s*:|"
    r"\b(?:best|kind|warm) regards\b|\bunsubscribe\b|\bignore (?:all |any )?(?:previous|prior|earlier) instructions\b",
    re.IGNORECASE | re.MULTILINE,
)
#: Characters of a message that can be talk about other people by their names; longer ones are mostly about a subject.
_TALK_CHARS_MAX = 300
#: Characters of a message that its sender wrote; longer ones are mostly pasted.
_OWN_CHARS_MAX = 1_500


def is_role_play(text: str) -> bool:
    """Return whether a message gives the assistant or its sender a role, whose words hold for the play alone."""
    return _PART.search(text) is not None


def role_start(text: str) -> int:
    """Return the position from which on a message gives a role; its length without one."""
    match = _PART.search(text)
    return len(text) if match is None else match.start()


def is_pasted(text: str) -> bool:
    """Return whether a message has signs of a text that its sender did not write."""
    return not is_of_sender(text) or _PASTED.search(text) is not None or _TASK_ON_TEXT.match(text) is not None


def is_of_sender(text: str) -> bool:
    """Return whether a message is short enough to be written by its sender, who is part of its `we`."""
    return len(text) <= _OWN_CHARS_MAX


def is_talk(text: str) -> bool:
    """Return whether a message is short enough to be talk, in which a name alone can be a subject."""
    return len(text) <= _TALK_CHARS_MAX


def play_start(text: str) -> int | None:
    """Return the position at which a message begins a play that goes on in the next messages; None without one."""
    match = _PLAY_BEGINS.search(text)
    return None if match is None else match.start()


def play_end(text: str) -> int | None:
    """Return the position at which a message ends a play; None without an end."""
    match = _PLAY_ENDS.search(text)
    return None if match is None else match.start()
