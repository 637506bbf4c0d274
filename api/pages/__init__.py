"""Pages: the public lists and the entity graph in pages, and the export line by line.

It may use `projections.queries` and `events`.
"""
