"""Routes: the routers of the HTTP application, one module for each group of routes.

It may use every room of `api` but `cli`.
"""
