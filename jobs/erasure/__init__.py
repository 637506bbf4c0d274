"""Erasure: finds the events to erase, with what was derived from them, erases them, and writes receipts; retention.

It may use `jobs.derivation`, `jobs.job_settings` and the packages above `jobs`.
"""
