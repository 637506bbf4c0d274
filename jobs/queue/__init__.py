"""Queue: broker, workers, scheduler, and the records of their runs.

It may use every other room of `jobs`: it is what calls them.
"""
