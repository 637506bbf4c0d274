"""What compaction goes by; every number can be set."""

from __future__ import annotations

from pydantic import BaseModel


class CompactionPolicy(BaseModel):
    """What compaction goes by; every number can be set."""
