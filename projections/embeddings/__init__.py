"""Embeddings: run embedding models and keep their vectors and token codes on disk and in memory.

It may use `search_index`, `read_models`, `queries`, `projector` and `text`.
"""
