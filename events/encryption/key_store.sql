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

-- Erasures, from the request until the receipt: a killed one is completed from here, and all of them are repeated on a
-- log that was restored from an older backup.
CREATE TABLE IF NOT EXISTS erasures (
    number       INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    namespace    TEXT    NOT NULL,
    request      BLOB,              -- encrypted JSON of the request; NULL once it is complete
    requested_us INTEGER NOT NULL,
    scope        BLOB    NOT NULL,  -- JSON without names: what to erase again after a restore
    receipt      BLOB               -- signed JSON; NULL until it is complete
) STRICT;
