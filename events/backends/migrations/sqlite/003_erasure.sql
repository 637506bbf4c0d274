-- Encryption and erasure. An erased event keeps its version, leaf and hash; its other columns are emptied.

ALTER TABLE log ADD COLUMN encrypted INTEGER NOT NULL DEFAULT 0;          -- 1: new events are encrypted
ALTER TABLE log ADD COLUMN vacuumed INTEGER NOT NULL DEFAULT 0;           -- 1: free space holds no old content
ALTER TABLE heads ADD COLUMN erasure_version INTEGER NOT NULL DEFAULT 0;  -- of its newest erasure event; 0: none

-- The events that record erasures.
CREATE TABLE erasures (
    key     INTEGER NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (key, version)
) STRICT, WITHOUT ROWID;

-- Erased events that are only in the archive: hidden from every read until their segment is written again without them.
CREATE TABLE erased_in_archive (
    key     INTEGER NOT NULL,
    version INTEGER NOT NULL,
    id      TEXT    NOT NULL,  -- HMAC of the id
    PRIMARY KEY (key, version)
) STRICT, WITHOUT ROWID;
