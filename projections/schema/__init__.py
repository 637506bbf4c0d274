"""Schema: the tables of a read model, as SQL files, and the hash over their contents.

It may use `events`.
"""
