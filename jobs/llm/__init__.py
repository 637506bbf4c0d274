"""A language model, when one is configured: asked within a budget, never needed."""
