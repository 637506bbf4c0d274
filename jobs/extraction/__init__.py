"""Extraction: reads facts, preferences, corrections, dates and more from messages, by rules and trained readers.

It may use `jobs.derivation` and `projections`.
"""
