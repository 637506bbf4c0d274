-- Earlier releases had codes of 64 bytes, and a code for each token of a long passage.
DELETE FROM embedded;
DELETE FROM embeddings;
DELETE FROM token_codes;
DELETE FROM vectors;
