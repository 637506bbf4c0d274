-- Jobs of one machine: what must outlive a restart. Losing this file loses no memory: every job can be done again.
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
CREATE TABLE IF NOT EXISTS pages (
    job     TEXT    NOT NULL,
    slot_us INTEGER NOT NULL,
    after   TEXT    NOT NULL,
    PRIMARY KEY (job, slot_us, after)
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
