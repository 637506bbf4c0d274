"""A Telegram bot that remembers each user. It sends no history to its model: the memory has the conversation too.

pip install recollect python-telegram-bot
TELEGRAM_TOKEN=… OPENAI_API_KEY=… python telegram_bot.py
"""

# pyright: basic
from __future__ import annotations

import os
from typing import Any

from openai import AsyncOpenAI

from recollect import AsyncRecollect

MODEL = os.environ.get("BOT_MODEL", "gpt-5-mini")
RULES = "You are a friendly bot in a chat. Answer in a few sentences."


class Bot:
    """Answers messages; each user has a memory, each chat a conversation."""

    def __init__(self, memory: AsyncRecollect, client: AsyncOpenAI) -> None:
        self.memory = memory
        self.client = client

    async def answer(self, update: Any, _: Any) -> None:
        """Reply to the message of a `telegram.Update`."""
        message, user = update.effective_message, update.effective_user
        async with self.memory.turn(
            f"telegram-{user.id}",
            f"telegram-{message.chat_id}",
            message.text,
            user_name=user.first_name,
            history=False,
        ) as turn:
            completion = await self.client.responses.create(
                model=MODEL, instructions=f"{RULES}\n\n{turn.context}", input=message.text
            )
            turn.reply = completion.output_text
        await message.reply_text(turn.reply or "…")


def main() -> None:
    """Run until Ctrl-C."""
    from telegram.ext import Application, MessageHandler, filters  # noqa: PLC0415 # pyright: ignore

    bot = Bot(AsyncRecollect(), AsyncOpenAI())
    application: Any = Application.builder().token(os.environ["TELEGRAM_TOKEN"]).build()
    application.add_handler(MessageHandler(filters.TEXT & ~filters.COMMAND, bot.answer))
    application.run_polling()


if __name__ == "__main__":
    main()
