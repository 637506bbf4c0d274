"""Conversations in German, Spanish, French, Chinese and Japanese as people type them, and plain statements."""

from __future__ import annotations

from typing import NamedTuple


class SelfStatements(NamedTuple):
    """The messages of a person called Kim, and questions about them."""

    messages: list[str]
    #: Questions, each with words of its answer.
    questions: list[tuple[str, str]]


GERMAN = SelfStatements(
    messages=[
        "hallo! ich bin die Katrin und wohne seit mai in leipzig",
        "arbeite als krankenschwester im uniklinikum, ist oft stressig",
        "mein mann heisst Tobias und wir haben zwei kinder",
        "gegen haselnuesse bin ich uebrigens allergisch",
        "kannst du mir ein rezept fuer kartoffelsuppe geben",
        "Kaffee mag ich nicht",
        "am freitag muss ich um 10 zum zahnarzt",
        "wenn ich in hamburg wohnen würde, hätte ich ein boot",
        "ich hab am 14. märz geburtstag",
        "antworte bitte immer kurz",
        "danke dir, bis morgen!",
    ],
    questions=[
        ("wo wohne ich?", "leipzig"),
        ("wo arbeite ich?", "uniklinikum"),
        ("worauf bin ich allergisch?", "haselnuesse"),
        ("was weißt du über mich?", "Tobias"),
        ("was habe ich am freitag vor?", "zahnarzt"),
    ],
)

SPANISH = SelfStatements(
    messages=[
        "hola, me llamo Lucía y vivo en valencia",
        "trabajo de enfermera en el hospital la fe",
        "jaja sí, es un poco estresante",
        "mi marido se llama Javier y tenemos dos hijos",
        "mi cumple es el 14 de marzo",
        "me das una receta de tortilla",
        "soy alergica a las avellanas por cierto",
        "el viernes tengo que ir al dentista a las 10",
        "me encanta bailar salsa",
        "si viviera en Roma comería pasta todos los días",
        "a partir de ahora responde siempre en español",
        "gracias, hasta mañana!",
    ],
    questions=[
        ("¿dónde vivo?", "valencia"),
        ("donde trabajo?", "hospital la fe"),
        ("¿cuándo es mi cumpleaños?", "14 de marzo"),
        ("¿qué sabes de mí?", "Javier"),
        ("qué tengo el viernes?", "dentista"),
    ],
)

FRENCH = SelfStatements(
    messages=[
        "salut, je m'appelle Camille et j'habite à nantes",
        "je travaille comme infirmière au CHU",
        "oui c'est un peu stressant mdr",
        "mon mari s'appelle Julien et on a deux enfants",
        "mon anniversaire c'est le 14 mars",
        "tu peux me donner une recette de crêpes",
        "je suis allergique aux noisettes au fait",
        "vendredi je dois aller chez le dentiste à 10h",
        "j'aime pas le café",
        "si j'habitais à Rome je mangerais des pâtes",
        "réponds-moi toujours en français stp",
        "merci, à demain !",
    ],
    questions=[
        ("où est-ce que j'habite ?", "nantes"),
        ("ou est-ce que je travaille ?", "CHU"),
        ("c'est quand mon anniversaire ?", "14 mars"),
        ("que sais-tu de moi ?", "Julien"),
        ("qu'est-ce que j'ai vendredi ?", "dentiste"),
    ],
)

CHINESE = SelfStatements(
    messages=[
        "你好，我叫王丽，住在杭州",
        "我在浙一医院当护士",
        "对啊，挺累的哈哈",
        "我老公叫张伟，我们有两个孩子",
        "我养了一只猫，名字叫豆豆",
        "给我一个土豆汤的做法",
        "对了我对榛子过敏",
        "周五上午十点我要去看牙医",
        "我讨厌香菜",
        "如果我住在北京就好了",
        "以后请用中文回答我",
        "谢谢，明天见",
    ],
    questions=[
        ("我住在哪里？", "杭州"),
        ("我在哪儿工作", "浙一医院"),
        ("我对什么过敏？", "榛子"),
        ("你还记得我什么？", "张伟"),
        ("我周五有什么安排？", "牙医"),
    ],
)

