"""Foreign questions: what questions in German, Spanish, French, Chinese and Japanese ask for, by their words.

It also has the English words by which the facts of those languages are found: facts have English predicates.
"""

from __future__ import annotations

import re

from msgspec import Struct

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.folding import fold, folded_pattern
from recollect.projections.text.function_words import GERMAN_STOP_WORDS
from recollect.projections.text.sentence_language import Language, language_of
from recollect.projections.text.words import WORD


class ForeignIntent(Struct, frozen=True, kw_only=True):
    """The intents that a question in one of the five languages matches; the names are those of `QuestionIntent`."""

    when: bool = False
    count: bool = False
    name: bool = False
    recall: bool = False
    overview: bool = False
    preference: bool = False
    remember: bool = False
    task: bool = False


_PATTERNS: dict[str, str] = {
    "when": r"\b(?:wann|seit wann|cu[aá]ndo|desde cu[aá]ndo|quand|depuis quand|à quelle (?:heure|date))\b|什么时候|何时|几点|哪天|几号|いつ|何時|何日",
    "count": r"\b(?:wie ?viele?|wie oft|wie lange|wie alt|cu[aá]nt[oa]s?|qué edad|combien|quel âge)\b|多少|几[个岁次只条年]|多久|多大|何[人匹歳回個才]|いくつ|いくら",
    "name": r"\b(?:wer|wie hei(?:ß|ss)\w*|wessen|quién|quien|cómo se llama|como se llama|cómo me llamo|comment s'appelle|qui est|comment je m'appelle)\b|谁|叫什么|名字|誰|だれ|名前",
    "recall": r"\bhast du (?:mir |uns )?(?:\w+ ){0,3}(?:gesagt|empfohlen|vorgeschlagen|geraten|erklärt|gegeben|geschrieben)\b|\bdein\w* (?:vorschlag|rat|tipp|empfehlung|antwort)\b|"
    r"\bme (?:dijiste|recomendaste|sugeriste|explicaste|diste|aconsejaste|has dicho|has recomendado)\b|"
    r"\b(?:tu m'as|m'as-tu) (?:dit|conseillé|recommandé|proposé|expliqué|donné|suggéré)\b|"
    r"你(?:之前|上次)?(?:给我)?(?:推荐|建议|说过|告诉过|提到)(?:过|了|的)|(?:あなたが|君が)?(?:勧めて|すすめて|おすすめして|教えて|提案して)くれた",
    "overview": r"\bwas (?:weißt|weiß|merkst|erinnerst|kennst) du\b|\bwas hast du (?:dir )?(?:\w+ ){0,3}(?:gemerkt|gespeichert|gelernt|behalten)\b|"
    r"\b(?:woran|an was) erinnerst du dich\b|\bwer bin ich\b|\berzähle? mir (?:alles|was du)\b|\balles (?:über|was du)\b|\bfasse?\b.{1,60}\bzusammen\b|"
    r"\bwas (?:haben wir|habe ich dir) (?:alles |bisher )?(?:über|von)\b|"
    r"\bqué (?:sabes|recuerdas|conoces|has aprendido|te acuerdas|guardas)\b|\bque (?:sabes|recuerdas|conoces) (?:de|sobre)\b|\b(?:cuéntame|dime) todo\b|"
    r"\btodo lo que (?:sabes|recuerdas)\b|\bqui[eé]n soy\b|\bresum(?:e|en|ir|eme)\b|\bte acuerdas de m[ií]\b|"
    r"\b(?:que|qu'est-ce que|qu est ce que) (?:sais-tu|tu sais|connais-tu|tu connais|te rappelles-tu|tu te rappelles|te souviens-tu|tu te souviens|tu as retenu|as-tu retenu|tu retiens)\b|"
    r"\btu (?:sais|te souviens de|te rappelles|as retenu) quoi\b|\bqui suis-je\b|\bdis-moi tout\b|\btout ce que tu sais\b|\brésume\b|\bde quoi te souviens-tu\b|"
    r"(?:知道|记得|了解|记住|记着|清楚)[^?]{0,6}(?:我|什么|多少|哪些)|(?:关于|对)我[^?]{0,8}(?:知道|记得|了解|记住|印象)|我是谁|总结一?下|"
    r"(?:について|のこと|に関して)[^?]{0,12}(?:知って|覚えて|わかって|教えて|記憶)|覚えていること|(?:私|僕|俺|わたし)は誰|まとめて",
    "preference": r"\b(?:empfiehl\w*|empfehl\w*|vorschlag\w*|vorschläge|schlag\w* .{1,40} vor|tipps?|ideen|lieblings\w+|recomienda\w*|recomendaci\w+|sugier\w+|sugerencias?|ideas|favorit\w+|recommande\w*|conseil\w*|suggère\w*|idées|préférée?)\b|"
    r"推荐|建议|最喜欢|おすすめ|お勧め|提案|好きな",
    "remember": r"\b(?:erinnerst du dich|weißt du noch|kannst du dich .{0,20}erinnern|te acuerdas|recuerdas|tu te souviens|te souviens-tu|tu te rappelles|te rappelles-tu)\b|还记得|记不记得|覚えて(?:い)?ます|覚えてる",
    "task": r"^\W*(?:bitte |kannst du |por favor,? |puedes |peux-tu |tu peux |s'il te plaît,? |请|帮我|请帮我)*"
    r"(?:(?:übersetze?|berechne|schreib(?:e)? (?:mir |uns )?(?:ein|einen|eine)|erzähl(?:e)? (?:mir |uns )?(?:einen|eine|ein) (?:witz|geschichte|märchen)|gib mir (?:ein|einen) (?:rezept|beispiel)|"
    r"traduce|traducir|calcula|escribe(?:me)? (?:un|una)|cuéntame (?:un|una) (?:chiste|historia|cuento)|dame una receta|"
    r"traduis|traduire|calcule|écris(?:-moi)? (?:un|une)|raconte(?:-moi)? (?:une|un) (?:blague|histoire)|donne-moi une recette|corrige)\b|"
    r"(?:翻译|计算|写一[篇首封个段]|讲个?一?个?(?:笑话|故事)|给我一个.{0,12}(?:做法|食谱|菜谱)))|(?:を|に)(?:翻訳|訳)して|の(?:レシピ|作り方)を教えて",
}
_COMPILED: dict[str, re.Pattern[str]] = {
    name: late_pattern(folded_pattern(pattern)) for name, pattern in _PATTERNS.items()
}
#: Characters of a question that are read.
_CHARS_MAX = 1_000

