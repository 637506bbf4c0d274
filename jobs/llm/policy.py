"""What asking a language model goes by; every number can be set."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field


class LlmPolicy(BaseModel):
    """What asking a language model goes by; every number can be set."""

    #: The model, as pydantic-ai names it, such as ``openai:gpt-5-mini``; None: the rules do the work.
    llm: str | None = None
    #: Where an OpenAI-compatible server is; `llm` is then just the model's name there.
    llm_base_url: str | None = None
    #: How long one answer may take.
    llm_timeout_seconds: Annotated[float, Field(gt=0)] = 30
    #: Tokens, asked and answered, that a day (UTC) may cost.
    llm_tokens_per_day: Annotated[int, Field(ge=0)] = 500_000
    #: Failures in a row after which a namespace is left to the rules, and for how long.
    llm_failures_max: Annotated[int, Field(ge=1)] = 3
    llm_pause_seconds: Annotated[float, Field(gt=0)] = 300
    #: Messages that are read at once, unless the conversation has been quiet for five minutes.
    llm_messages_min: Annotated[int, Field(ge=1)] = 10
