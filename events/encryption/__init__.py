"""Encryption: encrypts the payloads of events, and stores the keys apart from the log, so that a key can be destroyed.

It may use `events.storage` and the modules directly in `events`.
"""
