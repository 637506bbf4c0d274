"""Storage: SQLite connections, file locks, atomic writes, caches and pools that every layer uses, and the archive.

It may use the modules directly in `events`.
"""
