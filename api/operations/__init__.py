"""Operations: health, metrics, dead letters and the change of the embedding model.

It may use the rooms of `jobs` and `projections`, and `api.assembly`.
"""
