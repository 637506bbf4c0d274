"""Following: the events of a namespace, or the changes of its knowledge, after a position; and who follows them.

It may use `jobs.derivation`, `projections` and `events`.
"""
