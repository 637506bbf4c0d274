"""Forgetting: does what a user's message asks when it says `forget my salary`.

It may use `jobs.extraction`, `jobs.compaction` and `jobs.derivation`.
"""
