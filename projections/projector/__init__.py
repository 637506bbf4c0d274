"""Projector: applies events to the tables of a read model, in batches, exactly once.

It may use `schema` and `text`.
"""
