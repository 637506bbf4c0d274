"""Read models: open the files of the projections, bring them up to date, rebuild them by replay, build past versions.

It may use `projector`, `queries` and `schema`.
"""
