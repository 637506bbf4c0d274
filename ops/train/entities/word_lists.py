"""Word lists: builds `jobs/extraction/name_lists.txt.xz`, the names and common words that the name reader knows.

First names of thirty countries with their gender, common words and days of six languages: Faker (MIT). Places: the
cities and regions of airportsdata (MIT), the countries of iso3166 (MIT). Short forms of first names: nicknames
(Apache-2.0). More common words are counted in our own labelled sentences and in RealMem (Apache-2.0), without the texts
of held-out voices. Install the packages before, the product needs none of them:

    pip install faker airportsdata iso3166 nicknames
"""

from __future__ import annotations

import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from label_files import DATA, labelled_texts

from recollect.jobs import extraction as package
from recollect.jobs.extraction import vocabulary
from recollect.jobs.extraction.name_lexicon import first_names
from recollect.projections.text.names import NOT_NAMES

READER_LABELS = Path(__file__).parents[1] / "reader" / "labels"
#: Locales of Faker whose first names are read, in Latin letters; those with romanised names have them as extra lists.
_LOCALES = """
    en_US en_GB en_IN en_NG ga_IE de_DE de_AT es_ES es_MX fr_FR it_IT pt_BR pt_PT nl_NL sv_SE no_NO fi_FI pl_PL cs_CZ
    hu_HU ro_RO hr_HR tr_TR id_ID vi_VN yo_NG ja_JP zh_CN
""".split()
_WORD_LOCALES = "en_US de_DE es_ES fr_FR it_IT nl_NL".split()
#: Regions and short names of countries that the lists lack.
_REGIONS = """
    england, scotland, wales, europe, asia, africa, america, uk, us, usa, britain, great britain, holland, russia, iran,
    taiwan, vietnam, south korea, north korea, new england, bali, hawaii, scandinavia, crete, sicily, tuscany, provence,
    czech republic, nyc, la
"""
#: Times that a word occurs in lower case in texts with capitals to be common, and the share of all its occurrences.
_COUNT_MIN = 2
_LOWER_SHARE = 0.5
#: Languages, which are not names.
_LANGUAGES = """
    english german french spanish portuguese italian dutch russian polish ukrainian czech swedish norwegian danish
    finnish greek turkish arabic hebrew hindi urdu bengali chinese mandarin cantonese japanese korean vietnamese thai
""".split()
_LATIN = re.compile(r"[^\W\d_][\w'-]+")
#: Names of one list that no name reader needs: longer ones are addresses, shorter ones initials.
_CHARS = range(2, 24)


def write_lists() -> None:
    """Write the file: a line for each list, with its letter, a space, and its entries between bars.

    m, f, n: first names of men, women, both or unknown. p: places. w: common words. c: days, languages, words that open
    sentences. s: short forms.
    """
    men, women, names = _first_names()
    places = _places()
    lists = {
        "m": names & men - women,
        "f": names & women - men,
        "n": names - (men ^ women),
        "p": places,
        "w": _common_words(),
        "c": _calendar() | NOT_NAMES | {word.casefold() for word in (*_LANGUAGES, *vocabulary.NOT_NAMES)},
    }
    lines = [f"{kind} {'|'.join(sorted(words))}" for kind, words in lists.items()]
    lines.append(f"s {'|'.join(sorted(_short_forms()))}")
    path = Path(next(iter(package.__path__))) / "name_lists.txt.xz"
    path.write_bytes(lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))
    print({kind: len(words) for kind, words in lists.items()}, path.stat().st_size, "bytes")


def _first_names() -> tuple[set[str], set[str], set[str]]:
    """Return the first names of men, of women, and all, case folded."""
    men, women, names = set[str](), set[str](), set[str]()
    for locale in _LOCALES:
        provider: Any = import_module(f"faker.providers.person.{locale}").Provider
        for attribute in ("", "_male", "_female"):
            for prefix in ("first_names", "first_romanized_names"):
                listed: Any = getattr(provider, prefix + attribute, ())
                if not isinstance(listed, property):
                    folded = {str(name).casefold() for name in listed}
                    names |= folded
                    (men if attribute == "_male" else women if attribute == "_female" else set[str]()).update(folded)
    return men, women, {name for name in names if len(name) in _CHARS and _LATIN.fullmatch(name)}


def _short_forms() -> Iterator[str]:
    """Yield short forms with the English first names that they are short for: `bob:robert,bert`."""
    namer: Any = import_module("nicknames").NickNamer()
    for short in {short for name in first_names() for short in namer.nicknames_of(name)}:
        yield f"{short}:{','.join(sorted(namer.canonicals_of(short)))}"


def _places() -> set[str]:
    """Return countries and cities with an airport, case folded."""
    airports: Any = import_module("airportsdata").load("IATA")
    countries: Any = import_module("iso3166").countries
    places = {str(row[field]).casefold() for row in airports.values() for field in ("city", "subd")}
    places |= {region.strip() for region in _REGIONS.split(",")}
    for country in countries:
        places |= {str(country.name).casefold(), str(country.apolitical_name).partition(",")[0].casefold()}
    return {place for place in places if len(place) in _CHARS and _LATIN.match(place) and "(" not in place}


def _calendar() -> set[str]:
    """Return the months and days of the week in six languages."""
    words = set[str]()
    for locale in _WORD_LOCALES:
        provider: Any = import_module(f"faker.providers.date_time.{locale}").Provider
        for listed in (getattr(provider, "MONTH_NAMES", {}), getattr(provider, "DAY_NAMES", {})):
            words |= {str(word).casefold() for word in listed.values()}
    return words


def _common_words() -> set[str]:
    """Return the words that texts mostly have in lower case; texts of held-out voices are not counted."""
    held_out = {text.voice.split()[0] for text in labelled_texts()[1]}
    lower, capital = Counter[str](), Counter[str]()
    for text in _texts(held_out):
        words = list(_LATIN.finditer(text))
        for match in words[1:]:
            if text[max(0, match.start() - 2) : match.start()] not in (". ", "! ", "? ", ": "):
                (capital if match.group()[0].isupper() else lower)[match.group().casefold()] += 1
    counted = {
        word
        for word, count in lower.items()
        if count >= _COUNT_MIN and count >= _LOWER_SHARE * (count + capital[word]) and len(word) in _CHARS
    }
    for locale in _WORD_LOCALES:
        provider: Any = import_module(f"faker.providers.lorem.{locale}").Provider
        words = [str(word) for word in provider.word_list if " " not in str(word)]
        # Only German writes words with a capital.
        counted |= {word.casefold() for word in words if word.islower() or locale == "de_DE"}
    return counted


def _texts(held_out: set[str]) -> Iterator[str]:
    """Yield texts with capitals."""
    for path in sorted(READER_LABELS.glob("own*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            text = str(row["text"])
            if row["voice"] not in held_out and text != text.lower() and text != text.upper():
                yield text
    for path in sorted(DATA.glob("realmem*.json")):
        if path.name not in held_out:
            for event in json.loads(path.read_text(encoding="utf-8"))["events"]:
                yield str(event["payload"].get("text", ""))
