"""Integrations: memory for clients and frameworks of others: the OpenAI client, LangGraph, pydantic-ai.

They may use the rooms up to `memory`, and call a memory only by the methods of `memory_protocols`. No module of another
room imports them, and each imports its framework itself.
"""
