"""Projections: read models folded from the log, their search indexes and embeddings.

They may use `events`. From the ground up: `schema` and `text`, `projector` and `queries`, `read_models`,
`search_index`, `embeddings`.
"""
