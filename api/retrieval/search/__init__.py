"""Search: scores of every episode by keywords, by meaning and over the entity graph.

It may use `understanding`, `contract` and `projections`.
"""
