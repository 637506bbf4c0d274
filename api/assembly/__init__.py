"""Assembly: the parts of a data folder, opened and closed in one place.

It may use `retrieval`, `settings`, `jobs` and `projections`; every interface takes the parts from it.
"""
