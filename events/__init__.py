"""Events: the immutable log from which Recollect derives all other data; event types, append, read and verify.

Its modules may use each other and libraries only. `catalogue` defines the event types, `backends` stores the log in
SQLite or PostgreSQL, `integrity` verifies and backs up a log, `storage` handles files for every layer.
"""
