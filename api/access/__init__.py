"""Access: who may do what: tokens with scopes and namespaces, rates, and the audit log.

It may use the settings of `api`, and `events`; it does not know HTTP.
"""
