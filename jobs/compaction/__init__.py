"""Compaction: the nightly steps, which compress, distil, expire, merge, decay, digest and cluster memories.

It may use `jobs.summarising`, `jobs.derivation` and `jobs.llm`.
"""
