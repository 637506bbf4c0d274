"""Contract: the request and the result of a retrieval, and its time budget.

It may use nothing else of `api` but `as_of` and `settings`.
"""
