"""What we know now: read models, their projector and replay, embeddings."""
