"""Every way in: retrieval, HTTP, Python and the command line."""
