"""Retrieval: what should this bot remember right now?"""
