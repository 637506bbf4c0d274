"""Import formats: one module for each program whose files a plain installation reads; each declares its `IMPORTERS`.

They may use the readers of `importers`. Rarer formats are in `ops/import`.
"""
