"""Backends: the log in SQLite and in PostgreSQL, and the group commit that both share.

They may use `events.storage`, `events.catalogue` and the modules directly in `events`; other packages open a log by URL
with `open_log`.
"""