_SPANISH_STOP_WORDS = """
    a al algo algún alguna algunas alguno algunos ante antes así aún aunque cada como cómo con cual cuál cuáles cuales
    cuando cuándo cuánta cuántas cuánto cuántos cuanta cuantas cuanto cuantos de del desde donde dónde e el él ella ellas
    ellos en entre era es esa esas ese eso esos esta está estaba estás este esto estos estoy fue fui ha han has hasta hay
    he la las le les lo los más mas me mi mí mis mucho muy nada ni no nos nosotros nuestra nuestras nuestro nuestros o
    os otra otro para pero por porque pues que qué quien quién quienes se ser si sí sido sin sobre son soy su sus también
    tan te ti tiene tienen tienes tengo todo toda todos todas tu tú tus un una unas uno unos usted y ya yo quiénes
"""
_FRENCH_STOP_WORDS = """
    à a ai as au aussi aux avec avez avons avait c ce cela ces cet cette chez comme comment combien d dans de des depuis
    du elle elles en est es et été être eu il ils j je l la le les leur leurs lui m ma mais me même mes moi mon n ne nos
    notre nous on ont ou où par pas plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se sera
    ses si son sont suis sur t ta te tes toi ton tous tout toute toutes tu un une vos votre vous y ça ca est-ce
"""
#: Words of questions for everything, or for everything of a time, which name no topic.
_TOPICLESS = {
    "de": """
        weißt weisst weiß wissen erinnerst erinnern erinnerung gemerkt merken gespeichert gelernt erzähl erzähle erzählt
        alles allem kennst sag sagen gesagt fass fasse zusammen zusammenfassen zusammenfassung passiert los mache machen
        gemacht steht geplant plan pläne termine termin vor tun getan unternommen etwas irgendwas person bisher
        gesprochen geredet besprochen letztes mal neulich kürzlich bald demnächst anstehen info infos bitte ansteht
    """,
    "es": """
        sabes saber recuerdas recordar recuerdo conoces aprendido cuéntame cuentame dime resume resumen resúmeme acuerdas
        acerca guardado hice hicimos hecho pasó paso pasado hacer voy vamos planes plan agenda citas pendiente pendientes
        hablamos dije hablado dicho último última vez últimamente persona información
    """,
    "fr": """
        sais savoir souviens souvenir rappelles rappeler retenu retiens connais résume résumé dis dire tout appris fait
        faire prévu prévus passé passe rendez rdv agenda plans planning parlé dit personne infos fais ferai dernière fois
        récemment propos est-ce
    """,
}
_STOP_WORDS: dict[Language, frozenset[str]] = {
    "de": GERMAN_STOP_WORDS,
    "es": frozenset(_SPANISH_STOP_WORDS.split()),
    "fr": frozenset(_FRENCH_STOP_WORDS.split()),
}
_TOPICLESS_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(word.casefold() for word in words.split()) for language, words in _TOPICLESS.items()
}
#: What Chinese and Japanese questions have besides a topic.
_TOPICLESS_SIGNS = late_pattern(
    "还|记不记得|记得|知道|了解|记住|什么|哪些|多少|事情|事|关于|对|我们|我|你|的|了|吗|呢|有|在|都|会|要|做|干|发生|安排|计划|打算|说过|说|聊|过|是|谁|"
    "总结|一下|告诉|所有|一切|上次|最近|安排|印象|些|吧|请|"
    "私たち|私|僕|俺|わたし|あなた|君|について|に関して|こと|何か|何|なに|全部|すべて|知って|覚えて|わかって|教えて|記憶して|して|いますか|いました|います|いる|ますか|ました|ます|"
    "予定|誰|まとめ|話した|話し|した|ある|あり|だった|でした|ですか|です|ください|くれ|を|は|が|の|に|と|も|て|で|か|る|ね|よ|い|だ"
)

