"""Summarising: extractive summaries of episodes.

It may use `jobs.derivation` and `jobs.llm`.
"""
