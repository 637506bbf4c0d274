"""Intake: screens the events of producers before they are appended: private sections, secrets and
recalled contexts.

It may use the modules directly in `events`.
"""
