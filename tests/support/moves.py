"""What people bring from other programs: six memories of invented people, as such files look after a year of use."""

from __future__ import annotations

from typing import Any

from support.exports import chatgpt_conversation

#: A folder of Kira or OpenClaw, grown by hand and by the agent.
KIRA = {
    "MEMORY.md": """# MEMORY.md - Long-Term Memory

_Curated. Keep it short._

## People

- **Milan** - sound engineer, lives in Brno with Hana
- Hana: vet, allergic to penicillin
- Partner: Hana
- Kids: Tereza (7) and Vojta (4)
- Boss at the theatre is Mr Kovář

## Projects

- Lighthouse: AI tutor for violin students
- Status: waiting for the contract
- Deadline: 2026-12-15
- Decided on Postgres over Mongo (2026-05-03)

## Lessons

1. Never deploy on Fridays.
2. The mixer needs 48 kHz, otherwise it crackles, which took us a whole evening to find out and must not happen
   again at the premiere.

## Open

- [ ] Renew the passport
- [x] Pay the deposit for the flat
- **Notes:**
""",
    "USER.md": """# USER.md - About Your Human

- **Name:** Milan Dvořák
- **What to call them:** Milan
- **Pronouns:** he/him
- **Timezone:** Europe/Prague
- **Location:** Brno
- **Birthday:** 3 April 1984
- **Notes:**
  - Night owl, no calls before ten
  - Milan plays the accordion

## Context

_(What do they care about? What annoys them? Build this over time.)_

## Preferences

- Hates phone calls
- Prefers short answers
- Communication: no emojis
- Likes dry humour.
""",
    "SOUL.md": "# SOUL.md\n\nYou are Kira. Be kind.\n",
    "context-buffer.md": "- nothing",
    "memory/2026-10-02.md": """# 2026-10-02

Morning:
- Sound check at the theatre, the left monitor is dead and has to go back to the shop in Vienna this week

Evening:
- Cooked dumplings with Hana

## 14:30 Call with the insurance

- They pay for the monitor
- **15:10** sent the invoice

21:45 Vojta has a fever, 38.5
- [x] Ordered cables
- [ ] Call Mr Kovář about the premiere
- **Notes:**
""",
    "memory/2026-10-03-premiere.md": "The premiere went well (22:30 UTC). Hana cried.\n",
    "memory/people.md": "# People we met\n\nOla runs the bar at the theatre.\n",
}
#: The template of OpenClaw with little filled in.
OPENCLAW = {
    "USER.md": """# USER.md - About Your Human

_Learn about the person you're helping. Update this as you go._

- **Name:** Grace
- **What to call them:**
- **Pronouns:** _(optional)_
- **Timezone:**
- **Notes:**

## Context

_(What do they care about? What projects are they working on? What annoys them? What makes them laugh?)_

---

The more you know, the better you can help. But remember: you're learning about a person, not building a dossier.
""",
    "memory/2026-11-01.md": """- 09:05 Grace asked for a reading list on tides
- 9:40 - sent five books
* (10:15) she chose the first
""",
}
#: A vault of Obsidian.
OBSIDIAN = {
    ".obsidian/app.json": "{}",
    ".trash/old.md": "gone",
    "Daily/2026-10-05.md": """---
tags: [daily]
---
# Monday

## Log
- 08:15 bread out of the oven, crumb too dense
- [x] Ordered 25 kg flour
- [ ] Call the council about the terrace
- Met [[Oskar Lind|Oskar]] at the mill

## Gratitude
The first customer brought us figs.
""",
    "People/Oskar Lind.md": """---
title: Oskar Lind
created: 2025-03-14
tags: [miller, friend]
---
# Oskar Lind

Miller in Visby. Age: 58. Allergic to cats.

- Phone: on the fridge
- Sister: [[Ebba]]
""",
    "Projects/Terrace.md": """# Terrace

Status: waiting for the council

## Tasks
- [ ] Drawings
- [x] Ask the neighbours

## Costs
| what | SEK |
|---|---|
| wood | 14000 |
""",
    "Recipes/Rye.md": "Rye, water, salt. 90 minutes at 210 degrees.\n",
    "Home.md": "# Home\n\n[[Terrace]] · [[Rye]]\n",
    "Attachments/terrace.canvas": "{}",
    "Empty.md": "",
}
#: Memories of mem0 about one person, dated, in the words of its language model.
MEM0: dict[str, Any] = {
    "results": [
        {"id": f"k{number}", "memory": text, "created_at": f"2026-0{number % 9 + 1}-11T10:00:00Z", "user_id": "nuri"}
        for number, text in enumerate(
            [
                "Name is Nuri",
                "Lives in Izmir",
                "User is allergic to shellfish",
                "Favorite tea is sage",
                "Works as a marine biologist at the aquarium",
                "Has a dog named Pasha",
                "User's sister is called Elif",
                "Nuri prefers trains over planes",
                "Planning a trip to Georgia in May",
                "Interested in: freediving, jazz",
                "Time of the weekly call is 18:00",
                "The user asked how to repair a kayak",
            ]
        )
    ]
}
#: What ChatGPT has in each conversation about the person: as they wrote it, and with OpenAI's words around it.
CHATGPT_OWN = {
    "about_user_message": """Preferred name: Priyanka
Role: pastry chef
Other Information: I run a tea room in Leith with my brother Dev. I don't eat eggs.""",
    "about_model_message": "British spelling, metric units.",
}
_AROUND_PROFILE = """The user provided the following information about themselves. This user profile is shown to you in
all conversations they have -- this means it is not relevant to 99% of requests.
Before answering, quietly think about whether the user's request is "directly related" to the user profile provided.
User profile:
"""
CHATGPT_PROFILE: dict[str, Any] = {
    "content_type": "user_editable_context",
    "user_profile": f"{_AROUND_PROFILE}```{CHATGPT_OWN['about_user_message']}```",
    "user_instructions": "The user provided the additional info about how they would like you to respond:\n"
    f"```{CHATGPT_OWN['about_model_message']}```",
}


def chatgpt(*, has_own_texts: bool) -> list[dict[str, Any]]:
    """Return an export of ChatGPT with the profile in its conversation."""
    conversation = chatgpt_conversation()
    message = conversation["mapping"]["p"]["message"]
    message["content"] = CHATGPT_PROFILE
    own = {"user_context_message_data": CHATGPT_OWN} if has_own_texts else {}
    message["metadata"] = {"is_visually_hidden_from_conversation": True, **own}
    return [conversation]


#: What Claude remembers, as paragraphs below headings.
CLAUDE: list[dict[str, Any]] = [
    {
        "account_uuid": "acct-9",
        "conversations_memory": """**Work context**

Tomás is a land surveyor in Rosario. He works for Cartas del Sur, where he leads a team of four.

**Personal context**

Tomás lives with his partner Inés and their twins. He is learning to bake and keeps bees.

- **Diet:** vegetarian
- **Age:** 41

**Top of mind**

Tomás is preparing a talk about drones for March: the draft is due at the end of January.

**Brief history**

*Recent months*

He compared three drones and chose the lightest one.
""",
        "project_memories": {},
    }
]
