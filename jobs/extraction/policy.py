"""What extraction goes by; every number can be set."""

from __future__ import annotations

from pydantic import BaseModel


class ExtractionPolicy(BaseModel):
    """What extraction goes by; every number can be set."""
