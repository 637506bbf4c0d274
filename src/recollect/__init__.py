"""Recollect: long-term memory for chat bots and agents, built on event sourcing."""
