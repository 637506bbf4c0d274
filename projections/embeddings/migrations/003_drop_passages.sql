-- Earlier releases embedded each turn twice, alone and after the end of the turn before it. No passage has these texts.
DELETE FROM embedded;
DELETE FROM embeddings;
DELETE FROM token_codes;
DELETE FROM vectors;
