"""Memory: the parts of a data folder, assembled, and the Python classes that users import.

It may use every room of `api` but `http` and `cli`.
"""
