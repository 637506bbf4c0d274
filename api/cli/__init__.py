"""Command line: the commands of `recollect`.

It may use every room of `api`.
"""
