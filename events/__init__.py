"""What happened: the log, its event types, append, read and verify."""
