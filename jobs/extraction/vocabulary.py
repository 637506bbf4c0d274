"""Vocabulary: the word lists behind the placeholders of `rules.toml`."""

from __future__ import annotations

#: Relatives, friends and colleagues: `my sister Anna`.
RELATIONS = """
    mother mom mum father dad sister brother wife husband partner girlfriend boyfriend fiancé fiancée fiance
    fiancee son daughter aunt uncle cousin niece nephew grandmother grandma grandfather grandpa friend colleague
    coworker boss manager neighbor neighbour roommate flatmate teacher mentor therapist doctor dentist
    stepmother stepfather
""".split()

#: Relatives by blood, who cannot have another relation too: `my friend Tom` and `my brother Tom` are two people.
RELATIVES = frozenset(
    """mother mom mum father dad sister brother son daughter aunt uncle cousin niece nephew grandmother grandma grandfather
    grandpa grandson granddaughter""".split()
)

#: Others of whom people state facts: `my kids`, `our landlord`, `my dog Rex`.
SUBJECT_NOUNS = [
    *RELATIONS,
    *"""
    ex ex-wife ex-husband ex-girlfriend ex-boyfriend grandson granddaughter grandkids grandchildren twins twin kids kid children
    child parents sons daughters brothers sisters siblings grandparents friends uncles aunts cousins mother-in-law
    father-in-law sister-in-law brother-in-law son-in-law daughter-in-law in-laws stepson stepdaughter landlord landlady
    tutor coach trainer baby toddler youngest oldest eldest missus hubby dog cat puppy kitten pup dogs cats mommy business company startup shop store studio band crew
    """.split(),
]

#: Those of `SUBJECT_NOUNS` who are several.
PLURAL_NOUNS = frozenset(
    """kids children parents sons daughters brothers sisters siblings grandparents friends uncles aunts cousins twins in-laws
    grandkids grandchildren dogs cats""".split()
)

#: Pets.
PETS = """
    dog puppy cat kitten rabbit hamster parrot turtle tortoise snake horse goldfish lizard bird
""".split()

#: Relations as people type them.
SHORT_RELATIONS = {
    "bf": "boyfriend",
    "gf": "girlfriend",
    "hubby": "husband",
    "sis": "sister",
    "bestie": "friend",
    "bff": "friend",
}

#: Relatives and pets in five other languages, which are followed by names.
FOREIGN_RELATIONS = """
    mutter vater schwester bruder frau mann partner partnerin freund freundin sohn tochter oma opa tante onkel enkel enkelin chef
    chefin kollege kollegin madre padre hermana hermano esposa marido novia novio hija hijo abuela abuelo tía tío prima primo
    amiga amigo jefe jefa mère père sœur soeur frère femme mari copine copain fille fils mamie papi tante oncle ami amie
    patron patronne sorella fratello moglie marito ragazza ragazzo figlia figlio nonna nonno zia zio mãe pai irmã irmão mulher
    filha filho avó avô moeder vader zus broer vrouw vriend vriendin zoon dochter
""".split()
FOREIGN_PETS = """
    hund hündin katze kater pferd hase vogel perro perra gato gata caballo chien chienne chat chatte lapin cheval cane gatto gatta
    coniglio cavallo cachorro cachorra gatinho cão hond kat konijn paard
""".split()

#: Diets.
DIETS = """
    vegan vegetarian pescatarian pescetarian gluten-free lactose-intolerant keto coeliac celiac dairy-free nut-free halal
    kosher
""".split()

#: What people do not eat or drink, for their health or their belief.
FOODS = """
    nuts peanuts almonds walnuts hazelnuts sesame soy dairy milk lactose cheese eggs gluten wheat bread fish shellfish
    seafood shrimp shrimps prawns mussels meat pork beef chicken lamb sugar sweets honey chocolate salt alcohol wine beer
    caffeine coffee tomatoes onions garlic mushrooms strawberries citrus grapefruit
""".split()

#: Head nouns of professions; the words before them belong to the profession (`middle school teacher`).
JOBS = """
    accountant actor actress analyst architect artist baker barista biologist builder carpenter cashier chef
    chemist coach consultant cook counselor counsellor dancer dentist designer developer director doctor driver
    economist editor electrician engineer entrepreneur farmer firefighter florist freelancer gardener geologist
    hairdresser historian illustrator journalist judge lawyer lecturer librarian manager mechanic midwife
    musician novelist nurse nutritionist officer painter paramedic pharmacist philosopher photographer physicist
    physiotherapist pianist pilot plumber poet policeman producer professor programmer psychologist psychiatrist
    realtor receptionist researcher salesperson scientist secretary singer soldier sommelier statistician
    student surgeon surveyor tailor teacher therapist translator tutor vet veterinarian violinist waiter
    waitress welder writer
""".split()

#: Instruments and sports.
PLAYS = """
    piano guitar violin cello drums flute saxophone trumpet clarinet bass ukulele harp soccer football
    basketball tennis volleyball baseball badminton golf chess hockey rugby cricket squash
""".split()

#: Plural nouns for children, as in `two sons`.
CHILDREN = """
    children kids sons daughters grandchildren
""".split()

#: Medicines that people do not tolerate.
MEDICINES = """
    aspirin ibuprofen paracetamol naproxen codeine morphine penicillin amoxicillin antibiotics painkillers
""".split()
#: What a person has a figure of, as in `my shoe size is 38`.
ATTRIBUTES = ["budget", "salary", "weight", "height", "shoe size"]

#: Adverbs that may be between the subject and the verb.
ADVERBS = """
    also always probably really absolutely actually currently just mostly now often only particularly recently still
    totally truly usually definitely especially generally honestly personally quite rather simply sometimes
""".split()

#: Counts.
COUNTS = r"one two three four five six seven eight nine ten a no \d+".split()

#: Capitalised words that are not names.
NOT_NAMES = frozenset(
    """
    I We You He She It They This That These Those There Here What Who Whom Whose Which When Where Why How If And
    But Or So Because Although Though While Since Until Unless My Your His Her Its Our Their Mine Yours A An The
    Yes No Not Never Always Please Thanks Thank Sorry Hello Hi Hey Okay Ok Oh Wow Well Actually Maybe Perhaps
    Today Tomorrow Yesterday Now Then Also Just Only Even Still Yet Already Everyone Everybody Someone Somebody
    Anyone Anybody Nobody One Some Any All Both Each Every Either Neither Most Many Much Few In On At By For
    From To With Without After Before During About As Let Do Did Does Don Is Are Was Were Be Been Am Have Has
    Had Can Could Will Would Shall Should May Might Must Monday Tuesday Wednesday Thursday Friday Saturday
    Sunday January February March April June July August September October November December Mom Mum Dad God
    Great Good Nice Cool Sure Definitely Absolutely Congrats Congratulations Remember Remind Lately Recently
    Finally First Second Next Last Once Sounds Glad Happy Love Like
    """.split()
)

#: Verbs in the form of `I` and `we`, which cannot follow a name.
FIRST_PERSON_VERBS = frozenset(
    """
    adore am are come drive enjoy go hate have like live love need own play prefer reside speak study use work
    """.split()
)
