"""A loop as in any program with OpenAI's client, and the one line that makes it remember: `recollect.wrap`.

pip install recollect
OPENAI_API_KEY=… python openai_bot.py     # OPENAI_BASE_URL for any other provider, such as a local one
"""

from __future__ import annotations

import os
import sys
from typing import Any

from openai import OpenAI

import recollect

MODEL = os.environ.get("BOT_MODEL", "gpt-5-mini")


def main() -> None:
    """Answer each line of the standard input."""
    client = recollect.wrap(OpenAI(), namespace="me")
    messages: list[Any] = [{"role": "system", "content": "You are a friendly bot. Answer in a few sentences."}]
    for line in sys.stdin:
        messages.append({"role": "user", "content": line.strip()})
        completion = client.chat.completions.create(model=MODEL, messages=messages)
        reply = completion.choices[0].message.content or ""
        messages.append({"role": "assistant", "content": reply})
        print(reply)


if __name__ == "__main__":
    main()
