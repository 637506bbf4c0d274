"""What other programs hold, as events."""
