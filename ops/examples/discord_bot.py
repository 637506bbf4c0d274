"""A Discord bot that remembers each user: in direct messages, and in channels where it is mentioned.

pip install recollect discord.py
DISCORD_TOKEN=… OPENAI_API_KEY=… python discord_bot.py
"""

# pyright: basic
from __future__ import annotations

import os
from collections import defaultdict, deque
from typing import Any

from openai import AsyncOpenAI

import recollect

MODEL = os.environ.get("BOT_MODEL", "gpt-5-mini")
RULES: Any = {"role": "system", "content": "You are a friendly bot in a chat. Answer in a few sentences."}
CHARS_MAX = 2_000  # of a message on Discord


class Bot:
    """Answers messages; each user has a memory, each channel a conversation."""

    def __init__(self, client: AsyncOpenAI) -> None:
        self.client = recollect.wrap(client)
        self.turns: defaultdict[int, deque[Any]] = defaultdict(lambda: deque(maxlen=20))

    async def answer(self, message: Any) -> None:
        """Reply to a `discord.Message`."""
        turns = self.turns[message.channel.id]
        asked = [*turns, {"role": "user", "content": message.clean_content}]
        with recollect.conversation(
            f"discord-{message.author.id}", f"discord-{message.channel.id}", message.author.display_name
        ):
            completion = await self.client.chat.completions.create(model=MODEL, messages=[RULES, *asked])
        reply = completion.choices[0].message.content or "…"
        turns.extend([asked[-1], {"role": "assistant", "content": reply}])
        await message.reply(reply[:CHARS_MAX])


def main() -> None:
    """Run until Ctrl-C. In Discord's developer portal, switch on the intent `message content`."""
    import discord  # noqa: PLC0415 # pyright: ignore

    client: Any = discord.Client(intents=discord.Intents(guilds=True, messages=True, message_content=True))
    bot = Bot(AsyncOpenAI())

    @client.event
    async def on_message(message: Any) -> None:
        if not message.author.bot and (message.guild is None or client.user in message.mentions):
            await bot.answer(message)

    client.run(os.environ["DISCORD_TOKEN"])


if __name__ == "__main__":
    main()
