"""Running conversations: observations, windows, summaries and changes of topic."""
