-- State of the jobs of one machine that must survive a restart. If this file is lost, no memory is lost: every job can run
-- again. A `slot` is the time at which a run is due; `beats` holds the heartbeats.
CREATE TABLE IF NOT EXISTS runs (
    job        TEXT    NOT NULL,
    slot_us    INTEGER NOT NULL,
    started_us INTEGER NOT NULL,
    touched_us INTEGER NOT NULL,
    ended_us   INTEGER,
    namespaces INTEGER NOT NULL,
    events     INTEGER NOT NULL,
    errors     INTEGER NOT NULL,
    error      TEXT,
    PRIMARY KEY (job, slot_us)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (
    message_id TEXT    PRIMARY KEY,
    count      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dead_letters (
    id        TEXT    PRIMARY KEY,
    queue     TEXT    NOT NULL,
    actor     TEXT    NOT NULL,
    arguments TEXT    NOT NULL,  -- JSON list
    died_us   INTEGER NOT NULL,
    error     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS beats (
    id      TEXT    PRIMARY KEY,
    role    TEXT    NOT NULL,
    host    TEXT    NOT NULL,
    pid     INTEGER NOT NULL,
    beat_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- Up to which version the extraction has looked at the messages of a namespace, by the name of its folder.
CREATE TABLE IF NOT EXISTS read_messages (
    namespace_key TEXT    PRIMARY KEY,
    version       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- The states of namespaces in which a scheduled job had nothing left to do: a night opens a namespace only when its head
-- or the basis differs, or when something falls due. 50 bytes a row: 5 MB a job for 100,000 namespaces.
CREATE TABLE IF NOT EXISTS finished (
    job           TEXT    NOT NULL,
    namespace_key BLOB    NOT NULL,  -- the name of the namespace's folder, 16 bytes
    version       INTEGER NOT NULL,  -- the head of the namespace
    basis         BLOB    NOT NULL,  -- hash of settings and models that the work depends on
    due_us        INTEGER,           -- when the job has work again without new events; NULL: never
    PRIMARY KEY (job, namespace_key)
) STRICT, WITHOUT ROWID;
-- How far each follower of a namespace has handled its events, by the name of the namespace's folder. Without its row a
-- follower starts again, so it handles events twice and misses none.
CREATE TABLE IF NOT EXISTS cursors (
    name            TEXT    NOT NULL,
    namespace_key   TEXT    NOT NULL,
    position        INTEGER NOT NULL,  -- version of the last event handled
    erasure_version INTEGER NOT NULL,  -- the last erasure that it has followed; 0: none
    failures        INTEGER NOT NULL,  -- failed attempts at the next events
    retry_at_us     INTEGER NOT NULL,
    hash            TEXT    NOT NULL,  -- of the event at the position, in hex; empty: not known
    PRIMARY KEY (name, namespace_key)
) STRICT, WITHOUT ROWID;
