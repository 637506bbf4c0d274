-- The vectors of one namespace, beside the generations of its read model and kept when those are rebuilt.

-- Texts that were embedded once, by what they are: a rebuild embeds nothing twice.
CREATE TABLE IF NOT EXISTS vectors (
    key    INTEGER PRIMARY KEY,
    model  TEXT NOT NULL,
    digest BLOB NOT NULL,  -- sha256 of the text
    vector BLOB NOT NULL,  -- normalised, float32, little endian
    UNIQUE (model, digest)
) STRICT;

-- The pieces of those texts that are turns, each as a code of 64 bytes, one after the other.
CREATE TABLE IF NOT EXISTS token_codes (
    vector_key INTEGER PRIMARY KEY,
    codes      BLOB NOT NULL
) STRICT;

-- Which vectors stand for which episode.
CREATE TABLE IF NOT EXISTS embeddings (
    model      TEXT    NOT NULL,
    version    INTEGER NOT NULL,  -- of the episode
    part       TEXT    NOT NULL,  -- turn, window
    chunk      INTEGER NOT NULL,
    vector_key INTEGER NOT NULL,
    PRIMARY KEY (model, version, part, chunk)
) STRICT, WITHOUT ROWID;

-- How far each model has come, and from which texts: another source means that its embeddings are made anew, and so does
-- another last episode, since then the log is an older copy that went on in another way.
CREATE TABLE IF NOT EXISTS embedded (
    model      TEXT PRIMARY KEY,
    source     TEXT    NOT NULL,
    checkpoint INTEGER NOT NULL,  -- version of the last episode embedded
    last_id    TEXT    NOT NULL   -- and the id of its event
) STRICT, WITHOUT ROWID;

-- The same as an earlier program kept it.
DROP TABLE IF EXISTS progress;
