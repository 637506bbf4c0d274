"""Queries: read the tables of a read model, with one module for each group of tables and rows as named records.

It may use `projections.schema` and `projections.text`; jobs and api reach the tables through `Snapshot` only.
"""
