"""Sentence language: recognises German, Spanish, French, Chinese and Japanese sentences.

Chinese and Japanese are recognised by their script, the others by function words. A sentence that may also be English,
Portuguese, Italian or Dutch has none of the five languages, since its table would read wrong facts in it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from recollect.events.late_pattern import late_pattern

Language = Literal["de", "es", "fr", "zh", "ja"]

#: Words of the language that are not words of English or of the other languages.
_SURE: dict[Language, str] = {
    "de": """
        ich du wir mich mir dich dir uns euch mein meine meinen meinem meiner dein deine deinen unser unsere unseren
        nicht nichts kein keine keinen keiner und oder aber weil dass ist bist sind habe hab haben hatte hast ein eine
        einen einem einer dem das für fuer von vom zum zur bei beim auf aus nach seit auch noch schon immer jetzt heute
        gestern übermorgen vorgestern bitte danke wohne wohnt arbeite arbeitet heiße heisse heißt heisst liebe liebt
        gern gerne möchte moechte muss kann kannst weißt weisst wie wo wer wen wem warum wieso wann welche welcher
        welches jahre jahren über ueber sehr nur mehr doch hallo ja nein mit wurde werde wird wieder nächste nächsten
        letzte letzten letztes letzter woche wochenende allergisch antworte esse trinke hasse spreche freundin schwester
        bruder mutter vater meines meinst hieß früher nie niemals jeden jeder wenn ihr sich es gegen erinner erinnere
        gekauft verkauft gestorben gezogen geheiratet getrennt adoptiert meinte rauche fahre vertrage allergie nummer
        studiere komme umgezogen gekündigt geburtstag handynummer telefonnummer
    """,
    "es": """
        yo tú él ella ellos nosotros nosotras usted mis una unos unas soy eres somos está esta estoy están estan estamos
        tengo tiene tenemos tienes vivo vive vivimos trabajo trabaja llamo llama llamas gusta gustan encanta encantan
        odio prefiero hablo y con por para pero porque muy más ya sí del los las su sus lo como cuando dónde donde qué
        cuál cual quién quien cómo hace años anos hoy ayer mañana anteayer ahora desde hasta hijo hija hijos hermana
        hermano madre padre perro gato también tambien gracias hola nuestro nuestra nuestros cumpleaños hemos ha era mí
        algo nada siempre nunca estudio estudia recuérdame recuerdame recuerda responde contéstame casa semana pasada
        pasado próxima proxima próximo sabes mudé mude mudamos dejé toco juego conduzco nací naci vegano vegana
        vegetariano vegetariana alérgico alérgica alergico alergica odia novio novia marido esposa dejado cambié mi
        despidieron echaron jubilé vendí cancelé renuncié dejé perdón perdona quería quiero cumplo correo teléfono
        telefono móvil número fui fuimos hice compré adopté murió sabes conoces
    """,
    "fr": """
        je j il elle nous vous mon mes ton tes ses notre votre leur suis sommes êtes sont ai avons avez ont pas ne et
        mais donc qui quoi où le les des du au aux une dans sur avec pour chez depuis ans aujourd hier demain maintenant
        toujours jamais très aussi c qu appelle habite travaille adore aime déteste deteste préfère prefere parle joue
        bonjour salut merci bonsoir est oui non été était ma moi cette ces ça ca quand comment pourquoi quel quelle où
        rappelle réponds reponds semaine dernière derniere prochaine mois année soeur sœur frère frere mère mere père
        bosse faut végétarienne végétarien allergique anniversaire préféré préférée conduis étudie etudie mari enfants
        quitté déménagé arrêté mange bois ta sa vendu acheté démissionné licencié licenciée adopté numéro téléphone
        pardon voulais dire mort décédé décédée sais connais
    """,
}
#: Words of several of these languages, or that English texts have in names. Two of them count as one word.
_PERHAPS: dict[Language, str] = {
    "de": "der die den des er sie am im an in um so war was hat mag bin alt hier man morgen montag will mal gut",
    "es": "la el un en de que es se le me te tu mi nos si no a al o he e bien mal te",
    "fr": "la un en de que es se le me te tu son a on y d l m n s t si ou sa nos par tout bien plus car",
}
#: Words that only English has.
_ENGLISH = """
    the and is are were my your you he she it they we of to for with have has had this that what not but be been do does
    did would can could at from our their her him his if about just like i when where how who there will
    all now out up good love really so thanks and or get got go going
