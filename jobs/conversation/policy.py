"""What the care of running conversations goes by; every number can be set."""

from __future__ import annotations

from pydantic import BaseModel


class ConversationPolicy(BaseModel):
    """What the care of running conversations goes by; every number can be set."""
