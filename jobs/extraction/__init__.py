"""Extraction: reads facts, preferences, corrections, dates and more from messages, by rules or a language model.

It may use `jobs.derivation` and `jobs.llm`.
"""
