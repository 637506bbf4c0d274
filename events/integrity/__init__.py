"""Integrity: verification of hash chains, anchors kept elsewhere, backups.

It may use the backends, `events.storage` and the modules directly in `events`.
"""
