"""Conversation: windows, observations and topics of running conversations.

It may use `jobs.summarising`, `jobs.derivation` and `jobs.llm`.
"""
