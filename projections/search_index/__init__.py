"""Search index: the in-memory index of a read model: episode arrays, postings and knowledge.

It may use `read_models`, `queries`, `projector` and `text`.
"""
