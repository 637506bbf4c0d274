"""Analytics over the log, the read models and the traces."""
