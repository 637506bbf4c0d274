"""Text: words, names, sentences, dates and tokens of a text, in several languages.

It may use `events` and nothing else of Recollect: no tables, no models.
"""
