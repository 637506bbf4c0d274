"""Compaction: the nightly steps, which compress, distil, expire, merge and decay memories.

It may use `jobs.summarising`, `jobs.derivation` and `jobs.llm`.
"""
