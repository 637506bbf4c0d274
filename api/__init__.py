"""API: every way in: Python, HTTP, command line, and the retrieval behind them.

It may use `jobs`, `projections` and `events`.
"""
