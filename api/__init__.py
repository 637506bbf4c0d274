"""API: the interfaces in Python, over HTTP and on the command line, and retrieval.

It may use `jobs`, `projections` and `events`.
"""
