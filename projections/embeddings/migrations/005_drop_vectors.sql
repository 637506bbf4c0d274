-- Earlier releases had codes of 64 bytes.
DELETE FROM embedded;
DELETE FROM embeddings;
DELETE FROM token_codes;
DELETE FROM vectors;
