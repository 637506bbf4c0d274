"""Processes: several server processes on one port, each with the connections of its own namespaces.

It may use the rooms below `api/http`, and of this room the application and the protocol.
"""
