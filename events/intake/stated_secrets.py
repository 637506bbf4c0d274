"""Stated secrets: finds passwords, PINs and codes by the words with which people say them, in many languages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from recollect.events.intake.part_search import PartSearch
from recollect.events.intake.payload_lines import line_numbers
from recollect.events.intake.secret_formats import Secret, matches_at
from recollect.events.late_pattern import late_pattern

_ACCESS_WORD = (
    r"(?:pass?w(?:or|ro)[dt]|pass(?:phrase|code|wd)|pwd?|kennwort|losungswort|mot de passe|mdp|contrase[nñ]a|clave"
    r"|senha|palavra-passe|parola(?: d.ordine)?|wachtwoord|has[lł]o|парол[ьяюе]|l[oö]senord|passord|adgangskode|kodeord"
    r"|salasana|heslo|[sş]ifre(?:m|si|miz)?|jelsz[oó]|密码|密碼|パスワード|비밀번호)"
)
_PIN = r"(?:pin(?:[ -]?(?:code|nummer|number))?|geheimzahl|暗証番号)"
_CODE = (
    r"(?:[^\W\d_]{0,20}code|(?:zahlen)?kombination|combination|combo|c[oó]digo|codice|kode|kodu?|κωδικ[οό]ς|код|otp|tan"
    r"|cvv2?|cvc2?)"
)
#: Words between the name of the secret and the verb: `the code of the flat in Porto is`.
_GAP = (
    r"(?:[ \t]{1,4}(?:of|for|to|on|at|from|in|von|vom|f[uü]rs?|zum|zur|zu|am|im|beim|des|der|de|del|della|do|da|di|du"
    r"|pour|para|per|voor|van|na|do|til|för|dla|от|для|на|в|к)(?:[ \t]{1,4}[^\s:=,.;!?]{1,30}){1,6}?)?"
)
#: What joins a secret to its name, also behind a gap.
_IS = (
    r"(?:(?:[ \t]{1,4}[^\W\d_]{1,20}){0,2}[ \t]{0,4}(?:[:=：]|=>|->|→)[ \t]{0,4}"
    r"|[ \t]{1,4}(?:is|was|ist|lautet|war|wäre|hei(?:ss|ß)t|es|est|c['’]est|era|è|é|jest|to|är|er|on|je|это|=)"
    r"[ \t]{1,4}(?:(?:now|jetzt|still|jetz|ahora|maintenant|adesso|agora|nu)[ \t]{1,4})?"
    r"|['’]s[ \t]{1,4}(?:(?:now|still)[ \t]{1,4})?"
    r"|[ \t]{0,4}(?:是|は|은|는)[ \t]{0,4})"
)
#: What joins it directly: `changed my PIN to 1234`, `pin 1234`.
_NEAR = r"[ \t]{1,4}(?:(?:(?:changed|set|reset)[ \t]{1,4})?(?:to|auf|in|a|à)[ \t]{1,4})?(?=\S{0,63}\d)"
#: A sentence of its own about the secret before it: `They changed the gate code, it's 1947 now`, `… . New one: 5512`.
_IT_IS = (
    r"(?:[ \t]{1,4}[^\W\d_]{1,20}){0,3}[,;.]?[ \t]{1,4}(?:it|(?:the[ \t]{1,4})?new[ \t]{1,4}(?:one|code|pin))"
    r"(?:['’]s|[ \t]{1,4}(?:is|was)|:)[ \t]{1,4}(?:now[ \t]{1,4})?(?=\S{0,63}\d)"
)
#: The same behind a gap, for what is a number and no year: `the gate code of the cabin 8821`.
_NEAR_NUMBER = r"[ \t]{1,4}(?=(?!(?:19|20)\d\d(?!\d))\d{4,8}[ \t]{0,2}(?:[\n.,;!?)]|\Z))"
_QUOTED = r"[\"'“„«`‘][^\"'”“»`’\n]{3,80}[\"'”“»`’]"
#: Digits in groups.
_GROUPED = r"\d{2,4}(?:[ -]\d{2,4}){1,4}(?![\w.-])"
_STATED = late_pattern(
    rf"(?<![^\W_])(?:(?P<password>{_ACCESS_WORD})|(?P<pin>{_PIN})|(?P<code>{_CODE}))s?(?!\w)(?:[\"'](?=[ \t]?:))?"
    rf"(?:{_GAP}(?P<verb>{_IS})|{_GAP}{_IT_IS}|(?P<near>{_NEAR}|{_GAP}{_NEAR_NUMBER}))"
    rf"(?P<value>{_QUOTED}|{_GROUPED}|[^\s\"'“”„«»`]{{3,64}})",
    re.IGNORECASE,
)
#: `hunter2 is my password`.
_REVERSED = late_pattern(
    rf"(?<!\S)(?P<value>\S{{3,64}})[ \t]{{1,4}}(?:is|ist|es|est|è|é)[ \t]{{1,4}}"
    rf"(?:my|our|the|mein|unser|das|der|die|mi|mon|la|el)"
    rf"[ \t]{{1,4}}(?:[^\W\d_]{{1,20}}[ \t]{{1,4}}){{0,2}}"
    rf"(?:(?P<password>{_ACCESS_WORD})|(?P<pin>{_PIN})|(?P<code>{_CODE}))(?!\w)",
    re.IGNORECASE,
)
#: Scripts without spaces join the verb and the secret to the name.
_UNSPACED = late_pattern(
    r"(?P<password>密码|密碼|パスワード|비밀번호)(?:是|为|為|は|은|는|[:：])[ \t]{0,4}(?P<value>[!-~]{4,64})"
)
#: Parts of the names, to skip texts without them.
_NAME_PARTS = tuple(
    "pass pasw code kod kode kennwort losungs contrase clave senha palavra parola wachtwoord haslo hasło парол "
    "losenord lösenord adgangs salasana heslo sifre şifre jelsz κωδικ 密码 密碼 パスワード 비밀번호 geheimzahl "
    "暗証番号 kombi combi combo codi código код".split()
)
_SHORT_PARTS = ("pin", "tan", "otp", "pw", "cvv", "cvc", "mdp")
#: Every name of a secret has one of these parts, at most `_NAME_BEFORE_CHARS` after its beginning: `zahlencode`.
_PARTS = PartSearch((*_NAME_PARTS, *_SHORT_PARTS, "mot de passe"))
_NAME_BEFORE_CHARS = 20
#: Characters between the beginning of a reversed statement and that of its name, and of the name, at most.
_REVERSED_BEFORE_CHARS = 160
_REVERSED_NAME_CHARS = 40
#: The name of a secret; its group is `password`, `pin` or `code`.
SECRET_NAME = late_pattern(
    rf"(?<!\w)(?:(?P<password>{_ACCESS_WORD})|(?P<pin>{_PIN})|(?P<code>{_CODE}))s?(?!\w)", re.IGNORECASE
)
#: What a household shares has everyday codes, which its members ask their memory for.
_HOUSEHOLD = late_pattern(
    r"wi-?fi|wlan|w-lan|router|hotspot|(?<!\w)(?:(?:home |guest )?network|guests?|netzwerk|heimnetz|g[aä]ste\w{0,10}"
    r"|r[eé]seau|red de casa|rete di casa|house|haus|flat|apartment|wohnung|haust[uü]r|t[uü]r|door|gate|garage|locker"
    r"|spind|safe|tresor|alarm\w{0,10}|(?:mail|letter) ?box|briefkasten|cabin|club|gym|sauna|laundry|keller"
    r"|shed)(?!\w)",
    re.IGNORECASE,
)
#: Characters before a password in which its household is looked for.
_CONTEXT_CHARS = 80
#: Codes that are not secrets, by what they begin with or by the word before them.
PUBLIC_CODE = late_pattern(
    r"\A(?:error|err|fehler|status|exit|return|response|http|zip|postal|post|area|country|l[aä]nder|dial|vorwahl|promo\w*"
    r"|discount|rabatt|gutschein|coupon|voucher|referral|gift|invite|colou?r|farb|hex|source|quell|dress|qr|bar|strich"
    r"|product|produkt|article|artikel|model|item|order|booking|buchungs|tracking|reservation|unit|tax|sort|bank|currency|language"
    r"|airport|iata|icd|class|course|morse|byte|genetic|opcode|uni|ean|char|plz)$",
    re.IGNORECASE,
)
_ONE_TIME = late_pattern(
    r"\A(?:verification|confirmation|one[- ]time|login|2fa|sms|auth\w*|best[aä]tigungs?|verifizierungs?|otp|tan)$",
    re.IGNORECASE,
)
_CARD_CODE = late_pattern(r"\Acv[vc]2?$", re.IGNORECASE)
_LAST_WORD = late_pattern(r"(?<![^\W\d_])([^\W\d_]{1,40}(?:[- ]time)?)[ \t-]{0,4}$")
#: Words that follow the verb but are not the secret itself, in any language that `is` is read in.
_NO_SECRET = frozenset(
    "the that this his her its their your our my not now too very same still also only just what where when "
    "here there none null nil true false yes never always unknown required optional wrong incorrect correct "
    "invalid valid weak strong short long empty missing lost gone secret safe secure easy hard simple stupid "
    "obvious random different identical fine okay written stuck working broken mine yours ours string str int "
    "text varchar char bool any object password passwort passwd example changeme hidden redacted falsch "
    "richtig weg abgelaufen vergessen geheim dasselbe gleich anders sicher unsicher neu alt kurz lang einfach "
    "schwer nicht noch auch immer leer gesperrt incorrecta incorrecto correcta olvidada perdida secreta "
    "segura nueva vieja oubli perdu nouveau faux sbagliata corretta dimenticata errada incorreta correta "
    "important temporary default personal private public like from with about because used needed under "
    "inside somewhere probably maybe actually".split()
)
#: Names that mean a key, a word or a slogan, too.
_AMBIGUOUS_NAME = late_pattern(r"\A(?:clave|parola|has[lł]o|heslo)", re.IGNORECASE)
_DESCRIBES = late_pattern(
    r"\A\w{2,60}(?:ed|ing|able|ible|ful|ive|ly|less|word|words|characters?|letters?)$", re.IGNORECASE
)
#: Code, a mark of a redaction, a variable, or a password of an example.
_EXPRESSION = late_pattern(
    r"\A(?:[\w.]*[(\[{$<*%]|\.\.|https?:|\w+\.\w+\.|[^\W\d_]+(?:_[^\W\d_]+)+$"
    r"|\w{0,30}pass(?:word|wort|wd)\w{0,3}$|(?:your|my|test|example|dummy|sample|some|new|old)[-_ ]?pass$)",
    re.IGNORECASE,
)
_ASSIGNMENTS = (":", "=", "：", "=>", "->", "→")
_TRAILING = ".,;:?)]}…。、，"
_PLAIN_WORD = late_pattern(r"\A(?:[^\W\d_]?[^\WA-Z\d_]*)(?:['’-][^\WA-Z\d_]+)*$")
#: Digits of a code that follows its name without a verb: `code 4711`, unlike `code 404`.
_NEAR_DIGITS_MIN = 4
#: The same for the code of a household, which is named just before it: `mailbox code 771`.
_HOUSEHOLD_DIGITS_MIN, _HOUSEHOLD_CHARS = 3, 12


def may_state_secrets(text: str) -> bool:
    """Return whether `text` has the name of a secret; cheap, for most texts have none."""
    return any(True for _ in _name_places(text.casefold()))


def lines_stating_secrets(lines: str) -> set[int]:
    """Return the numbers of the lines that `may_state_secrets`, of many lines in one pass."""
    folded = lines.casefold()
    return set(line_numbers(folded, _name_places(folded)))


def _name_places(folded: str) -> Iterator[int]:
    """Yield the ends of the names of secrets in a case-folded text, ascending; a short name begins a word."""
    for number, start, end in _PARTS.matches(folded):
        if number < len(_NAME_PARTS) or start == 0 or not folded[start - 1].isalnum():
            yield end


def stated_secrets(text: str) -> Iterator[Secret]:
    """Yield the passwords, PINs and codes that `text` states in words."""
    if not may_state_secrets(text):
        return
    for match in _matches(text):
        secret = _secret(match, text)
        if secret is not None:
            yield secret


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of all patterns, searched only where a name begins: a tenth of the time of a whole search."""
    starts = _name_starts(text)
    if starts is None:
        yield from _STATED.finditer(text)
        yield from _REVERSED.finditer(text)
    else:
        yield from matches_at(_STATED, text, starts)
        for start, end in _around(starts):
            yield from _REVERSED.finditer(text, start, end)
    yield from _UNSPACED.finditer(text)


