"""Exporters: writes a namespace in the formats of other programs, as folders of Markdown.

They may use `events` and the texts of `projections`, and get the rows of lists from their caller.
"""
