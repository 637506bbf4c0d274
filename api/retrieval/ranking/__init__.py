"""Ranking: candidates, their features, the weighted sum, the relevance gate.

It may use `search`, `understanding` and `contract`.
"""
