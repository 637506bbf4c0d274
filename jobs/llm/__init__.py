"""LLM: the client of a language model, with a daily token budget and a circuit breaker.

It may use `jobs.job_settings`, `projections` and `events`.
"""
