"""Summarising: extractive summaries of episodes.

It may use `jobs.extraction`, `jobs.derivation` and `jobs.llm`.
"""
