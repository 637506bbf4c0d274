"""Intake: screens the events of producers before they are appended: private sections and secrets.

It may use the modules directly in `events`.
"""
