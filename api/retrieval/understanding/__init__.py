"""Understanding: what a query asks for: its words, names, times and intent.

It may use `projections.text` and `projections.queries`.
"""
