"""Search index: what retrieval keeps in memory of a read model: episode arrays, postings, knowledge.

It may use `read_models`, `queries` and `text`.
"""
