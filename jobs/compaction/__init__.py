"""Memory that tidies itself: summaries, expiry, deduplication and decay."""
