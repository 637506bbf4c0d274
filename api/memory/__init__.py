"""Memory: the Python classes that users import.

It may use every room of `api` but `http` and `cli`.
"""
