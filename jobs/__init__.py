"""Jobs: the work that runs later: projection on workers, extraction, compaction, conversation care.

They may use `projections` and `events`; what they decide is appended to the log as derived events.
"""
