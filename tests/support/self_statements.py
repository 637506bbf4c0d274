"""Conversations in German, Spanish, French, Chinese and Japanese as people type them, and what is known after them."""

from __future__ import annotations

from typing import NamedTuple


class SelfStatements(NamedTuple):
    """The messages of a person called Kim, and everything that memory has to read in them."""

    messages: list[str]
    #: Subject, predicate and object of every fact.
    facts: set[tuple[str, str, str]]
    #: Value and key of every preference that is no instruction.
    preferences: set[tuple[str, str]]
    #: Relation and name of the people.
    people: set[tuple[str, str]]
    #: Topics of the standing instructions.
    instructions: set[str]
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
    facts={
        ("Kim", "name is", "Katrin"),
        ("Kim", "lives in", "leipzig"),
        ("Kim", "works as", "krankenschwester"),
        ("Kim", "works at", "uniklinikum"),
        ("Kim", "has children", "zwei kinder"),
        ("Kim", "allergic to", "haselnuesse"),
        ("Kim", "needs to", "am freitag um 10 zum zahnarzt"),
        ("Kim", "born on", "14. märz"),
    },
    preferences={("dislikes", "Kaffee")},
    people={("husband", "Tobias")},
    instructions={"length of answers"},
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
    facts={
        ("Kim", "name is", "Lucía"),
        ("Kim", "lives in", "valencia"),
        ("Kim", "works as", "enfermera"),
        ("Kim", "works at", "hospital la fe"),
        ("Kim", "has children", "dos hijos"),
        ("Kim", "born on", "14 de marzo"),
        ("Kim", "allergic to", "avellanas"),
        ("Kim", "needs to", "ir al dentista a las 10 el viernes"),
    },
    preferences={("likes", "bailar salsa")},
    people={("husband", "Javier")},
    instructions={"language"},
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
    facts={
        ("Kim", "name is", "Camille"),
        ("Kim", "lives in", "nantes"),
        ("Kim", "works as", "infirmière"),
        ("Kim", "works at", "CHU"),
        ("Kim", "has children", "deux enfants"),
        ("Kim", "born on", "14 mars"),
        ("Kim", "allergic to", "noisettes"),
        ("Kim", "needs to", "aller chez le dentiste à 10h vendredi"),
    },
    preferences={("dislikes", "le café")},
    people={("husband", "Julien")},
    instructions={"language"},
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
    facts={
        ("Kim", "name is", "王丽"),
        ("Kim", "lives in", "杭州"),
        ("Kim", "works as", "护士"),
        ("Kim", "works at", "浙一医院"),
        ("Kim", "has children", "两个孩子"),
        ("Kim", "has pet", "猫 named 豆豆"),
        ("Kim", "allergic to", "榛子"),
        ("Kim", "needs to", "周五上午十点我要去看牙医"),
    },
    preferences={("dislikes", "香菜")},
    people={("husband", "张伟")},
    instructions={"language"},
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
    facts={
        ("Kim", "name is", "佐藤美咲"),
        ("Kim", "lives in", "横浜"),
        ("Kim", "works as", "看護師"),
        ("Kim", "works at", "大学病院"),
        ("Kim", "has children", "子供二人"),
        ("Kim", "has pet", "猫 named タマ"),
        ("Kim", "born on", "3月14日"),
        ("Kim", "allergic to", "ヘーゼルナッツ"),
        ("Kim", "needs to", "金曜日の10時に歯医者に行かないと"),
    },
    preferences={("dislikes", "パクチー")},
    people={("husband", "健太")},
    instructions={"tone"},
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
小李住在上海 | 疲れた | 今家にいます | 犬を飼いたいな | 彼は東京に住んでいます | あなたの答えが好きです
田中さんは犬が好きです | 友達が大阪から来ました | Eu moro em Lisboa e tenho um gato
Io vivo a Roma e ho un cane | Ik woon in Utrecht en heb een hond
"""
