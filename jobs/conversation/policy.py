"""What the care of running conversations goes by; every number can be set."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field


class ConversationPolicy(BaseModel):
    """What the care of running conversations goes by; the defaults are those of `000` and `002`."""

    #: Tokens of turns that nobody observed from which on they are.
    observe_tokens: Annotated[int, Field(ge=100)] = 3_000
    #: Tokens of a session's observations from which on they are condensed, to half of it.
    reflect_tokens: Annotated[int, Field(ge=100)] = 4_000
    #: Tokens of observations that a session never has more of.
    observations_tokens_max: Annotated[int, Field(ge=200)] = 8_000
    #: Part of a window's budget over which the oldest half of the turns is summed up.
    window_full_share: Annotated[float, Field(gt=0, le=1)] = 0.75
    #: Turns that stay as they were said, when there are so many; 30 % of them otherwise.
    window_turns_kept: Annotated[int, Field(ge=1)] = 10
    #: Tokens over which a message gets a short form, and how many that has.
    long_message_tokens: Annotated[int, Field(ge=100)] = 300
    short_form_tokens: Annotated[int, Field(ge=16)] = 60
