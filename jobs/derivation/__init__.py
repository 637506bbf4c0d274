"""Derivation: how jobs read a read model and append derived events, exactly once.

It may use `jobs.llm`, `projections` and `events`.
"""
