-- Events that were sealed into the archive may leave this file; what is needed to go on appending stays.

ALTER TABLE heads ADD COLUMN pruned INTEGER NOT NULL DEFAULT 0;  -- versions up to it are in the archive only

-- The ids of events that left: one that is sent again is known, and found in the archive.
CREATE TABLE pruned_ids (
    key     INTEGER NOT NULL,
    id      ANY     NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (key, id)
) STRICT, WITHOUT ROWID;
