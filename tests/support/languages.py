"""Short conversations in other languages than English, and questions with the number of the turn that answers each."""

from __future__ import annotations

from typing import NamedTuple


class Talk(NamedTuple):
    turns: list[str]
    #: A question, and the place of its answer in `turns`.
    questions: list[tuple[str, int]]


CHINESE = Talk(
    [
        "我上个月搬到了上海，住在一间小公寓里。",
        "我养了一只猫，名字叫豆豆。",
        "周末我喜欢去爬山，上周去了黄山。",
        "我妈妈在医院当护士，工作很忙。",
        "我对花生过敏，吃了会起疹子。",
        "下个星期五是我的生日，想请朋友来吃饭。",
        "我正在学弹钢琴，老师很严格。",
        "昨天地铁坏了，我上班迟到了一个小时。",
        "我弟弟在北京读大学，学的是物理。",
        "我最近买了一辆红色的自行车。",
        "我不喜欢喝咖啡，早上只喝绿茶。",
        "我们公司下个月要换办公室。",
    ],
    [
        ("他的猫叫什么名字？", 1),
        ("她对什么食物过敏？", 4),
        ("弟弟在哪里上大学？", 8),
        ("她什么时候过生日？", 5),
        ("他的自行车是什么颜色的", 9),
        ("她早上喝什么茶", 10),
    ],
)

JAPANESE = Talk(
    [
        "先月、大阪から札幌に引っ越しました。",
        "うちの犬はハチという名前で、三歳です。",
        "毎朝、駅前の喫茶店でコーヒーを飲みます。",
        "姉は小学校で音楽を教えています。",
        "卵アレルギーがあるので、ケーキは食べられません。",
        "来週の土曜日に友達の結婚式に出ます。",
        "最近、週に二回プールで泳いでいます。",
        "昨日は電車が止まって、会社に遅刻しました。",
        "父は若いころ、漁師をしていました。",
        "新しいカメラを買ったので、京都で写真を撮りたいです。",
        "苦手な食べ物は納豆です。",
        "来月から英語の教室に通うことにしました。",
    ],
    [
        ("犬の名前は何ですか？", 1),
        ("どこに引っ越したのですか？", 0),
        ("お姉さんは学校で何を教えていますか？", 3),
        ("何のアレルギーがありますか？", 4),
        ("お父さんの昔の仕事は漁師ですか", 8),
        ("カメラで何の写真を撮りたい？", 9),
    ],
)

KOREAN = Talk(
    [
        "지난달에 부산에서 서울로 이사했어요.",
        "우리 강아지 이름은 초코이고 두 살이에요.",
        "주말마다 한강에서 자전거를 타요.",
        "어머니는 병원에서 간호사로 일하세요.",
        "저는 새우 알레르기가 있어서 해산물을 조심해요.",
        "다음 주 금요일이 제 생일이에요.",
        "요즘 저녁에 기타를 배우고 있어요.",
        "어제 지하철이 고장 나서 회사에 늦었어요.",
        "동생은 대학교에서 물리학을 전공해요.",
        "새로 산 노트북이 벌써 고장 났어요.",
        "저는 커피 대신 녹차를 마셔요.",
        "다음 달에 친구와 제주도로 여행을 가요.",
    ],
    [
        ("강아지의 이름이 뭐예요?", 1),
        ("어디로 이사했나요?", 0),
        ("알레르기는 어떤 음식에 있나요?", 4),
        ("동생의 전공은 무엇인가요?", 8),
        ("생일은 언제예요?", 5),
        ("여행은 어디로 가요?", 11),
    ],
)

GERMAN = Talk(
    [
        "Ich bin letzten Monat nach Köln umgezogen und wohne jetzt in der Nähe vom Dom.",
        "Unsere Katze heißt Minka, sie ist schon zwölf Jahre alt.",
        "Am Wochenende gehe ich gern in den Bergen wandern.",
        "Meine Schwester arbeitet als Lehrerin an einer Grundschule.",
        "Gegen Nüsse bin ich allergisch, deshalb lese ich immer die Zutaten.",
        "Nächsten Freitag feiert mein Bruder seinen Geburtstag im Garten.",
        "Ich habe mir drei Bücher über die Geschichte Roms gekauft.",
        "Gestern ist die Straßenbahn ausgefallen, ich kam zu spät zur Arbeit.",
        "Mein Vater war früher Bäcker und stand immer um drei Uhr auf.",
        "Der Hausschlüssel liegt unter dem Blumentopf.",
        "Kaffee mag ich nicht, ich trinke morgens grünen Tee.",
        "Im Sommer fliegen wir mit den Kindern nach Portugal.",
    ],
    [
        ("Wie heißen ihre Katzen?", 1),
        ("Welches Buch hat sie gekauft?", 6),
        ("Warum kam sie zu spät, fuhr keine Strassenbahn?", 7),
        ("Auf welche Nuss ist sie allergisch?", 4),
        ("Wo arbeitet ihre Schwester?", 3),
        ("Wohin fliegt sie mit ihrem Kind?", 11),
        ("Wo liegen die Schlüssel?", 9),
        ("Welchen Tee trinkt sie am Morgen?", 10),
    ],
)

RUSSIAN = Talk(
    [
        "В прошлом месяце я переехал в Казань и снял квартиру.",
        "Мою собаку зовут Рекс, ей четыре года.",
        "По выходным я хожу в горы с друзьями.",
        "Моя сестра работает врачом в детской больнице.",
        "У меня аллергия на орехи, поэтому я читаю состав.",
        "В пятницу у брата день рождения, я ищу ему подарок.",
        "Я купил три книги об истории Рима.",
        "Вчера сломался трамвай, и я опоздал на работу.",
        "Мой отец раньше был пекарем и вставал в три часа.",
        "Ключи от дачи лежат под цветочным горшком.",
        "Кофе я не люблю, по утрам пью зелёный чай.",
        "Летом мы всей семьёй летим в Португалию.",
    ],
    [
        ("Как зовут собак у него?", 1),
        ("Какую книгу он купил?", 6),
        ("В какой больнице работают сёстры?", 3),
        ("Кому он искал подарки?", 5),
        ("Где лежит ключ от дачи?", 9),
        ("Какого чая он выпил утром, зеленого?", 10),
        ("Куда летит семья?", 11),
    ],
)

TALKS = {"chinese": CHINESE, "japanese": JAPANESE, "korean": KOREAN, "german": GERMAN, "russian": RUSSIAN}
