-- The vectors of one namespace. The file lies in the folder of the read model's generations; a rebuild keeps it.

-- Vectors of texts, by what was embedded (`Stretch.digest`): a rebuild embeds nothing twice.
CREATE TABLE IF NOT EXISTS vectors (
    key    INTEGER PRIMARY KEY,
    model  TEXT NOT NULL,  -- fingerprint of the embedding model
    digest BLOB NOT NULL,  -- sha256 of the text, or of the text and its part
    vector BLOB NOT NULL,  -- normalised; int8 numbers, then their scale as float16
    UNIQUE (model, digest)
) STRICT;

-- Token codes of passages: 32 bytes a token that is no stop word, in their order.
CREATE TABLE IF NOT EXISTS token_codes (
    vector_key INTEGER PRIMARY KEY,
    codes      BLOB NOT NULL
) STRICT;

-- Passages of the embedded episodes and their vectors.
CREATE TABLE IF NOT EXISTS embeddings (
    model      TEXT    NOT NULL,
    version    INTEGER NOT NULL,  -- of the episode
    part       TEXT    NOT NULL,  -- turn; earlier releases had others
    chunk      INTEGER NOT NULL,  -- number of the passage within the episode, from 0 on
    vector_key INTEGER NOT NULL,
    PRIMARY KEY (model, version, part, chunk)
) STRICT, WITHOUT ROWID;

-- Flags of the texts of the embedded episodes (`projections/text/text_flags.py`), which ranking reads.
CREATE TABLE IF NOT EXISTS text_flags (
    version INTEGER PRIMARY KEY,  -- of the episode
    flags   INTEGER NOT NULL
) STRICT;

-- The progress of each model. Another source makes its embeddings invalid. So does another event at the checkpoint: the
-- log was replaced by an older copy, which has got other events since.
CREATE TABLE IF NOT EXISTS embedded (
    model      TEXT PRIMARY KEY,
    source     TEXT    NOT NULL,  -- id of the log, versions of the schema, of the passages and of the text flags
    checkpoint INTEGER NOT NULL,  -- version of the last episode embedded
    last_id    TEXT    NOT NULL   -- id of that episode's event
) STRICT, WITHOUT ROWID;

-- The erasures that removed vectors: a process that opened the file before one of them may no longer write to it.
CREATE TABLE IF NOT EXISTS purges (
    version INTEGER PRIMARY KEY
) STRICT;
