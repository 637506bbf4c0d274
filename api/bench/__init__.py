"""Benchmarks that a user can run on conversations of their own."""
