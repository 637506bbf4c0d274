"""Compaction: the nightly steps: compress, distil, expire, merge, decay, digest.

It may use `jobs.summarising`, `jobs.derivation` and `jobs.llm`.
"""
