"""What runs later: dramatiq actors and the scheduler."""
