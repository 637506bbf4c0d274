"""Backends: the log in SQLite and in PostgreSQL, and the group commit that both share.

They may use `events.storage` and the modules directly in `events`; everybody else opens a log by URL with `open_log`.
"""
