"""LLM reading: reads messages with a language model behind the rules, checks what it says, and compares two readings.

It may use `jobs.extraction`, `jobs.derivation` and `jobs.llm`.
"""
