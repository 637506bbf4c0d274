-- Vectors that the machines of one log share. All tables are a cache beside the log, in a schema of their own, so that
-- a copy of the schema `recollect` has none of them. A table whose columns change gets the next number as its name:
-- processes of two releases use one database during an upgrade.
CREATE SCHEMA IF NOT EXISTS recollect_cache;

-- Unlogged: the rows are in no WAL, no replica and no base backup, where an erasure could not reach them. A crash of the
-- server empties such tables, and machines embed again what they lack.
CREATE UNLOGGED TABLE recollect_cache.vectors_1 (
    namespace  bytea   NOT NULL,  -- sha256 of the name of the namespace
    model      bytea   NOT NULL,  -- sha256 of all that determines a vector besides the text
    digest     bytea   NOT NULL,  -- Stretch.digest; its HMAC where the log is encrypted
    has_codes  boolean NOT NULL,  -- whether the content has token codes
    content    bytea   NOT NULL,  -- vector and token codes; encrypted where the log is
    size_bytes integer NOT NULL,  -- of the content
    saved_on   date    NOT NULL DEFAULT current_date,
    PRIMARY KEY (namespace, model, digest)
);
-- No compression: vectors and ciphertext do not shrink.
ALTER TABLE recollect_cache.vectors_1 ALTER COLUMN content SET STORAGE EXTERNAL;
-- The sizes of all days are summed from the index alone.
CREATE INDEX vectors_1_saved_on ON recollect_cache.vectors_1 (saved_on, size_bytes);

-- The last erasure of a namespace whose vectors were removed, and how many that were.
CREATE UNLOGGED TABLE recollect_cache.erasures_1 (
    namespace bytea   PRIMARY KEY,
    version   bigint  NOT NULL,
    removed   integer NOT NULL
);

-- The basis of the token codes of each model; of the first machine that has computed it.
CREATE TABLE recollect_cache.bases_1 (
    model text  PRIMARY KEY,  -- fingerprint of the embedding model
    basis bytea NOT NULL      -- in the format of numpy
);

-- When old rows were last removed: one process does that in an hour.
CREATE TABLE recollect_cache.trims_1 (trimmed_at timestamptz NOT NULL);
INSERT INTO recollect_cache.trims_1 VALUES ('-infinity');
