-- Earlier releases embedded each turn alone, in a window and in reported speech. No passage has these texts any more.
DELETE FROM embedded;
DELETE FROM embeddings;
DELETE FROM token_codes;
DELETE FROM vectors;
