"""Function words: lists stop words and question words of German, Russian, Chinese, Japanese and Korean."""

from __future__ import annotations

from recollect.events.late_pattern import late_pattern

#: German function words that are not English words: they identify German text.
_GERMAN = """
    aber alle als auch auf aus bei beim bis bist da damit dann das dass dein deine deinen deiner dem denn der deren
    dessen dich diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines euch euer
    gibt habe haben hast hatte hatten heute ich ihm ihn ihnen ihr ihre ihrem ihren ihrer immer ist jede jeden jeder
    jetzt kann kannst kein keine keinen keiner konnte mein meine meinem meinen meiner mich mir muss nach nicht nichts
    noch nur ob oder ohne schon sehr sein seine seinem seinen seiner seit sich sie sind soll sollte sondern uns unser
    unsere und unter viel viele vom von vor wann warum weil welche welchem welchen welcher welches wem wen wenn wer
    werde werden wessen wie wieder wieso wir wird wirst wo woher wohin wollte worden wurde wurden zu zum zur zwischen
"""
#: English words that German texts hardly contain.
ENGLISH = frozenset("a and did does do is of the to what you".split())
#: German function words that may also be English, Dutch or a name; two of them in a text count as German.
GERMAN_PERHAPS = frozenset("den des die er es hat im mit um".split())
#: German function words that are also English words, or that are identified by their letters.
_GERMAN_ALSO = """
    am an bin hier in mal man nun so war waren was will für über können könnte möchte
    müssen wäre würde fuer ueber fürs ins ans aufs heißt heißen
"""
#: German function words that identify German text.
GERMAN = frozenset(_GERMAN.split())
#: All German function words, which are not search terms.
GERMAN_STOP_WORDS = GERMAN | GERMAN_PERHAPS | frozenset(_GERMAN_ALSO.casefold().split())

_RUSSIAN = """
    а без бы был была были было быть в вам вас во вот все всех вы где да для до его ее ей ему если есть еще же за и из
    или им их к как какая какие какого какой какую ко когда кого кому которая которое которые который кто куда ли либо
    меня мне мной моя мои моё мой мы на над нам нас наш не него нее ней нет ни них но ну о об он она они оно от откуда
    очень по под почему при про с сам свой свою своя со сколько так также там тебе тебя то тогда того тоже той только
    том ты у уже чего чей чем через что чтобы чья эта эти это этого этой этом этот я
"""
#: Russian function words, spelled with е instead of ё.
RUSSIAN_STOP_WORDS: frozenset[str] = frozenset(word.replace("ё", "е") for word in _RUSSIAN.split())

#: Question words and sentence endings of Chinese, Japanese and Korean.
ASKING = late_pattern(
    "为什么|為什麼|什么时候|什麼時候|什么|什麼|甚麼|怎么样|怎么|怎麼|哪里|哪裡|哪儿|哪个|哪個|哪些|哪|多少|谁|誰|吗|嗎|呢|"
    "ですか|でしたか|ますか|ましたか|でしょうか|ています|ていますか|どこ|いつ|だれ|なぜ|どうして|どんな|どの|どれ|いくら|いくつ|何|"
    r"(?<!\w)(?:무엇|어디|언제|누구|누가|어떻게|어떤|무슨|얼마|뭐|뭘|왜(?!\w))\w*|입니까|습니까|인가요|나요|까요"
)
#: Chinese function characters, which are mostly between words.
LINKING = frozenset("的了是在我你您他她它们們吧啊和也都就不这那這")
