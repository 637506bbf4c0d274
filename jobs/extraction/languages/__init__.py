"""Languages: reads self-statements in German, Spanish, French, Chinese and Japanese by one table each.

It may use `projections.text` and the records of `jobs.extraction`.
"""
