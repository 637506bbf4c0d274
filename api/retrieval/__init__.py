"""Retrieval: understand a query, search, rank, gate, fit to the budget, render, trace.

The stages are its rooms, in this order: `understanding`, `search`, `ranking`, `answer`.
`contract` has the request and the result. It may use `settings`, `as_of`, `jobs` and `projections`.
"""
