-- The keys of one log, apart from the log: a key that is deleted here makes all copies of what it encrypted unreadable.
-- The file is never in a backup of the log. Journal mode DELETE, so that it also works on a shared disk.

-- One row: the secrets of the store, each wrapped by the master key when there is one.
CREATE TABLE IF NOT EXISTS secrets (
    pepper      BLOB NOT NULL,  -- key of the HMACs that stand for names of subjects and erased ids
    signing_key BLOB NOT NULL,  -- Ed25519, signs receipts
    public_key  BLOB NOT NULL
) STRICT;

-- One key a namespace, wrapped by the master key; it wraps the data keys of the namespace.
CREATE TABLE IF NOT EXISTS namespace_keys (
    namespace TEXT PRIMARY KEY,
    wrapped   BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- The data keys, one for each subject of a namespace; the subject is an HMAC of its name, empty for the namespace itself.
CREATE TABLE IF NOT EXISTS data_keys (
    kid            BLOB PRIMARY KEY,  -- random; stands before each encrypted payload
    namespace      TEXT    NOT NULL,
    subject        BLOB    NOT NULL,
    wrapped        BLOB,              -- NULL: destroyed
    wrapped_sha256 BLOB    NOT NULL,  -- tells whether an old copy of this file has the key
    created_us     INTEGER NOT NULL,
    destroyed_us   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS data_keys_by_subject ON data_keys (namespace, subject);

-- Erased subjects, which get no new key and whose events are refused; the subject is empty for a whole namespace.
CREATE TABLE IF NOT EXISTS tombstones (
    namespace TEXT    NOT NULL,
    subject   BLOB    NOT NULL,
    at_us     INTEGER NOT NULL,
    PRIMARY KEY (namespace, subject)
) STRICT, WITHOUT ROWID;

-- Erasures: a killed one is completed from here, and all of them are repeated on a log restored from an older backup.
CREATE TABLE IF NOT EXISTS erasures (
    number       INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    namespace    TEXT    NOT NULL,
    kind         TEXT    NOT NULL,  -- namespace, subject, session or message
    pseudonyms   TEXT    NOT NULL,  -- JSON list: HMACs of the subject, the session or the ids, in hex
    reason       TEXT,
    requested_by TEXT,
    requested_us INTEGER NOT NULL,
    is_complete  INTEGER NOT NULL DEFAULT 0,
    record_id    TEXT               -- id of the last event that records it; NULL when nothing was erased
) STRICT;

-- Signed receipts, each with the hash of the one before it. An erasure that was repeated has several.
CREATE TABLE IF NOT EXISTS receipts (
    number     INTEGER PRIMARY KEY,
    erasure_id TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    content    TEXT NOT NULL         -- JSON
) STRICT;

-- Care for memories that an erasure makes again: pins, endings, retractions. A fingerprint (HMAC) finds the new memory.
CREATE TABLE IF NOT EXISTS care (
    number      INTEGER PRIMARY KEY,
    namespace   TEXT    NOT NULL,
    event       BLOB    NOT NULL,  -- HMAC of the id of the erased event
    fingerprint BLOB    NOT NULL,  -- of the memory
    type        TEXT    NOT NULL,  -- of the event
    fields      TEXT    NOT NULL,  -- JSON: its payload without ids and texts
    occurred_us INTEGER NOT NULL,
    noted_us    INTEGER NOT NULL,
    UNIQUE (namespace, event)
) STRICT;
