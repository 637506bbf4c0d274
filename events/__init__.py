"""Events: the immutable log that everything else is derived from: event types, append, read, verify.

Its modules use each other and libraries only. `storage` has the file handling of every layer, `backends` the two logs,
`integrity` the proof that a log is unaltered.
"""
