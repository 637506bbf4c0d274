"""Queue: broker, workers, scheduler, and the store of their runs.

It may use every other folder of `jobs`: it calls them.
"""
