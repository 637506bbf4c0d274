"""Read models: the files of the projections: opened, caught up, rebuilt by replay, and as they were in the past.

It may use `projector`, `queries` and `schema`.
"""