JAPANESE = SelfStatements(
    messages=[
        "はじめまして、佐藤美咲です。横浜に住んでいます",
        "大学病院で看護師をしています",
        "そうなんです、けっこう大変で笑",
        "夫の名前は健太で、子供が二人います",
        "猫を飼ってて、名前はタマです",
        "じゃがいもスープのレシピを教えて",
        "誕生日は3月14日です",
        "ちなみにヘーゼルナッツアレルギーがあります",
        "金曜日の10時に歯医者に行かないと",
        "パクチーが苦手です",
        "もし東京に住んでいたら楽しいだろうな",
        "これからは敬語を使ってください",
        "ありがとう、また明日！",
    ],
    questions=[
        ("私はどこに住んでいますか？", "横浜"),
        ("私はどこで働いてる？", "大学病院"),
        ("私の誕生日はいつ？", "3月14日"),
        ("私について何を知っていますか？", "健太"),
        ("金曜日の予定は？", "歯医者"),
    ],
)

SELF_STATEMENTS = {
    "german": GERMAN,
    "spanish": SPANISH,
    "french": FRENCH,
    "chinese": CHINESE,
    "japanese": JAPANESE,
}
#: What people plainly say about health, home, work and family, by language.
PLAIN_STATEMENTS = {
    "german": (
        "Ich bin allergisch gegen Nüsse.",
        "Ich wohne in Graz.",
        "Ich arbeite als Krankenschwester im Uniklinikum.",
        "Mein Mann heißt Tobias und wir haben zwei Kinder.",
    ),
    "spanish": (
        "Soy alérgica a los frutos secos.",
        "Vivo en Valencia y trabajo en Bosch.",
        "Trabajo de enfermera en el hospital.",
        "Mi marido se llama Javier y tenemos dos hijos.",
    ),
    "french": (
        "Je suis allergique aux noix.",
        "J'habite à Lyon avec mon mari.",
        "Je travaille comme infirmière au CHU.",
        "Mon mari s'appelle Julien et on a deux enfants.",
    ),
    "italian": (
        "Sono allergico alle noci.",
        "Abito a Torino con mia moglie.",
        "Lavoro come infermiera in ospedale.",
        "Mio marito si chiama Marco e abbiamo due figli.",
    ),
    "japanese": (
        "ナッツアレルギーがあります。",
        "横浜に住んでいます。",
        "大学病院で看護師をしています。",
        "夫の名前は健太で、子供が二人います。",
    ),
}
#: Those that the reader misses: it was trained on some hundred sentences of languages other than English.
MISSED_STATEMENTS = frozenset(("横浜に住んでいます。",))
#: Sentences of which the trained reader keeps what is of passing interest.
KEPT_FOR_NOTHING = frozenset(
    (
        "ich bin in der Stadt",
        "die Stadt heißt Köln",
        "er sagt, ich arbeite bei Bosch",
        "Ich spiele mit dem Gedanken zu kündigen",
        "小李住在上海",
    )
)
#: Sentences that state nothing about a person, or that only look like statements.
NO_STATEMENTS = """
ich bin müde | ich bin in der Stadt | ich habe Hunger | ich habe eine Frage | ich komme gleich | ich mag dich
ich bin sicher, dass das klappt | die Stadt heißt Köln | er sagt, ich arbeite bei Bosch
wie heißt die Hauptstadt von Peru | Ich spiele mit dem Gedanken zu kündigen
ich hätte gern einen Hund | ich liebe deine Antworten | estoy en casa | soy feliz | tengo hambre
vivo en un piso pequeño | mi jefe dice que vivo en las nubes | quiero un perro | la película es de terror
soy de los que madrugan | me gusta tu respuesta | cuánto cuesta un billete a Madrid | je suis fatigué
j'ai faim | je viens de manger | j'habite dans un petit appartement | je voudrais un chien | il habite à Paris
je suis d'accord | le film s'appelle Amélie | j'aime bien ta réponse | tu peux m'écrire un texte | 我很累
我在家 | 我有一个问题 | 我想养一只猫 | 他住在上海 | 我喜欢你的回答 | 我叫他来吃饭 | 我是个好人 | 电影叫霸王别姬
小李住在上海 | 疲れた | 今家にいます | 犬を飼いたいな | あなたの答えが好きです
田中さんは犬が好きです | 友達が大阪から来ました
"""