#: English words of predicates by words that ask for them, folded. Words that are also English are left out.
_TRANSLATIONS = {
    "live": "wohne wohnst wohnt wohnen lebe lebst lebt leben wohnort adresse vivo vives vive vivimos viven habite habites habitons habitent vis vivons vit",
    "work": "arbeite arbeitest arbeitet arbeiten arbeitgeber beruf jobbe trabajo trabajas trabaja trabajamos empleo profesion curro travaille travailles travaillons travail bosse boulot metier",
    "study": "studiere studierst studiert studieren studium estudio estudias estudia estudiamos etudie etudies etudions etudes",
    "name": "heisse heisst heissen heiße heißt heißen name namen llamo llamas llama llaman nombre appelle appelles appelons nom prenom",
    "born": "geburtstag geboren geburtsdatum cumpleanos cumple naci nacio nacimiento anniversaire anniv naissance",
    "allergic": "allergisch allergie allergien alergia alergias alergico alergica allergique allergies",
    "diet": "ernahrung ernaehrung dieta vegan vegano vegana vegetariano vegetariana vegetarisch regime vegetarien vegetarienne",
    "speak": "spreche sprichst spricht sprechen sprachen hablo hablas habla idiomas parle parles parlons langues",
    "phone": "handynummer telefonnummer nummer telefono movil celular numero telephone portable",
    "age": "alter edad anos",
    "children": "kinder kind hijos hijo hija hijas enfants",
    "pet": "haustier haustiere mascota mascotas animaux",
    "like": "mag magst gern gerne gusta gustan encanta encantan aime aimes adore adores",
    "favourite": "lieblings favorito favorita favoritos favoritas preferida preferido preferee prefere preferes favori",
    "drive": "fahre fahrst faehrst conduzco conduce conduis conduit",
    "play": "spiele spielst spielt toco tocas toca juego juega joue joues",
    "married": "verheiratet casado casada marie mariee",
    "own": "besitze besitzt",
}
_BY_WORD = {word: english for english, words in _TRANSLATIONS.items() for word in words.split()}
#: The same for Chinese and Japanese, by signs that a word contains.
_BY_SIGNS = {
    "住": "live",
    "工作": "work",
    "上班": "work",
    "职业": "work",
    "働": "work",
    "勤め": "work",
    "仕事": "work",
    "職業": "work",
    "大学": "study",
    "专业": "study",
    "勉強": "study",
    "专攻": "study",
    "専攻": "study",
    "名字": "name",
    "名前": "name",
    "生日": "born",
    "誕生日": "born",
    "出生": "born",
    "过敏": "allergic",
    "アレルギー": "allergic",
    "会说": "speak",
    "语言": "speak",
    "話せ": "speak",
    "手机": "phone",
    "电话": "phone",
    "電話": "phone",
    "孩子": "children",
    "子供": "children",
    "宠物": "pet",
    "ペット": "pet",
    "喜欢": "like",
    "好き": "like",
    "几岁": "age",
    "年龄": "age",
    "何歳": "age",
    "老家": "come",
    "出身": "come",
    "结婚": "married",
    "結婚": "married",
}
_SIGNS = late_pattern("|".join(sorted(_BY_SIGNS, key=len, reverse=True)))


def foreign_intent(question: str) -> ForeignIntent | None:
    """Return the intents of a question; None when it is in none of the five languages."""
    if language_of(question) is None:
        return None
    text = fold(question[:_CHARS_MAX])
    return ForeignIntent(**{name: pattern.search(text) is not None for name, pattern in _COMPILED.items()})


def foreign_stop_words(language: Language) -> frozenset[str]:
    """Return the function words of a language, lower case."""
    return _STOP_WORDS.get(language, frozenset())


def names_topic(language: Language, question: str, words: list[str]) -> bool:
    """Return whether a question names a topic; `¿qué sabes de mí?` and `昨天我做了什么` name none.

    Parameters:
        words: the words of the question without function words and dates.
    """
    if language in _TOPICLESS_WORDS:
        return any(word not in _TOPICLESS_WORDS[language] for word in words)
    return WORD.search(_TOPICLESS_SIGNS.sub("", question[:_CHARS_MAX])) is not None


def english_words(word: str) -> list[str]:
    """Return the English words of predicates that a word of a question means, such as `live` for `wohne`."""
    if word.isascii() or len(word) <= _WORD_CHARS_MAX:
        english = _BY_WORD.get(fold(word))
        if english is not None:
            return [english]
    if word.isascii():
        return []
    return list(dict.fromkeys(_BY_SIGNS[sign] for sign in _SIGNS.findall(word[:_CHARS_MAX])))


#: Characters of the longest translated word.
_WORD_CHARS_MAX = 20
