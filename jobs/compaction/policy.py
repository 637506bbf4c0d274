"""What compaction goes by; every number can be set."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field


class CompactionPolicy(BaseModel):
    """What compaction goes by; every number can be set. The defaults are those of `000` and `004`."""

    #: Age from which raw episodes are compressed.
    compress_after_hours: Annotated[float, Field(gt=0)] = 24
    #: Tokens of a compressed episode, as a share of what it stands for.
    compressed_share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    #: Most turns that one compressed episode stands for.
    compressed_turns_max: Annotated[int, Field(ge=2, le=1_000)] = 200
    #: Days from its session until a compressed episode that was not distilled expires.
    compressed_expires_after_days: Annotated[float, Field(gt=0)] = 90
    #: Age from which raw episodes expire that a summary stands for: a day, and the six days after it.
    raw_expires_after_days: Annotated[float, Field(gt=0)] = 7
    #: Raw episodes of this importance or more stay.
    raw_importance_kept: Annotated[int, Field(ge=1, le=11)] = 8
    #: Age from which compressed episodes are distilled.
    distill_after_days: Annotated[float, Field(gt=0)] = 7
    #: Tokens of a distilled episode, as a share of what it stands for.
    distilled_share: Annotated[float, Field(gt=0, lt=1)] = 0.05
    #: Cosine from which two memories are one.
    dedup_similarity: Annotated[float, Field(gt=0, le=1)] = 0.92
    #: Days in which an inferred fact that nobody confirms loses half of its confidence.
    decay_half_life_days: Annotated[float, Field(gt=0)] = 120
    #: Confidence under which an inferred fact becomes stale.
    decay_floor: Annotated[float, Field(ge=0, lt=1)] = 0.2
    #: Memories of a namespace (facts, preferences, procedures; and as many summaries) over which the least important
    #: ones go.
    memories_max: Annotated[int, Field(ge=1)] = 2_000
    #: Tokens of the digest of a day.
    digest_tokens: Annotated[int, Field(ge=16)] = 120
    #: Cosine from which memories are about the same thing.
    cluster_similarity: Annotated[float, Field(gt=0, le=1)] = 0.6
    #: Size of a read model over which it is rebuilt without its free pages, and raw episodes are compressed at once.
    model_bytes_max: Annotated[int, Field(ge=1 << 20)] = 512 << 20
