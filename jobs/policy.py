"""Every number that jobs go by, with its default; each can be set as ``RECOLLECT_<NAME>``."""

from __future__ import annotations

from recollect.jobs.compaction.policy import CompactionPolicy
from recollect.jobs.conversation.policy import ConversationPolicy
from recollect.jobs.extraction.policy import ExtractionPolicy


class Policy(CompactionPolicy, ExtractionPolicy, ConversationPolicy):
    """What jobs go by."""
