"""What extraction goes by; every number can be set."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field


class ExtractionPolicy(BaseModel):
    """What extraction goes by; every number can be set."""

    #: Messages that one extraction looks at.
    extraction_messages_max: Annotated[int, Field(ge=1, le=500)] = 100
    #: Confidence under which an extracted fact is kept as rejected.
    extraction_confidence_min: Annotated[float, Field(ge=0, le=1)] = 0.5
