-- The log in one SQLite file. Numbered migrations change it; PRAGMA user_version is the last one applied.

-- One row: what this log is. log_id names it for ever, so that a read model of another log is recognised.
CREATE TABLE log (
    log_id TEXT NOT NULL
) STRICT;

-- The heads: one row a namespace, changed in the transaction of every append.
CREATE TABLE heads (
    key            INTEGER PRIMARY KEY,  -- short name of the namespace inside this file
    namespace      TEXT    NOT NULL UNIQUE,
    version        INTEGER NOT NULL,     -- of its newest event
    hash           BLOB    NOT NULL,     -- of its newest event
    recorded_at_us INTEGER NOT NULL      -- of its newest event; the next one is never earlier
) STRICT;

-- The events. position = key * 2^36 + version: a namespace's events lie side by side in the order of their versions,
-- and one B-tree serves as the key and the table. It is no global order; nobody reads by it across namespaces.
CREATE TABLE events (
    position       INTEGER PRIMARY KEY,
    id             ANY     NOT NULL,     -- text; 16 bytes when the text is a UUID, which halves the cost of the index
    type           TEXT    NOT NULL,
    schema_version INTEGER NOT NULL,
    occurred_at_us INTEGER NOT NULL,
    recorded_at_us INTEGER NOT NULL,
    session_id     TEXT,
    actor          TEXT,
    causation_id   TEXT,
    correlation_id TEXT,
    encoding       TEXT    NOT NULL,
    payload        BLOB    NOT NULL,
    leaf           BLOB    NOT NULL,     -- sha256 over header and payload
    hash           BLOB    NOT NULL      -- sha256 over the previous hash and the leaf
) STRICT;

-- An event's id is unique in its namespace (position / 2^36 is the namespace's key).
CREATE UNIQUE INDEX events_by_id ON events (position >> 36, id);

CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are immutable: UPDATE is refused'); END;

-- REPLACE is a DELETE in disguise: it fires this one in connections with recursive_triggers, which all of ours have. A
-- trigger on INSERT would refuse it in anybody's, at 15 % of the append rate; in those, `verify` finds it.
CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are immutable: DELETE is refused'); END;
