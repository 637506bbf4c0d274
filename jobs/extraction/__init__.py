"""Knowledge read out of conversations, by rules or by a language model."""
