-- The tables of one read model: the state of one namespace, derived from its log. Each SCHEMA_VERSION has its own file,
-- built by replay. Ids and times come from events, so every build writes the same rows.

-- The single row that identifies the read model and holds its checkpoint.
CREATE TABLE read_model (
    schema_version  INTEGER NOT NULL,
    log_id          TEXT    NOT NULL,
    namespace       TEXT    NOT NULL,
    checkpoint      INTEGER NOT NULL,  -- version of the last event applied
    checkpoint_hash BLOB    NOT NULL,  -- the log's hash at that version
    attempts        INTEGER NOT NULL,  -- unfinished attempts at the next batch; counted before the work
    parked_version  INTEGER,           -- the event that could not be applied; projecting stops before it
    parked_error    TEXT,
    last_removal_version INTEGER NOT NULL,  -- version of the last event that removed or summarised episodes; 0: none
    knowledge_version    INTEGER NOT NULL,  -- version of the last event that changed facts, preferences …; 0: none
    updating_version     INTEGER NOT NULL   -- version of the event whose updates of rows are being applied, or were last
) STRICT;

-- Episodes: one row for each message, action, observation and summary.
CREATE TABLE episodes (
    version        INTEGER PRIMARY KEY,  -- of the episode's event
    id             TEXT    NOT NULL,     -- of that event
    session_id     TEXT,
    previous       INTEGER,              -- version of the episode before it in its session
    occurred_at_us INTEGER NOT NULL,
    utc_offset     INTEGER,              -- minutes east of UTC; NULL: as the namespace or the settings have it
    type           TEXT    NOT NULL,     -- conversation, action, observation
    role           TEXT,                 -- of a message: user, assistant, system, tool:<name>
    speaker        TEXT    NOT NULL,
    text           TEXT    NOT NULL,
    caption        TEXT,                 -- the captions of its attachments; the details of an action
    importance     INTEGER NOT NULL,     -- 1 to 10
    outcome        TEXT,                 -- of an action
    actor          TEXT,                 -- the user, agent or tool that caused the event
    parent_id      TEXT,                 -- the id of the event that caused it
    tags           TEXT,                 -- JSON list; NULL: none
    details        TEXT,                 -- JSON: the details of an action; NULL: none, or too large
    metadata       TEXT,                 -- JSON object: labels of the producer; NULL: none
    tier           TEXT    NOT NULL,     -- raw, compressed, distilled
    token_count    INTEGER NOT NULL,
    status         TEXT    NOT NULL,     -- active, stale, superseded, invalidated, rejected, forgotten
    pinned         INTEGER NOT NULL,     -- 1: compaction never removes it
    expires_at_us  INTEGER,              -- the first compaction after it removes the episode; NULL: never
    short          TEXT,                 -- short form of a long message
    terms          TEXT,                 -- search terms: tags, segments of the text; for a summary the words of its sources
    source_tokens  INTEGER               -- of a summary: tokens of its sources
) STRICT;

-- The sources of each summary. Their texts stay in the log when the episodes expire; the days of what was derived from
-- them are those of their times here.
CREATE TABLE episode_sources (
    version INTEGER NOT NULL,            -- of the summary
    source  INTEGER NOT NULL,            -- of the source: a raw episode, which may have expired
    id      TEXT    NOT NULL,            -- of the source's event
    status  TEXT    NOT NULL,            -- of the source, also after it has expired: active, stale, invalidated …
    occurred_at_us INTEGER NOT NULL,     -- of the source
    utc_offset     INTEGER,              -- of the source, as in `episodes`
    PRIMARY KEY (version, source)
) STRICT, WITHOUT ROWID;

-- The metadata of each episode, one row for each value that is not an object or a list. They stay as long as a summary
-- has the episode as a source.
CREATE TABLE episode_metadata (
    name    TEXT    NOT NULL,
    value   TEXT    NOT NULL,            -- as JSON
    version INTEGER NOT NULL,            -- of the episode
    PRIMARY KEY (name, value, version)
) STRICT, WITHOUT ROWID;

