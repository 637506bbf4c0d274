"""Answer: the context for the prompt, guidance for the answer, sources, traces.

It may use `ranking`, `search`, `understanding` and `contract`.
"""
