"""Importers: events from files of other programs.

They may use `events`, and the reading of statements from `jobs` and `projections`.
"""
