"""Pages: the public lists, the entity graph and the export, a page or a line at a time.

It may use `projections.queries` and `events`.
"""