def _name_starts(text: str) -> list[int] | None:
    """Return where names of secrets may begin, ascending; None when case folding moves the characters."""
    folded = text.casefold()
    if len(folded) != len(text):
        return None
    starts = {_name_start(text, place) for _, place, _ in _PARTS.matches(folded)}
    return sorted(start for start in starts if start is not None)


def _name_start(text: str, place: int) -> int | None:
    """Return where the run of letters and digits around `place` begins; None when that is too far before it."""
    for start in range(place, max(place - _NAME_BEFORE_CHARS, 0) - 1, -1):
        if start == 0 or not text[start - 1].isalnum():
            return start
    return None


def _around(starts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a text that reversed statements of the names at `starts` are within, ascending, apart."""
    begin, end = 0, 0
    for start in starts:
        if start - _REVERSED_BEFORE_CHARS > end:
            if end:
                yield begin, end
            begin = start - _REVERSED_BEFORE_CHARS
        end = start + _REVERSED_NAME_CHARS
    if end:
        yield max(begin, 0), end


def _secret(match: re.Match[str], text: str) -> Secret | None:
    """Return the secret of a match; None when what follows is not a secret."""
    groups = match.groupdict()
    value, start, quoted = _value(match)
    is_assigned = quoted or (groups.get("verb") or "").strip() in _ASSIGNMENTS
    if groups["password"] is not None:
        if len(value) < 4 or value.casefold() in _NO_SECRET or _EXPRESSION.match(value):
            return None
        # A plain word may be no password, or one among people: it is labelled, since a redaction cannot be undone.
        is_variable = text[match.start() - 1 : match.start()] == "_"
        is_plain = (is_variable or not is_assigned) and _PLAIN_WORD.match(value) is not None
        if is_plain and (
            _DESCRIBES.match(value)
            or _AMBIGUOUS_NAME.match(groups["password"])
            or not _ends_clause(text, start + len(value))
        ):
            return None
        place = text[max(0, match.start() - _CONTEXT_CHARS) : match.end()]
        return Secret(start, start + len(value), "code" if is_plain or _HOUSEHOLD.search(place) else "password")
    digits = sum(map(str.isdigit, value))
    digits_min = 1
    if groups.get("verb", "") is None and _CARD_CODE.match(groups["code"] or "") is None:
        is_household = _HOUSEHOLD.search(text, max(0, match.start() - _HOUSEHOLD_CHARS), match.start())
        digits_min = _HOUSEHOLD_DIGITS_MIN if is_household else _NEAR_DIGITS_MIN
    if digits < digits_min or len(value) < 3 or _EXPRESSION.match(value):
        return None
    if groups.get("pin") is not None:
        return Secret(start, start + len(value), "pin") if value.strip("!").replace("-", "").isdigit() else None
    kind = _code_kind(groups["code"], text[max(0, match.start("code") - 40) : match.start("code")])
    return None if kind is None else Secret(start, start + len(value), kind)


def _value(match: re.Match[str]) -> tuple[str, int, bool]:
    """Return the value of a match without quotes and closing punctuation, its place, and whether it is quoted."""
    value, start = match["value"], match.start("value")
    if value[0] in "\"'“„«`‘" and len(value) > 2:
        return value[1:-1], start + 1, True
    return value.rstrip(_TRAILING) or value, start, False


def _ends_clause(text: str, position: int) -> bool:
    """Return whether a clause ends at `position`."""
    return position >= len(text) or text[position] in ".,;\n" or text[position - 1] == "!"


def _code_kind(name: str, before: str) -> str | None:
    """Return the kind of a code by its name and the word before it; None when it is not a secret."""
    stem = name.casefold().removesuffix("code").removesuffix("-")
    word = _LAST_WORD.search(before)
    words = [part for part in (stem, word[1] if word else "") if part]
    if _CARD_CODE.match(name):
        return "card code"
    if any(_ONE_TIME.match(part) for part in words):
        return "one-time code"
    return None if any(PUBLIC_CODE.match(part) for part in words) else "code"
