"""Summarising: extractive summaries and keywords of episodes.

It may use `jobs.derivation` and `jobs.llm`.
"""
