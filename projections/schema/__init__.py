"""Schema: defines the tables of a read model in SQL files, and hashes their contents.

It may use `events`.
"""
