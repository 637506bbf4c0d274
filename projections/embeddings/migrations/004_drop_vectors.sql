-- Earlier releases had float32 vectors, and codes of stop words.
DELETE FROM embedded;
DELETE FROM embeddings;
DELETE FROM token_codes;
DELETE FROM vectors;
