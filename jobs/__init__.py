"""Jobs: background work: projection on workers, extraction, compaction, observation of conversations.

They may use `projections` and `events`; they append their results to the log as derived events.
"""
