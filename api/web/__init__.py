"""Web: the viewer, a page with its style and its modules that a browser loads from the server.

It may use the standard library alone; the modules in the browser may use the public routes and nothing else.
"""
