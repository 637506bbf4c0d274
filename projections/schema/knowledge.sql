-- What is known, beside what happened. Small next to the episodes, so these tables have their indexes from the start.
-- Keys count up in the order of the log; ids are those of events, with a number behind them when an event tells several.

-- Statements: subject, predicate, object. A row is never removed: what no longer holds keeps its end.
CREATE TABLE facts (
    key            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    version        INTEGER NOT NULL,     -- of the event that first told it
    entity_id      INTEGER NOT NULL,     -- its subject
    subject        TEXT    NOT NULL,
    predicate      TEXT    NOT NULL,
    object         TEXT    NOT NULL,
    type           TEXT    NOT NULL,     -- fact, event, decision, problem, commit, task
    layer          TEXT    NOT NULL,     -- episodic, procedural, conversational, proactive
    confidence     REAL    NOT NULL,
    source_type    TEXT    NOT NULL,     -- corrected, stated, observed, inferred
    status         TEXT    NOT NULL,     -- active, stale, superseded, invalidated, rejected
    pinned         INTEGER NOT NULL,
    superseded_by  TEXT,
    conflict_key   TEXT,                 -- of two active ones with the same key, one supersedes the other
    valid_from_us  INTEGER,
    valid_until_us INTEGER,              -- NULL: still true
    evidence_count INTEGER NOT NULL,
    source_events  TEXT    NOT NULL,     -- JSON list of event ids
    ttl_days       INTEGER NOT NULL,
    stale_at_us    INTEGER NOT NULL,
    created_at_us  INTEGER NOT NULL,
    updated_at_us  INTEGER NOT NULL,
    topic          TEXT    NOT NULL,     -- subject and predicate, normalised
    value          TEXT    NOT NULL      -- object, normalised
) STRICT;
CREATE INDEX facts_by_topic ON facts (topic, value);
CREATE INDEX facts_by_conflict ON facts (conflict_key) WHERE status = 'active';

-- What a user set right or took back: it stays right, whatever is extracted later. The empty value stands for all of them.
CREATE TABLE corrections (
    topic   TEXT NOT NULL,
    value   TEXT NOT NULL,
    fact_id TEXT,                        -- what is right instead; NULL: it was only taken back
    PRIMARY KEY (topic, value)
) STRICT, WITHOUT ROWID;

-- How someone likes things done.
CREATE TABLE preferences (
    key            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    version        INTEGER NOT NULL,
    category       TEXT    NOT NULL,
    name           TEXT    NOT NULL,     -- its key
    value          TEXT    NOT NULL,
    strength       REAL    NOT NULL,
    standing       INTEGER NOT NULL,     -- 1: an instruction that holds in every conversation
    source_type    TEXT    NOT NULL,     -- corrected, stated, inferred
    status         TEXT    NOT NULL,
    pinned         INTEGER NOT NULL,
    superseded_by  TEXT,
    evidence_count INTEGER NOT NULL,
    source_events  TEXT    NOT NULL,
    stale_at_us    INTEGER NOT NULL,
    created_at_us  INTEGER NOT NULL,
    updated_at_us  INTEGER NOT NULL
) STRICT;
CREATE INDEX preferences_by_name ON preferences (category, name) WHERE status = 'active';

-- How something is done, and how it went.
CREATE TABLE procedures (
    key           INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    version       INTEGER NOT NULL,
    name          TEXT    NOT NULL,
    trigger       TEXT    NOT NULL,
    steps         TEXT    NOT NULL,      -- JSON list
    context       TEXT,
    prior         REAL    NOT NULL,      -- confidence before it was ever used
    confidence    REAL    NOT NULL,
    success_count INTEGER NOT NULL,
    failure_count INTEGER NOT NULL,
    partial_count INTEGER NOT NULL,
    last_used_us  INTEGER,
    last_outcome  TEXT,
    status        TEXT    NOT NULL,
    pinned        INTEGER NOT NULL,
    superseded_by TEXT,
    source_events TEXT    NOT NULL,
    stale_at_us   INTEGER NOT NULL,
    created_at_us INTEGER NOT NULL,
    updated_at_us INTEGER NOT NULL
) STRICT;
CREATE INDEX procedures_by_name ON procedures (name COLLATE NOCASE) WHERE status = 'active';

-- How two entities are related.
CREATE TABLE relationships (
    key            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    version        INTEGER NOT NULL,
    source_id      INTEGER NOT NULL,
    type           TEXT    NOT NULL,
    target_id      INTEGER NOT NULL,
    weight         REAL    NOT NULL,     -- how much it counts in a walk over the graph
    confidence     REAL    NOT NULL,
    status         TEXT    NOT NULL,
    pinned         INTEGER NOT NULL,
    superseded_by  TEXT,
    evidence_count INTEGER NOT NULL,
    source_events  TEXT    NOT NULL,
    stale_at_us    INTEGER NOT NULL,
    created_at_us  INTEGER NOT NULL,
    updated_at_us  INTEGER NOT NULL,
    UNIQUE (source_id, type, target_id)
) STRICT;
CREATE INDEX relationships_by_target ON relationships (target_id);

-- Curated texts, whole and in chunks, and how they bear on each other and on entities.
CREATE TABLE documents (
    id          TEXT PRIMARY KEY,
    version     INTEGER NOT NULL,
    title       TEXT    NOT NULL,
    text        TEXT    NOT NULL,
    uri         TEXT,
    metadata    TEXT    NOT NULL,        -- JSON
    added_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE chunks (
    document_id TEXT    NOT NULL,
    number      INTEGER NOT NULL,        -- 0, 1, 2 …
    text        TEXT    NOT NULL,
    PRIMARY KEY (document_id, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE document_relations (
    document_id TEXT NOT NULL,
    type        TEXT NOT NULL,
    target      TEXT NOT NULL,           -- another document's id, or an entity's name
    weight      REAL NOT NULL,
    PRIMARY KEY (document_id, type, target)
) STRICT, WITHOUT ROWID;

-- What was noticed in a running conversation, in short lines.
CREATE TABLE observations (
    key            INTEGER PRIMARY KEY,
    event_id       TEXT    NOT NULL,
    session_id     TEXT,
    text           TEXT    NOT NULL,
    token_count    INTEGER NOT NULL,
    occurred_at_us INTEGER NOT NULL,
    status         TEXT    NOT NULL      -- active, superseded
) STRICT;
CREATE INDEX observations_by_session ON observations (session_id, status);
CREATE INDEX observations_by_event ON observations (event_id);

-- Which turns were observed.
CREATE TABLE observation_cursors (
    session_id TEXT PRIMARY KEY,
    through    INTEGER NOT NULL          -- version of the last one
) STRICT, WITHOUT ROWID;

-- Memories about the same thing.
CREATE TABLE clusters (
    memory_id TEXT PRIMARY KEY,
    number    INTEGER NOT NULL,
    label     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- What was said of retrieved memories: 1 useful, -0.5 noise, -1 misleading, added up.
CREATE TABLE ratings (
    memory_id TEXT PRIMARY KEY,
    rating    REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- Dates that messages name, as the ranges they mean; questions that they ask.
CREATE TABLE date_mentions (
    key      INTEGER PRIMARY KEY,
    event_id TEXT    NOT NULL,
    text     TEXT    NOT NULL,
    start_us INTEGER NOT NULL,
    end_us   INTEGER NOT NULL
) STRICT;
CREATE INDEX date_mentions_by_time ON date_mentions (start_us);
CREATE TABLE questions (
    key      INTEGER PRIMARY KEY,
    event_id TEXT    NOT NULL,
    text     TEXT    NOT NULL
) STRICT;