-- The memories that a producer asked to forget. What is derived from them later is left out.
CREATE TABLE forgotten (
    id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- The messages that some people must not be shown, whoever derives something from them.
CREATE TABLE restrictions (
    id         TEXT PRIMARY KEY,        -- of the message's event
    version    INTEGER NOT NULL,        -- of that event
    not_for    TEXT NOT NULL,           -- JSON list of names; *: every person but the speaker
    speaker    TEXT NOT NULL,
    session_id TEXT
) STRICT, WITHOUT ROWID;

-- What repeats another memory and does not name it as its source: the reply to a restricted message, a message in place
-- of another one, the correction of a fact.
CREATE TABLE repetitions (
    id     TEXT NOT NULL,
    source TEXT NOT NULL,               -- id of the event, or of the fact
    version INTEGER NOT NULL,           -- of the event `id`
    PRIMARY KEY (id, source)
) STRICT, WITHOUT ROWID;

-- Memories that look like instructions by others than the user: retrieval leaves them out until they are reviewed.
CREATE TABLE quarantine (
    memory_id TEXT PRIMARY KEY,
    kind      TEXT    NOT NULL,         -- memory, document
    reasons   TEXT    NOT NULL,         -- JSON list
    status    TEXT    NOT NULL,         -- waiting, or the decision: approve, reject, redact
    version   INTEGER NOT NULL,         -- of the event that put it there
    at_us     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The entities that a forgotten memory named. Lists hide them unless something else names them.
CREATE TABLE forgotten_entities (
    entity_id INTEGER PRIMARY KEY
) STRICT;

-- The cursor of each job that reads every event once: `extraction` by rules, `llm reading` by a language model.
CREATE TABLE job_cursors (
    job     TEXT PRIMARY KEY,
    through INTEGER NOT NULL             -- version of the last event read
) STRICT, WITHOUT ROWID;

-- What a producer has set for the namespace: `timezone`, the zone of its user's days.
CREATE TABLE namespace_settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The zone of the message of each user that was sent last, which may have expired: in it are the days of a question.
CREATE TABLE user_zones (
    speaker    TEXT PRIMARY KEY,         -- case folded
    version    INTEGER NOT NULL,         -- of the message
    at_us      INTEGER NOT NULL,         -- when it was sent
    utc_offset INTEGER,                  -- as in `episodes`
    timezone   TEXT                      -- named by the message or its session, with this offset; NULL: none
) STRICT, WITHOUT ROWID;

-- Sessions: one row for each conversation.
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
    metadata      TEXT,                 -- JSON
    timezone      TEXT,                 -- that the metadata names; NULL: none
    utc_offset    INTEGER               -- minutes east of UTC of its last event that has a zone; NULL: none
) STRICT, WITHOUT ROWID;

-- Entities: people, places, animals, works … that messages name or events describe.
CREATE TABLE entities (
    id            INTEGER PRIMARY KEY,  -- 1, 2, 3 … by first appearance in the log
    name          TEXT    NOT NULL,
    type          TEXT    NOT NULL,
    description   TEXT,
    aliases       TEXT    NOT NULL,     -- JSON list
    first_seen_us INTEGER NOT NULL,
    last_seen_us  INTEGER NOT NULL,
    mention_count INTEGER NOT NULL,
    spoken_count  INTEGER NOT NULL,     -- messages it wrote; a participant has more than 0
    importance    INTEGER,              -- 1 to 10; NULL: not stated
    metadata      TEXT,                 -- JSON object: labels of the producer; NULL: none
    forgotten_version INTEGER NOT NULL  -- of the event that forgot it; lists hide it until it is mentioned again; 0: none
) STRICT;

-- The evidence for the types of the entities: one row a message, an event or, with an empty source, a speaker.
CREATE TABLE entity_evidence (
    entity_id  INTEGER NOT NULL,
    type       TEXT    NOT NULL,
    source     TEXT    NOT NULL,        -- id of the event
    confidence INTEGER NOT NULL,        -- in hundredths; 100: it was stated
    at_us      INTEGER NOT NULL,
    PRIMARY KEY (entity_id, type, source)
) STRICT, WITHOUT ROWID;

-- Other names of an entity, which have rows of their own in `entities`: one row for each event that says so.
CREATE TABLE entity_links (
    entity_id      INTEGER NOT NULL,
    other_id       INTEGER NOT NULL,
    source         TEXT    NOT NULL,    -- id of the event
    stated_version INTEGER NOT NULL,    -- of the producer's event; 0: it was extracted
    PRIMARY KEY (entity_id, other_id, source)
) STRICT, WITHOUT ROWID;

-- Names, case folded, that a producer separated: they are not merged again, unless a producer states so later.
CREATE TABLE entity_separations (
    first   TEXT    NOT NULL,
    second  TEXT    NOT NULL,
    version INTEGER NOT NULL,           -- of the event
    PRIMARY KEY (first, second)
) STRICT, WITHOUT ROWID;

-- The entities that are another one by another name. Computed from the tables above and from the relationships.
CREATE TABLE entity_merges (
    entity_id     INTEGER PRIMARY KEY,
    into_id       INTEGER NOT NULL,     -- which is merged into no other one
    reason        TEXT    NOT NULL,     -- alias, role, full name, initials, spelling
    source_events TEXT    NOT NULL      -- JSON list of event ids
) STRICT;
CREATE INDEX entity_merges_by_into ON entity_merges (into_id);
CREATE VIEW entity_groups AS
SELECT id AS entity_id, coalesce(into_id, id) AS group_id FROM entities LEFT JOIN entity_merges ON entity_id = id;

-- The names and aliases of the entities, case folded.
CREATE TABLE entity_names (
    name      TEXT PRIMARY KEY,
    entity_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The entities that each episode names.
CREATE TABLE mentions (
    entity_id INTEGER NOT NULL,
    version   INTEGER NOT NULL,         -- of the episode
    PRIMARY KEY (entity_id, version)
) STRICT, WITHOUT ROWID;
