"""Evaluation: benchmarks of answers, retrieval and compaction on conversations with known answers.

It may use every room of `api` but `http` and `cli`.
"""
