"""Files and memory: the mechanisms that every layer needs to keep something on disk or in a cache, each of them once.

It may use the standard library, SQLite's errors (`events/database.py`) and the tree of errors, and knows no event.
"""
