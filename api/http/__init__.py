"""HTTP: the routes, their errors, and the server.

It may use every room of `api` but `cli`.
"""