"""
#: Words that neighbouring languages have and these five have not: Portuguese, Italian, Dutch, Catalan, Danish, Swedish,
#: Norwegian, Polish, Turkish and Indonesian.
_OTHERS = """
    eu você voce não nao uma meu minha meus em moro sou tenho gosto é os dos das são sao muito com pelo isso também
    io sono ho che di gli mio mia della nel abito lavoro chiamo non è anni il sei lei lui per ti ci miei piace
    ik ben het een niet mijn van voor zijn heb woon werk maar ook bij naar uit jaar wij zij dat
    jo sóc amb visc els meva jag är och inte jeg ikke og av som på til jestem nie się mam ja w z ve bir ben saya aku di
"""
_TABLES: dict[Language, tuple[frozenset[str], frozenset[str]]] = {
    language: (frozenset(words.split()), frozenset(_PERHAPS[language].split())) for language, words in _SURE.items()
}
_ALL_SURE = frozenset(word for sure, _ in _TABLES.values() for word in sure)
_ENGLISH_WORDS = frozenset(_ENGLISH.split())
_OTHER_WORDS = (
    frozenset(_OTHERS.split()) - _ALL_SURE - frozenset(word for _, perhaps in _TABLES.values() for word in perhaps)
)
#: A word without its elided article or pronoun: `j'habite` is two words.
_WORD = late_pattern(r"[^\W\d_]+")
#: Characters that are read: the language of a text shows at its beginning.
_CHARS_MAX = 600
#: Han, Hiragana and Katakana.
_HAN_OR_KANA = late_pattern(r"[\u3005\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff66-\uff9d]")
_KANA = late_pattern(r"[\u3041-\u30ff\uff66-\uff9d]")
_HANGUL = late_pattern(r"[\uac00-\ud7a3]")
_LATIN_WORD = late_pattern(r"[A-Za-z]+")
#: The factor by which the words of a language must outnumber the English ones.
_OUTNUMBERING = 2


def language_of(text: str) -> Language | None:
    """Return the language of a sentence or a message; None for English, other languages, and when it is not sure."""
    text = text[:_CHARS_MAX]
    if " the " in text or " and " in text or " I " in text or " you " in text:
        # Most English texts are recognised by one frequent word.
        return None
    if not text.isascii() and (language := _by_script(text)) is not None:
        return language
    return _by_words(set(_WORD.findall(text.lower())))


def _by_script(text: str) -> Language | None:
    """Return Chinese or Japanese when most of a text is written in its script."""
    count = len(_HAN_OR_KANA.findall(text))
    if not count or count < len(_LATIN_WORD.findall(text)) or _HANGUL.search(text):
        return None
    return "ja" if _KANA.search(text) else "zh"


def _by_words(words: Collection[str]) -> Language | None:
    """Return the language whose function words are among lower-case words; None without a clear lead."""
    if _ALL_SURE.isdisjoint(words):
        return None
    english = len(_ENGLISH_WORDS.intersection(words))
    scores: dict[Language, int] = {
        language: 2 * len(sure.intersection(words)) + len(perhaps.intersection(words))
        for language, (sure, perhaps) in _TABLES.items()
    }
    language: Language = max(scores, key=lambda name: scores[name])
    second, best = sorted(scores.values())[-2:]
    rivals = max(second, 2 * len(_OTHER_WORDS.intersection(words)))
    if best < 2 or best <= rivals or best <= _OUTNUMBERING * 2 * english:
        return None
    return language
