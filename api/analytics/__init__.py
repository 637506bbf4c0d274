"""Analytics: SQL over the log, the episodes and the traces, by DuckDB.

It may use `projections`, `events` and the trace store.
"""
