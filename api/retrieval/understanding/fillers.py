"""Fillers: recognises messages without words to search for, and names that only address someone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.words import WORD

#: Words and characters of a filler, at most; a longer message is read.
_WORDS_MAX = 12
_CHARS_MAX = 200
_ACKNOWLEDGING = frozenset(
    "ok okay k kk thanks thank thx ty you so much very a lot again great cool nice good perfect awesome amazing "
    "wonderful lovely brilliant excellent super fine sure yes yeah yep yup no nope alright right got it i see that "
    "thats s sounds makes sense understood lol haha hahaha wow oh ah hm hmm mhm true exactly indeed agreed same here "
    "for me too bye goodbye later cheers welcome problem worries will do please have and day night evening "
    "weekend one "
    "take care chatting talking to with soon aha alright hehe oops fantastic congrats congratulations man right "
    "super "
    "danke bitte gut genau ja nein tschüss спасибо хорошо ок да нет понятно пока пожалуйста merci oui non "
    "gracias vale "
    "sí grazie prego obrigado obrigada sim não 谢谢 好的 好 ありがとう はい "
    # German, Spanish, French, Chinese and Japanese
    "dankeschön danke dir euch vielen dank besten lieben sehr schön super klasse prima toll passt klar alles ok cool "
    "verstanden stimmt richtig okay bis bald später dann morgen tschau ciao tschüssi nacht gute schönen abend "
    "tag noch "
    "muchas mil claro perfecto genial bueno bien entendido de nada hasta luego mañana pronto adiós adios chao buenas "
    "noches igualmente jaja jajaja "
    "beaucoup bien d accord parfait très rien c est bon noté au revoir à demain bientôt bonne nuit journée "
    "soirée mdr "
    "多谢 谢谢你 谢谢您 谢了 感谢 嗯 嗯嗯 哈哈 哈哈哈 是的 对 对的 行 可以 没问题 明白 明白了 知道了 了解 收到 "
    "太好了 真好 再见 拜拜 晚安 明天见 回头见 "
    "ありがとうございます ありがとうございました どうも うん ええ そうですね なるほど 了解 了解です わかりました "
    "分かりました わかった オッケー すごい "
    "さようなら またね また明日 じゃあね おやすみ おやすみなさい お疲れ様 いいね".split()
)
_GREETING = frozenset(
    "hi hello hey hiya yo morning afternoon there everyone how are is going doing today hallo moin servus guten tag "
    "abend morgen moin grüß gott servus wie geht dir es привет здравствуйте salut bonjour bonsoir coucou ça va "
    "hola buenos "
    "días buenas tardes qué tal ciao olá 你好 您好 早 早上好 早安 晚上好 下午好 嗨 哈喽 你好吗 大家好 こんにちは "
    "こんばんは おはよう おはようございます "
    "やあ 元気 元気ですか お元気ですか".split()
)
#: A farewell with its time, such as "see you tomorrow".
_FAREWELL = late_pattern(
    r"\b(?:see|catch|talk to|speak to) (?:you|ya|u)\b(?: (?:all|guys|both))?"
    r"(?: (?:later|soon|tomorrow|tonight|around|there|then|again|(?:next|on) \w{1,12}))?",
    re.IGNORECASE,
)
#: The words that a filler begins with.
_FIRST_WORDS = _ACKNOWLEDGING | _GREETING | {"see", "catch", "talk", "speak"}
#: A name that addresses someone: "Thanks, Bob!", "…, Bob." or "Bob, …"; the words around it are not about Bob.
_ADDRESS = late_pattern(
    r"\b(?:hey|hi|hello|thanks|thank you|thx|wow|yeah|yes|yep|no|nope|oh|ok|okay|sure|sorry|congrats|bye|great|cool|"
    r"nice|awesome|haha|dear|morning|evening),? (\w{1,40})(?=\s*[,.!;:?–-]|\s*$)|, (\w{1,40})(?=[!.?]|\s*$)|"
    r"^[ \t]{0,8}(\w{1,40})[,!] ",
    re.IGNORECASE | re.MULTILINE,
)


def is_acknowledgement(text: str, names: Collection[str] = ()) -> bool:
    """Return whether a message has no words, such as 👍, or only words like `ok, thanks a lot!`.

    Parameters:
        names: names of participants that the message addresses, case-folded.
    """
    if len(text) >= _CHARS_MAX or not _may_be_filler(text, names) or "?" in text or not text.strip():
        return False
    words = set(WORD.findall(_FAREWELL.sub(" ", text).casefold())) - set(names)
    return len(words) <= _WORDS_MAX and _ACKNOWLEDGING.issuperset(words)


def is_greeting(text: str, names: Collection[str] = ()) -> bool:
    """Return whether a message is only a greeting, such as `good morning!` or `hi Ann, how are you?`.

    Parameters:
        names: names of participants that the message addresses, case-folded.
    """
    if len(text) >= _CHARS_MAX or not _may_be_filler(text, names):
        return False
    words = set(WORD.findall(text.casefold()[:_CHARS_MAX])) - set(names)
    return (
        len(words) <= _WORDS_MAX and not _GREETING.isdisjoint(words) and (_GREETING | _ACKNOWLEDGING).issuperset(words)
    )


def is_filler(text: str) -> bool:
    """Return whether a message is an acknowledgement or a greeting."""
    return is_acknowledgement(text) or is_greeting(text)


def _may_be_filler(text: str, names: Collection[str]) -> bool:
    """Return whether a text has no word, or begins with one of a filler; most do not, which takes a fifth of the time.

    Parameters:
        names: names of participants that the message addresses, case-folded.
    """
    first = WORD.search(text if text.isascii() else text.casefold())
    return first is None or (word := first.group().casefold()) in _FIRST_WORDS or word in names


def addressed_names(text: str) -> frozenset[str]:
    """Return the words of `text`, case-folded, that are only used to address someone.

    Not all of them are names: "great pizza!" has the form of "great, Bob!".
    """
    addressed = Counter(name.casefold() for match in _ADDRESS.finditer(text) for name in match.groups() if name)
    words = Counter(WORD.findall(text.casefold()))
    return frozenset(name for name, count in addressed.items() if words[name] <= count)
