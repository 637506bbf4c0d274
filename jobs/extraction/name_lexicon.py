"""Name lexicon: tells names from words, and knows first names, cities and countries, from libraries with their own data.

The libraries are loaded with the first message that has a capitalised word: HanTa's tagger (0.2 s, 50 MB) has the word
classes of English and German, Faker (0.1 s) the first names of many countries, airportsdata (0.1 s) the cities that
have an airport, iso3166 the countries. They are read in jobs only, which record what they find as events: another version
of a library changes no read model.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Literal

#: name: a name and no word, such as `Wendy`. both: `Rose`, `Mark`. word: a word of the language. unknown: neither.
WordClass = Literal["name", "both", "word", "unknown"]

#: HanTa's model of each language, and its tag of names.
_MODELS = {"en": ("morphmodel_en.pgz", "NP0"), "de": ("morphmodel_ger.pgz", "NE")}
#: HanTa guesses at words that its lexicon does not have; the logarithms of their probabilities are below this one.
_KNOWN_MIN = -25.0
#: Longest word that is looked up: HanTa tries all divisions of an unknown word.
_WORD_CHARS_MAX = 30
#: Locales of Faker whose first names are read, in Latin letters; those with romanised names have them as extra lists.
_LOCALES = """
    en_US en_GB en_IN en_NG ga_IE de_DE de_AT es_ES es_MX fr_FR it_IT pt_BR pt_PT nl_NL sv_SE no_NO fi_FI pl_PL cs_CZ
    hu_HU ro_RO hr_HR tr_TR id_ID vi_VN yo_NG ja_JP zh_CN
""".split()
_NAME_LISTS = (
    "first_names",
    "first_names_male",
    "first_names_female",
    "first_romanized_names",
    "first_romanized_names_male",
    "first_romanized_names_female",
)
#: Words of the lists of cities that are first of all other words: places named like a word are not recognised by name.
_PLACE_WORDS = frozenset("bay best deal hope male man mobile nice of reading split".split())
#: Regions and short names of countries that the lists lack.
_REGIONS = """
    england, scotland, wales, europe, asia, africa, america, uk, us, usa, britain, great britain, holland, russia, iran,
    taiwan, vietnam, south korea, north korea, new england, bali, hawaii, scandinavia, crete, sicily, tuscany, provence,
    czech republic, nyc, la
"""


@lru_cache(65_536)
def word_class(word: str, language: str = "en") -> WordClass:
    """Return whether a word is a name, a word of the language `en` or `de`, or both."""
    if len(word) > _WORD_CHARS_MAX:
        return "unknown"
    _, name_tag = _MODELS[language]
    lower, capital = word.casefold(), word[:1].upper() + word[1:].casefold()
    as_name = any(tag == name_tag for tag in _readings(capital, language))
    if language == "de":
        # Every German noun has a capital: `lower` tells nothing about them.
        as_word = any(tag != name_tag for tag in (*_readings(capital, language), *_readings(lower, language)))
    else:
        as_word = any(tag != name_tag for tag in _readings(lower, language))
    return "both" if as_name and as_word else "name" if as_name else "word" if as_word else "unknown"


def is_first_name(word: str) -> bool:
    """Return whether a word is a first name in one of the locales, or a short form of one."""
    return word.casefold() in _first_names() or bool(full_names(word))


@lru_cache(65_536)
def gender_of(name: str) -> Literal["m", "f"] | None:
    """Return whether a first name is that of men or of women in all locales; None: of both, or unknown."""
    men, women = _gendered_names()
    key = name.casefold()
    is_male, is_female = key in men, key in women
    return None if is_male == is_female else "m" if is_male else "f"


@lru_cache(65_536)
def full_names(short: str) -> frozenset[str]:
    """Return the English first names that a name is short for, case folded."""
    return frozenset(_nicknames().canonicals_of(short.casefold()))


def is_place(name: str) -> bool:
    """Return whether a name is that of a country, a region or a city with an airport."""
    return name.casefold() in _places()


def is_adjective(word: str) -> bool:
    """Return whether a word is first of all an English adjective, such as `Italian`, or an adverb."""
    readings = _readings(word.casefold(), "en") if len(word) <= _WORD_CHARS_MAX else []
    return bool(readings) and readings[0][:2] in ("AJ", "AV")


def _readings(word: str, language: str) -> list[str]:
    """Return the tags of a word that the lexicon has; empty for an unknown word."""
    readings: list[tuple[str, float]] = _tagger(language).tag_word(word)
    best = readings[0][1] if readings else 0.0
    # A reading e^8 times less frequent than the best one is an error of the training texts.
    return [tag for tag, score in readings if score > max(_KNOWN_MIN, best - 8) and tag != "UNC"]


@cache
def _tagger(language: str) -> Any:
    """Return HanTa's tagger of a language."""
    module: Any = import_module("HanTa.HanoverTagger")
    return module.HanoverTagger(_MODELS[language][0])


@cache
def _nicknames() -> Any:
    """Return the lists of short forms."""
    return import_module("nicknames").NickNamer()


@cache
def _first_names() -> frozenset[str]:
    """Return the first names of all locales, case folded."""
    names: set[str] = set()
    for locale in _LOCALES:
        provider: Any = import_module(f"faker.providers.person.{locale}").Provider
        for attribute in _NAME_LISTS:
            listed: Any = getattr(provider, attribute, ())
            if not isinstance(listed, property):
                names.update(str(name).casefold() for name in listed)
    return frozenset(names)


@cache
def _gendered_names() -> tuple[frozenset[str], frozenset[str]]:
    """Return the first names of men and of women of all locales, case folded."""
    men, women = set[str](), set[str]()
    for locale in _LOCALES:
        provider: Any = import_module(f"faker.providers.person.{locale}").Provider
        for attribute in _NAME_LISTS:
            names = men if attribute.endswith("_male") else women if attribute.endswith("_female") else None
            listed: Any = getattr(provider, attribute, ())
            if names is not None and not isinstance(listed, property):
                names.update(str(name).casefold() for name in listed)
    return frozenset(men), frozenset(women)


@cache
def _places() -> frozenset[str]:
    """Return the names of countries, of their largest regions and of cities with an airport, case folded."""
    airports: Any = import_module("airportsdata").load("IATA")
    countries: Any = import_module("iso3166").countries
    places: set[str] = {str(row["city"]).casefold() for row in airports.values()}
    places.update(str(row["subd"]).casefold() for row in airports.values())
    for country in countries:
        places.update((str(country.name).casefold(), str(country.apolitical_name).partition(",")[0].casefold()))
    places.update(region.strip() for region in _REGIONS.split(","))
    return frozenset(place for place in places if len(place) > 1) - _PLACE_WORDS
