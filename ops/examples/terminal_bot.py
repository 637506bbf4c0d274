"""A chat bot for the terminal that remembers: `memory.turn`, with a streamed reply.

pip install recollect
OPENAI_API_KEY=… python terminal_bot.py     # OPENAI_BASE_URL for any other provider, such as a local one
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from openai import OpenAI

from recollect import Recollect

MODEL = os.environ.get("BOT_MODEL", "gpt-5-mini")
RULES = "You are a friendly bot. Answer in a few sentences."
#: The turns that the model sees itself; all before them come from the memory.
HISTORY_MAX = 20


def words(client: OpenAI, messages: Any) -> Iterator[str]:
    """Yield the reply of the model as it comes."""
    for chunk in client.chat.completions.create(model=MODEL, messages=messages, stream=True):
        yield (chunk.choices[0].delta.content or "") if chunk.choices else ""


def main() -> None:
    """Talk until the user sends an empty line, or Ctrl-D."""
    client, session = OpenAI(), f"terminal-{uuid4()}"
    history: list[dict[str, str]] = []
    with Recollect() as memory:
        while text := read_line():
            with memory.turn("me", session, text) as turn:
                history.append({"role": "user", "content": text})
                system = {"role": "system", "content": f"{RULES}\n\n{turn.context}"}
                for word in turn.stream(words(client, [system, *history[-HISTORY_MAX:]])):
                    print(word, end="", flush=True)
                print()
                history.append({"role": "assistant", "content": turn.reply or ""})


def read_line() -> str:
    """Return what the user types; an empty text at the end."""
    try:
        return input("> ").strip()
    except EOFError:
        return ""


if __name__ == "__main__":
    main()
