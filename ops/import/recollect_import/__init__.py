"""Import formats of the extra `recollect[import]`: one module for each program; each declares its `IMPORTERS`."""
