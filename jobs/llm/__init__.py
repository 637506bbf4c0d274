"""LLM: the client of a language model, with a budget and a circuit breaker.

It may use `jobs.job_settings` and `events`.
"""
