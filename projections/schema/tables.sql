-- One read model: what one namespace's log says, in the shape that questions need. Derived data: another SCHEMA_VERSION
-- means another file, built by replay. Ids and times come from events, so every build gives the same rows.

-- One row: whose model this is and how far it has folded the log.
CREATE TABLE read_model (
    schema_version  INTEGER NOT NULL,
    log_id          TEXT    NOT NULL,
    namespace       TEXT    NOT NULL,
    checkpoint      INTEGER NOT NULL,  -- version of the last event folded
    checkpoint_hash BLOB    NOT NULL,  -- the log's hash at that version
    attempts        INTEGER NOT NULL,  -- begun on the next batch and not finished; counted before the work
    parked_version  INTEGER,           -- the event that could not be folded; folding stops before it
    parked_error    TEXT,
    last_removal_version INTEGER NOT NULL,  -- version of the last event that removed or summarised episodes; 0: none
    knowledge_version    INTEGER NOT NULL   -- version of the last event that changed facts, preferences …; 0: none
) STRICT;

-- What happened: one row a message, action or observation.
CREATE TABLE episodes (
    version        INTEGER PRIMARY KEY,  -- of the event that made it
    id             TEXT    NOT NULL,     -- of that event
    session_id     TEXT,
    previous       INTEGER,              -- version of the episode before it in its session
    occurred_at_us INTEGER NOT NULL,
    type           TEXT    NOT NULL,     -- conversation, action, observation
    role           TEXT,                 -- user, assistant, system, tool:<name>; of messages only
    speaker        TEXT    NOT NULL,
    text           TEXT    NOT NULL,
    caption        TEXT,                 -- what its attachments show
    importance     INTEGER NOT NULL,     -- 1 to 10
    outcome        TEXT,                 -- of an action
    tier           TEXT    NOT NULL,     -- raw, compressed, distilled
    token_count    INTEGER NOT NULL,
    status         TEXT    NOT NULL,     -- active, stale, superseded, invalidated, rejected
    pinned         INTEGER NOT NULL,     -- 1: kept whatever its age
    expires_at_us  INTEGER,              -- leaves the read model at the first compaction after it; NULL: never
    short          TEXT,                 -- what a long message says in short
    terms          TEXT,                 -- to be found by: segments of its text; of a summary the words of what it stands for
    source_tokens  INTEGER               -- of a summary: tokens of what it stands for
) STRICT;

-- What a summary stands for: versions of the events, of which the words stay in the log.
CREATE TABLE episode_sources (
    version INTEGER NOT NULL,            -- of the summary
    source  INTEGER NOT NULL,            -- of the message, action or observation it stands for, which may have expired
    id      TEXT    NOT NULL,            -- the id of that event
    PRIMARY KEY (version, source)
) STRICT, WITHOUT ROWID;

-- The last days in a few sentences each.
CREATE TABLE daily_digests (
    day            TEXT PRIMARY KEY,     -- such as 2026-11-20
    text           TEXT    NOT NULL,
    occurred_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How far jobs have looked that read every event once: `extraction`.
CREATE TABLE job_cursors (
    job     TEXT PRIMARY KEY,
    through INTEGER NOT NULL             -- version of the last event looked at
) STRICT, WITHOUT ROWID;

-- Conversations.
CREATE TABLE sessions (
    id            TEXT PRIMARY KEY,
    channel       TEXT,
    user_id       TEXT,
    started_at_us INTEGER NOT NULL,
    ended_at_us   INTEGER,
    last_at_us    INTEGER NOT NULL,
    last_version  INTEGER,              -- of its newest episode
    episode_count INTEGER NOT NULL,
    summary       TEXT,
    metadata      TEXT                  -- JSON
) STRICT, WITHOUT ROWID;

-- People, places, projects: what messages name, and what was described.
CREATE TABLE entities (
    id            INTEGER PRIMARY KEY,  -- 1, 2, 3 … by first appearance in the log
    name          TEXT    NOT NULL,
    type          TEXT    NOT NULL,
    description   TEXT,
    aliases       TEXT    NOT NULL,     -- JSON list
    first_seen_us INTEGER NOT NULL,
    last_seen_us  INTEGER NOT NULL,
    mention_count INTEGER NOT NULL,
    spoken_count  INTEGER NOT NULL      -- messages by it; over 0 makes it a participant
) STRICT;

-- Every name that leads to an entity, case folded: its own and its aliases.
CREATE TABLE entity_names (
    name      TEXT PRIMARY KEY,
    entity_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Which episode names which entity.
CREATE TABLE mentions (
    entity_id INTEGER NOT NULL,
    version   INTEGER NOT NULL,         -- of the episode
    PRIMARY KEY (entity_id, version)
) STRICT, WITHOUT ROWID;
