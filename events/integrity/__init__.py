"""Integrity: verification of hash chains, anchors, backups, and the identity of a data folder's log.

It may use the backends, `events.storage` and the modules directly in `events`.
"""
