"""Derivation: helps jobs to append events that they derive from a read model, exactly once.

It may use `jobs.llm`, `projections` and `events`.
"""
