"""Storage: SQLite connections, file locks, atomic writes, caches and process pools for every layer, and the archive.

It may use the modules directly in `events`.
"""
