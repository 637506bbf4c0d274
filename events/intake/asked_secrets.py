"""Asked secrets: detects whether a question asks for one stated password, PIN or code: `what is the door code?`.

The question has to ask for the value, and to name what the secret belongs to: `dress code` and `password manager` name
other things than the code of a door, and `how do I change the door code?` asks for something else. `How do I open the
door?` asks for it without its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.events.intake.asked_codes import ASKED_MIN, asked_probability
from recollect.events.intake.secret_formats import Secret
from recollect.events.intake.stated_secrets import PUBLIC_CODE, SECRET_NAME
from recollect.events.late_pattern import late_pattern

#: Characters of a query that is read; longer texts are messages.
_CHARS_MAX = 400
#: Characters around a code, and after the name of a secret, in which its thing is looked for.
_AROUND_CHARS, _FOLLOWING_CHARS = 200, 40
_CLAUSE = late_pattern(r"[.?!;\n]|,\s|:\s|\s-\s")
_SENTENCE_END = late_pattern(r"[.?!](?=\s|$)|\n|;")
_WORD = late_pattern(r"[^\W_]+(?:-[^\W_]+)*")
#: An apostrophe within an English word, which is often left out: `what's`, `mom's`.
_ELIDED = late_pattern(r"['’`´ʼ](?=(?:s|t|m|d|ve|re|ll)(?!\w))")
_APOSTROPHE = late_pattern(r"['’`´ʼ]")

#: What is before the secret's name with its words, in a clause that asks for it.
_ASKING = late_pattern(
    r"(?<!\w)(?:"
    r"(?:what|whats|which|wat|wots?)(?: one| exactly)?(?: (?:is|was|are|were|s|do (?:i|we|you) (?:have|use|need)"
    r"(?: as| for)?|did (?:i|we) (?:set|choose|use)(?: as| for)?))?(?: (?:again|now|currently|then|actually|exactly))?"
    r"|(?:what|how) about|what did (?:i|we|you) say|any (?:idea|clue)(?: what)?"
    r"|where (?:is|do i find|did i (?:put|write|save))"
    r"|(?:can|could|would|will) (?:you|u)(?: (?:please|pls|just|quickly|kindly|maybe)){0,2} (?:tell|give|show|send|text"
    r"|read|remind|pass|look up|find|get|recall|repeat|share|check|fetch|retrieve|provide|print|say)"
    r"(?: (?:me|us|it|out|to me|of|about|again|once more|what|which|please|quickly)){0,4}(?: (?:is|was))?"
    r"|(?:can|could|may) (?:i|we)(?: (?:please|pls|just)){0,2} (?:get|have|see|know|check)"
    r"|(?:do|did|would) (?:you|u|we|i)(?: (?:still|happen to|maybe)){0,2} (?:know|remember|have|recall|store|save|note)"
    r"(?: (?:what|which|again)){0,2}(?: (?:is|was))?"
    r"|(?:i|we|ive|im)(?: (?:have|am|just|always|keep|really|totally|already|again|completely|think i)){0,3} (?:forgot"
    r"|forgotten|forget|forgetting|need|lost|want|would like|looking for|require|could use|must have|blanking on"
    r"|(?:cannot|cant|dont|do not|didnt|couldnt) (?:remember|recall|know|find)|not sure)"
    r"(?: (?:to know|to have|what|again)){0,2}(?: (?:is|was))?"
    r"|(?:trying|want|need|have|like|help me|struggling)(?: to)? (?:remember|recall|find|know|get|look up|check)"
    r"(?: (?:what|which))?(?: (?:is|was))?"
    # German, Spanish, French.
    r"|(?:wie|was) (?:ist|war|lautete?|heisst|hiess)(?: (?:nochmal|noch mal|denn|gleich|doch)){0,2}"
    r"|(?:weisst|kennst|hast) du(?: (?:noch|bitte)){0,2}|ich (?:habe|hab|brauche|suche)(?: (?:bitte|mal)){0,2}"
    r"|(?:sag|gib|nenn|schick|verrat) mir(?: (?:bitte|mal|nochmal)){0,2}|welche[rsn]?"
    r"|(?:cuál|cual|qué|que) (?:es|era)|(?:me (?:dices|das|puedes decir)|dime|dame|recuérdame|recuerdame|recuerdas"
    r"|sabes)(?: (?:cuál|cual) (?:es|era))?"
    r"|(?:quel|quelle) (?:est|était)(?: déjà)?|c est quoi|(?:donne|dis|rappelle)[- ]moi|tu (?:te souviens|connais|sais)"
    r"(?: (?:de|quel est))?|j ai (?:oublié|besoin)"
    r")$"
)
#: The same of a request at the beginning of a clause, where no other subject or negation is before it.
_REQUESTED = late_pattern(
    r"^(?:(?:please|pls|hey|hi|hello|ok|okay|so|and|but|oh|sorry|quick|also|now|again|well|just|bitte|oye|hola|salut|btw"
    r"|uh|um|alexa|by the way)(?: |$)){0,4}(?P<verb>(?:tell|give|show|send|text|read|remind|pass|look up|find|get"
    r"|recall|repeat|share|need|want|check|fetch|retrieve|provide|print|say|remember|forgot|forgotten|lost|know)"
    r"(?: (?:me|us|it|out|to me|of|about|again|once more|what|which|please|quickly)){0,4}(?: (?:is|was))?)?$"
)
#: A question for the way in, up to the thing; it has no name of a secret.
_WAY_IN = late_pattern(
    r"(?<!\w)(?:how (?:do|can|could|would|did|to) ?(?:i|we)?(?: again)? ?(?:get (?:back )?(?:in|into|inside|through)"
    r"|open|unlock|enter|access|disarm|deactivate|log ?in(?:to| to)?|log on(?: to)?|sign in(?:to| to)?|connect to)"
    r"|what (?:do|did|should|must|can)(?: (?:i|we))(?: (?:have|need) to)? (?:type|enter|key|punch|dial)(?: in)?"
    r" (?:at|in|into|on|for|to open|to unlock)) "
)
#: Words that begin a noun phrase, and those that make it one about any password.
_DETERMINERS = frozenset(
    "the my our your his her their its this that der die das den dem des mein meine meinen meiner meinem unser unsere "
    "unseren unserem euer el la los las mi mis nuestro nuestra tu su le les mon ma notre ton votre l d du".split()
)
_QUESTION_WORDS = frozenset("what which welcher welche welches qué que quel quelle".split())
_INDEFINITE = frozenset(
    "a an any another some every each no good strong new better secure random different weak other own all ein "
    "eine einen neues neuen un una uno une nouveau nueva nuevo".split()
)
_LINKS = frozenset(
    "of for to on at in from into with von vom für fur zum zur zu am im beim de del della des du d pour para".split()
)
#: Words that describe nothing.
_PLAIN = frozenset(
    "current actual right correct secret exact full old present entire whole main last home pass access unlock "
    "zugang".split()
)
#: Nouns that add nothing to the word before them: `SIM card PIN` is that of the SIM.
_GENERIC = frozenset("card account karte konto tarjeta carte".split())
#: Where what follows a secret may speak of another one.
_JOINT = late_pattern(r"[,:]\s|(?<!\w)(?:and|but|while|und|aber|y|pero|et|mais)(?!\w)", re.IGNORECASE)
#: Words that end a noun phrase.
_BREAKS = frozenset(
    "is was are were be been am whats who where when why how me us you i we they he she it please pls again give tell "
    "show send need needs want know remember recall have has had forgot forgotten forget about as and or but if so "
    "now since because before after read got find up see lost do did does remind check say lautet ist war mir ich du "
    "wir noch es era est quoi moi nochmal mal bitte him them mich uns mí nous".split()
)
#: Verbs between a name and its thing: `the code to get into the flat`, `which code opens the gate`.
_USES = frozenset(
    "open opens opening unlock unlocks unlocking get gets getting into inside enter entering access log login connect "
    "connecting join use type press belong belongs go goes work works öffnet hat gehört".split()
)
#: The first word after the name; another one makes a compound of it: `code review`, `password manager`.
_FOLLOWING = frozenset(
    "again please pls plz is was now today tonight then here there thanks thank thx number ist war lautet nochmal "
    "bitte por déjà i we you u that my the it its do does did has have had so because cause cuz and or but quick "
    "quickly right real asap anymore any exactly currently actually help vergessen opens open unlocks unlock works "
    "work goes belongs gets get once if when as what whats para de hat öffnet gehört im ive mate bro man dude lol "
    "since before written saved stored noted".split()
)
#: The same after `which code`: also a verb of the code, and what it belongs to.
_AFTER_NAME = _FOLLOWING | _BREAKS | _LINKS | _USES | _DETERMINERS
#: What follows the name when something else than its value is meant.
_OTHER_MATTER = late_pattern(
    r"^(?:is|was|has|did|does|do|will|can|should|have|had|that|and) (?:\w+ ){0,5}(?:safe|secure|strong|weak|broken|best"
    r"|better|expired?|wrong|changed?|works?|working|blocked|means?|valid|invalid|too|not|dont|doesnt|isnt|stopped"
    r"|leaked|stolen|rejected|declined|accepted|choose|pick)\b"
)
#: The rest of a clause that has no asking words, but the thing alone: `the gate code please`.
_BARE_REST = frozenset(
    "is was again please pls plz now thanks thank thx you what whats it quick quickly asap bitte nochmal por favor "
    "number here help real mate bro man dude lol then".split()
)
#: Names for one thing.
_SAME = tuple(
    frozenset(words.split())
    for words in (
        "wifi wi-fi wi fi wlan w-lan network internet router hotspot netzwerk red",
        "bank debit ec girocard atm bankomat cash",
        "bike bicycle fahrrad",
        "phone mobile cell cellphone smartphone handy iphone móvil téléphone",
        "flat apartment wohnung piso appartement",
        "laptop computer pc notebook",
    )
)
_COMPOUND_ENDINGS = ("code", "pin", "passwort", "password", "kennwort", "kombination")


class _Request(NamedTuple):
    """What a question asks for."""

    #: password, pin or code; empty: any of them.
    kind: str
    #: The word that most closely describes it: `door` of `door code`, and of `code for the door`.
    near: frozenset[str]
    #: All words that describe it.
    words: frozenset[str]


class SecretQuestion:
    """A query, and what it asks for."""

    def __init__(self, query: str) -> None:
        self._query = query if len(query) <= _CHARS_MAX else ""
        self._requests = tuple(_requests_in(_normalised(self._query)))
        #: The kinds of codes that it asks for.
        self._kinds = {it.kind for it in self._requests if not any(map(PUBLIC_CODE.match, it.words))}

    def requested(self, text: str, secrets: Sequence[Secret]) -> list[Secret]:
        """Return those of the secrets of a text, in their order, that the query asks for, or probably asks for."""
        surely = self._surely_requested(text, secrets) if self._requests else ()
        return [secret for secret in secrets if secret in surely or self._may_ask_for(text, secret)]

    def _may_ask_for(self, text: str, secret: Secret) -> bool:
        """Return whether the query probably asks for a code, or asks for one and the text names no thing."""
        if secret.kind not in ("code", "pin"):
            return False
        if asked_probability(self._query, text, secret.start, secret.end) >= ASKED_MIN:
            return True
        around = text[max(0, secret.start - _AROUND_CHARS) : secret.end + _AROUND_CHARS]
        return bool(self._kinds) and _kind_of_no_thing(_normalised(around)) in self._kinds

    def _surely_requested(self, text: str, secrets: Sequence[Secret]) -> list[Secret]:
        """Return the secrets of a text that the words of the query ask for."""
        everywhere = _words(_normalised(_without(text, secrets)))
        clauses = zip(secrets, _clauses(text, secrets), strict=True)
        return [
            secret
            for secret, clause in clauses
            if self._asks_for(secret, _normalised(clause), everywhere, is_only=len(secrets) == 1)
        ]

    def _asks_for(self, secret: Secret, clause: str, everywhere: frozenset[str], *, is_only: bool) -> bool:
        """Return whether the query asks for a secret.

        Parameters:
            clause: the words around it.
            everywhere: all words of the text.
            is_only: whether the text has no other secret.
        """
        names = [*SECRET_NAME.finditer(clause)]
        near = _words(clause)
        if is_only and len(near - _BREAKS - _DETERMINERS - _PLAIN) <= len(names):
            # `We moved to the new flat. The code is 4711.`
            near = everywhere
        kinds = {match.lastgroup for match in names} or {secret.kind if secret.kind in ("password", "pin") else "code"}
        return any(
            _has(near, request.near)
            and _has(everywhere, request.words)
            and bool(request.kind or _is_thing(clause, request.near))
            if request.words
            else request.kind in kinds
            for request in self._requests
        )


def _normalised(text: str) -> str:
    """Return a text case folded, without the apostrophes that people leave out."""
    return _APOSTROPHE.sub(" ", _ELIDED.sub("", text.casefold()))


def _requests_in(query: str) -> Iterator[_Request]:
    """Yield what a query asks for."""
    for clause in _CLAUSE.split(query):
        for match in SECRET_NAME.finditer(clause):
            request = _named(clause, match)
            if request is None:
                continue
            # `My gym locker, what's the combination?`
            others = () if request.words else _mentioned(query)
            yield from [_Request(request.kind, it, it) for it in others] or [request]
        words = " ".join(_WORD.findall(clause))
        way = _WAY_IN.search(words)
        thing, _ = (None, ()) if way is None else _thing(words[way.end() :].split())
        if thing:
            yield _Request("", frozenset(thing[-1:]), frozenset(thing))


def _kind_of_no_thing(text: str) -> str | None:
    """Return the kind of a secret that a text names, and nowhere what it belongs to: `code changed`, no `gate code`."""
    names = [*SECRET_NAME.finditer(text)]
    return names[0].lastgroup if names and not any(_has_thing(text, match) for match in names) else None


def _has_thing(text: str, name: re.Match[str]) -> bool:
    """Return whether words before or after the name of a secret say what it belongs to."""
    begin = max((match.end() for match in _SENTENCE_END.finditer(text, 0, name.start())), default=0)
    described, _ = _described(_WORD.findall(text[begin : name.start()]))
    following = _WORD.findall(text[name.end() : name.end() + _FOLLOWING_CHARS])
    return described != [] or (bool(following) and following[0] in _LINKS)


def _mentioned(query: str) -> list[frozenset[str]]:
    """Return each word of the things that a query mentions apart from the names of secrets."""
    parts = [_WORD.findall(part) for part in _CLAUSE.split(SECRET_NAME.sub(";", query))]
    phrases = [part[place + 1 :] for part in parts for place, word in enumerate(part) if word in _DETERMINERS]
    return [frozenset({word}) for phrase in phrases for word in _thing(phrase)[0] or ()]


def _named(clause: str, match: re.Match[str]) -> _Request | None:
    """Return what a clause asks for by the name of a secret; None: it does not ask for it."""
    before, after = _WORD.findall(clause[: match.start()]), _WORD.findall(clause[match.end() :])
    described, is_which = _described(before)
    if described is None or _OTHER_MATTER.match(" ".join(after)):
        return None
    if after[:1] in (["for"], ["to"]) and after[1:2] and after[1] in _BREAKS:
        # `The code for me` is that of no thing.
        after = after[2:]
    if is_which:
        if after and after[0] not in _AFTER_NAME:
            return None
        # `Which code did she set for the gate`: what the thing is may be said last.
        after = after[next((place for place, word in enumerate(after) if word in _LINKS), 0) :]
        after = after[next((place for place, word in enumerate(after) if word not in _BREAKS), len(after)) :]
    is_linked = is_which or (bool(after) and after[0] in _LINKS)
    thing, rest = _thing(after) if is_linked else ([], after)
    if thing is None or not (is_which or _is_asked(" ".join(before), rest, is_linked=is_linked)):
        return None
    compound = next((match[0].removesuffix(end) for end in _COMPOUND_ENDINGS if match[0].endswith(end)), "").strip(
        "-s "
    )
    head = [compound] if compound and compound not in _PLAIN else []
    return _Request(
        str(match.lastgroup), frozenset([*described[-1:], *thing[:1], *head]), frozenset([*described, *thing, *head])
    )


def _described(before: list[str]) -> tuple[list[str] | None, bool]:
    """Take the words that describe a name from the end of the words before it; None: it is about any password.

    The second value is whether `which` or `what` begins them.
    """
    described: list[str] = []
    while before and before[-1] not in _BREAKS | _LINKS:
        word = before.pop()
        if word in _INDEFINITE:
            return None, False
        if word in _DETERMINERS or word in _QUESTION_WORDS:
            return described, word in _QUESTION_WORDS
        if described[:1] and described[0] in _GENERIC:
            described.pop(0)
        if word not in _PLAIN and SECRET_NAME.fullmatch(word) is None:
            described.insert(0, word)
    return described, False


def _is_asked(lead: str, rest: Sequence[str], *, is_linked: bool) -> bool:
    """Return whether words before a name ask for it.

    Parameters:
        rest: the words after the name and its thing.
        is_linked: whether a thing is between them.
    """
    if not is_linked and rest and rest[0] not in _FOLLOWING:
        return False
    if any(char.isdigit() for word in rest for char in word):
        # `The code is now 4711` states the code.
        return False
    requested = _REQUESTED.match(lead)
    is_bare = requested is not None and requested["verb"] is None
    return _BARE_REST.issuperset(rest) if is_bare else requested is not None or _ASKING.search(lead) is not None


def _thing(words: Sequence[str]) -> tuple[list[str] | None, Sequence[str]]:
    """Return the words of a thing at the beginning of words, and those after it; None: it is any thing."""
    thing: list[str] = []
    is_linked = True
    for place, word in enumerate(words):
        if word in _INDEFINITE:
            return None, ()
        if word in _LINKS or (word in _USES and not thing):
            is_linked = True
        elif word in _BREAKS or (thing and not is_linked and word in _DETERMINERS):
            return thing, words[place:]
        elif word not in _DETERMINERS and word not in _PLAIN:
            thing.append(_singular(word))
            is_linked = False
    return thing, ()


def _clauses(text: str, secrets: Sequence[Secret]) -> Iterator[str]:
    """Yield the words that belong to each secret of a text: its sentence, up to its neighbours."""
    place = 0
    for secret, following in zip(secrets, [*secrets[1:], None], strict=True):
        begin = max([place, *(match.end() for match in _SENTENCE_END.finditer(text, place, secret.start))])
        limit = len(text) if following is None else following.start
        end = _SENTENCE_END.search(text, secret.end, limit)
        # What follows a secret up to the next one describes the next one, as a rule.
        rest = text[secret.end : end.start()] if end is not None else text[secret.end :] if following is None else ""
        yield f"{text[begin : secret.start]} {_own_rest(rest)}"
        place = secret.end


def _own_rest(rest: str) -> str:
    """Return what follows a secret without what speaks of another one: `and the dress code is black tie`."""
    name = SECRET_NAME.search(rest)
    joints = [] if name is None else [match.start() for match in _JOINT.finditer(rest, 0, name.start())]
    return rest[: joints[-1]] if joints else rest


def _without(text: str, secrets: Sequence[Secret]) -> str:
    """Return a text without its secrets."""
    kept: list[str] = []
    place = 0
    for secret in secrets:
        kept.append(text[place : secret.start])
        place = max(place, secret.end)
    return " ".join([*kept, text[place:]])


def _words(normalised: str) -> frozenset[str]:
    """Return the words of a text and the parts of hyphenated ones, without plural endings."""
    words = _WORD.findall(normalised)
    return frozenset(map(_singular, [*words, *(part for word in words if "-" in word for part in word.split("-"))]))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _has(words: frozenset[str], wanted: frozenset[str]) -> bool:
    """Return whether all wanted words, or others for the same, are among some words, or parts of them."""
    return all(_has_word(words, _singular(word)) for word in wanted)


def _has_word(words: frozenset[str], wanted: str) -> bool:
    if wanted in words:
        return True
    if any(not words.isdisjoint(same) for same in _SAME if wanted in same):
        return True
    # `Türcode` has the word for the door.
    return len(wanted) > 2 and any(word.startswith(wanted) and word.endswith(_COMPOUND_ENDINGS) for word in words)


def _is_thing(clause: str, wanted: frozenset[str]) -> bool:
    """Return whether wanted words name a thing of a clause, and do not describe another: the door, no gym locker."""
    words = [*map(_singular, _WORD.findall(SECRET_NAME.sub(" is ", clause)))]
    ends = {number for number, word in enumerate(words) if word in _BREAKS | _LINKS | _DETERMINERS} | {len(words)}
    things = frozenset(word for number, word in enumerate(words, 1) if number in ends)
    return _has(things, wanted)
