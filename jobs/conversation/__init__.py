"""Conversation: running conversations: window, observations, topics.

It may use `jobs.summarising` and `jobs.derivation`.
"""
