"""Meal requests: recognises the questions whose answer is something to eat."""

from __future__ import annotations

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.folding import fold, folded_pattern

#: Words of meals, of food, and of cooking, in English, German, Spanish and French.
_MEAL = late_pattern(
    folded_pattern(
        r"\b(?:eat|cook|bake|grill|barbecue|bbq|breakfast|brunch|lunch|dinner|supper|dessert|desserts|starter|appetizers?|"
        r"snacks?|meals?|recipes?|menu|dish|dishes|food|foods|cake|cakes|takeaway|takeout|take-out|restaurants?|groceries|"
        r"picnic|potluck|buffet|catering|lunchbox|"
        r"essen|kochen|koche|backen|backe|grillen|frühstück|mittagessen|abendessen|abendbrot|nachtisch|rezepte?|gericht|gerichte|"
        r"restaurant|kuchen|snack|picknick|einkaufsliste|"
        r"comer|comemos|cocinar|cocino|hornear|desayuno|almuerzo|cena|cenar|postre|recetas?|menú|plato|platos|restaurante|tarta|"
        r"manger|cuisiner|cuisine|petit-déjeuner|déjeuner|dîner|goûter|recettes?|repas|plat|plats|gâteau)\b"
    )
)
#: A request, or a question about what to do: its answer is still open.
_OPEN = late_pattern(
    folded_pattern(
        r"\b(?:suggest|recommend|advise|plan|book|order|find|choose|pick|make|prepare|give|write|list|need|ideas?|tips?|"
        r"(?:should|can|could|shall|may|would|will) (?:i|we|you|he|she|they)|what(?:'s|’s| is) for|where to|what to|"
        r"what do (?:i|we)|let(?:'s|’s| us)|how about|"
        r"was (?:soll|sollen|kann|können|gibt|koche|kochen|backe|backen|esse|essen)|wo (?:kann|können|soll|sollen)|"
        r"schlag\w*|empfiehl\w*|plane|buche|reservier\w*|bestell\w*|mach|mache|gib|schreib\w*|ideen|tipps|vorschläge|vorschlag|"
        r"qué (?:puedo|podemos|cocino|cocinamos|como|comemos|cenamos)|dónde (?:puedo|podemos|comemos|cenamos)|"
        r"sugiere\w*|recomienda\w*|planea|reserva|pide|dame|hazme|escribe\w*|ideas|"
        r"que (?:puis-je|pouvons-nous|manger|cuisiner)|qu'est-ce qu(?:e je|on|e l'on|e nous)|"
        r"où (?:manger|dîner|déjeuner)|suggère\w*|recommande\w*|propose\w*|"
        r"planifie|réserve|commande|donne\w*|prépare\w*|idées|conseille\w*)\b"
    )
)
#: Words of a question about a past meal.
_PAST = late_pattern(
    folded_pattern(
        r"\b(?:did|were|had|ate|cooked|baked|made|last|yesterday|ago|remember|told|said|mentioned|recommended|suggested|"
        r"hat|hatte|hatten|habe|haben wir|war|waren|gestern|letzte\w*|"
        r"fue|comimos|ayer|dijiste|recomendaste|mangé|était|avons|as-tu)\b"
    )
)
#: Characters of a question that are read.
_CHARS_MAX = 300


def asks_for_meal(question: str) -> bool:
    """Return whether a question asks what to eat, to cook or to order, now or later."""
    text = fold(question[:_CHARS_MAX])
    return _MEAL.search(text) is not None and _OPEN.search(text) is not None and _PAST.search(text) is None
