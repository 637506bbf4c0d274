"""Queries: every SELECT on the tables of a read model, a module for each family of tables, rows as named records.

It may use `schema` and `text`; jobs and api reach the tables through `Snapshot` only.
"""
