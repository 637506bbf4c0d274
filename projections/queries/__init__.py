"""Queries: every SELECT on the tables of a read model, one module for each family of tables, rows as named records.

It may use `projections.schema` and `projections.text`; jobs and api reach the tables through `Snapshot` only.
"""
