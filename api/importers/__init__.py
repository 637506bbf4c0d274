"""Importers: events from files of other formats.

They may use `events`.
"""
