"""Text: extracts words, names, sentences, dates and tokens from texts in several languages.

It may use `events` and nothing else of Recollect: no tables, no embedding models.
"""
