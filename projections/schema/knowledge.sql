-- The tables of knowledge. They are small next to the episodes, so their indexes are created with them. Keys rise in
-- the order of the log, and none is given twice: an undo may remove a row, and add it again. An id is the event's id, followed by a number when the event states several items.

-- Facts: subject, predicate, object. Rows are never removed: a fact that ends gets a status and an end of validity.
CREATE TABLE facts (
    key            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL UNIQUE,
    version        INTEGER NOT NULL,     -- of the first event that stated it
    entity_id      INTEGER NOT NULL,     -- of the subject
    subject        TEXT    NOT NULL,
    predicate      TEXT    NOT NULL,
    object         TEXT    NOT NULL,
    statement      TEXT,                 -- the sentence; NULL: subject, predicate and object make one
    statement_kind TEXT,                 -- identity, home, work, ...; NULL: not known
    evidence       TEXT    NOT NULL,     -- JSON list of {event, start, end}
    type           TEXT    NOT NULL,     -- fact, event, decision, problem, commit, task
    layer          TEXT    NOT NULL,     -- episodic, procedural, conversational, proactive
    confidence     REAL    NOT NULL,
    source_type    TEXT    NOT NULL,     -- corrected, stated, observed, inferred
    status         TEXT    NOT NULL,     -- active, stale, superseded, ended, invalidated, rejected, forgotten
    pinned         INTEGER NOT NULL,
    superseded_by  TEXT,
    conflict_key   TEXT,                 -- of two active facts with one key, one supersedes the other
    valid_from_us  INTEGER,
    valid_until_us INTEGER,              -- NULL: still valid
    evidence_count INTEGER NOT NULL,
    source_events  TEXT    NOT NULL,     -- JSON list of event ids
    ttl_days       INTEGER NOT NULL,
    stale_at_us    INTEGER NOT NULL,
    created_at_us  INTEGER NOT NULL,
    updated_at_us  INTEGER NOT NULL,
    topic          TEXT    NOT NULL,     -- subject and predicate, normalised, and who says it of somebody else
    value          TEXT    NOT NULL,     -- object, normalised
    stated_by      TEXT                  -- who says it of somebody else; NULL: the subject, or a producer
) STRICT;
CREATE INDEX facts_by_topic ON facts (topic, value);
CREATE INDEX facts_by_conflict ON facts (conflict_key) WHERE conflict_key IS NOT NULL;
CREATE INDEX facts_by_entity ON facts (entity_id);

-- Facts with one value at a time that were stated about two names of one entity: of `Daniel lives in` and `Daniel
-- Dennett lives in` the newest holds. Rows are compared here and not when they are written, since a merge of names can
-- be undone. What a language model read, whose ids begin with its job, replaces no other fact.
CREATE VIEW facts_of_other_names AS
SELECT id, newest_id, newest_from_us FROM (
    SELECT
        id, first_value(id) OVER newest AS newest_id,
        first_value(coalesce(valid_from_us, created_at_us)) OVER newest AS newest_from_us
    FROM facts JOIN (
        SELECT entity_id, into_id FROM entity_merges UNION SELECT into_id, into_id FROM entity_merges
    ) USING (entity_id)
    WHERE status IN ('active', 'stale') AND conflict_key = topic AND facts.id NOT GLOB 'llm:*'
    WINDOW newest AS (
        PARTITION BY into_id, substr(topic, instr(topic, '|'))
        ORDER BY source_type = 'inferred', stale_at_us - ttl_days * 86400000000 DESC, key DESC
    )
) WHERE id <> newest_id;
CREATE VIEW current_facts AS
SELECT
    facts.key, facts.id, version, entity_id, subject, predicate, object, statement, statement_kind, evidence, type,
    layer, confidence, source_type, iif(newest_id IS NULL, status, 'superseded') AS status, pinned,
    coalesce(newest_id, superseded_by) AS superseded_by, conflict_key, valid_from_us, coalesce(newest_from_us, valid_until_us) AS valid_until_us, evidence_count,
    source_events, ttl_days, stale_at_us, created_at_us, updated_at_us, topic, value, stated_by
FROM facts LEFT JOIN facts_of_other_names USING (id);

-- What was said about each group of facts: those that cannot both hold, or else those of one value. The preferences of
-- a subject, category and name are a group, too.
CREATE TABLE fact_statements (
    key           INTEGER PRIMARY KEY AUTOINCREMENT,
    group_key     TEXT    NOT NULL,      -- conflict key, or topic and value; the topic for a correction of all values
    id            TEXT    NOT NULL,      -- of the event, with a number when the event states several facts
    kind          TEXT    NOT NULL,      -- state, past, correct, end, retract
    value         TEXT,                  -- NULL: every value of the group
    at_us         INTEGER NOT NULL,      -- when it was said
    from_us       INTEGER,
    until_us      INTEGER,
    is_assistant  INTEGER NOT NULL,
    rank          INTEGER NOT NULL,      -- decides between statements of one time
    fact_id       TEXT,                  -- the fact that it states; of an end, the fact that replaces the value
    confidence    REAL    NOT NULL,
    source_type   TEXT    NOT NULL,
    source_events TEXT    NOT NULL       -- JSON list of event ids
) STRICT;
CREATE INDEX fact_statements_by_group ON fact_statements (group_key, id);

-- Endings such as `I quit my job`, which also end facts that were said earlier and arrive later.
CREATE TABLE fact_endings (
    key           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT    NOT NULL,
    subject       TEXT    NOT NULL,      -- normalised
    predicates    TEXT    NOT NULL,      -- JSON list of canonical predicates; empty: all
    types         TEXT    NOT NULL,      -- JSON list of types of facts; empty: all
    about         TEXT    NOT NULL,      -- JSON list of stems; empty: all values of the predicates
    object        TEXT,                  -- the exact value, normalised; NULL: `about` names it
    kind          TEXT    NOT NULL,      -- end, retract
    at_us         INTEGER NOT NULL,
    voice         TEXT    NOT NULL,      -- who says it of somebody else, normalised; empty: the subject, or a producer
    probability   REAL    NOT NULL,      -- below 1: it may have ended, and stays
    event         TEXT,                  -- id of a message that may be wrong; NULL: the other columns name what it is about
    source_events TEXT    NOT NULL       -- JSON list of event ids
) STRICT;
CREATE INDEX fact_endings_by_subject ON fact_endings (subject, at_us);
CREATE INDEX fact_endings_by_event ON fact_endings (event) WHERE event IS NOT NULL;

-- Preferences of users: a category, a name and a value.
CREATE TABLE preferences (
    key            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL UNIQUE,
    version        INTEGER NOT NULL,
    subject        TEXT    NOT NULL,     -- whose it is, normalised; empty: the user's
    category       TEXT    NOT NULL,
    name           TEXT    NOT NULL,     -- the key in the event's payload
    value          TEXT    NOT NULL,
    strength       REAL    NOT NULL,
    standing       INTEGER NOT NULL,     -- 1: an instruction for every conversation
    source_type    TEXT    NOT NULL,     -- corrected, stated, inferred
    status         TEXT    NOT NULL,
    pinned         INTEGER NOT NULL,
    superseded_by  TEXT,
    valid_from_us  INTEGER,
    valid_until_us INTEGER,              -- NULL: still valid
    evidence_count INTEGER NOT NULL,
    source_events  TEXT    NOT NULL,
    stale_at_us    INTEGER NOT NULL,
    created_at_us  INTEGER NOT NULL,
    updated_at_us  INTEGER NOT NULL
) STRICT;
CREATE INDEX preferences_by_name ON preferences (subject, category, name);

-- The facts and preferences that each event made valid or not valid any more. Triggers write them, so that no handler can
-- leave one out: one row for each event and memory, from the status before the event to the status after it.
CREATE TABLE knowledge_changes (
    version       INTEGER NOT NULL,      -- of the event
    list          TEXT    NOT NULL,      -- facts, preferences
    id            TEXT    NOT NULL,      -- of the memory
    before        TEXT,                  -- the status before the event; NULL: there was no such memory
    after         TEXT,                  -- the status after the event; NULL: an undo removed the memory
    superseded_by TEXT,
    PRIMARY KEY (version, list, id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER facts_added AFTER INSERT ON facts WHEN NEW.status IN ('active', 'stale') BEGIN
    INSERT INTO knowledge_changes (version, list, id, before, after, superseded_by)
    SELECT updating_version, 'facts', NEW.id, NULL, NEW.status, NEW.superseded_by FROM read_model WHERE TRUE
    ON CONFLICT DO UPDATE SET after = excluded.after, superseded_by = excluded.superseded_by;
END;
CREATE TRIGGER facts_changed AFTER UPDATE OF status ON facts
WHEN (OLD.status IN ('active', 'stale')) <> (NEW.status IN ('active', 'stale')) OR (OLD.status <> 'forgotten' AND NEW.status = 'forgotten') BEGIN
    INSERT INTO knowledge_changes (version, list, id, before, after, superseded_by)
    SELECT updating_version, 'facts', NEW.id, OLD.status, NEW.status, NEW.superseded_by FROM read_model WHERE TRUE
    ON CONFLICT DO UPDATE SET after = excluded.after, superseded_by = excluded.superseded_by;
END;
CREATE TRIGGER facts_removed AFTER DELETE ON facts WHEN OLD.status IN ('active', 'stale') BEGIN
    INSERT INTO knowledge_changes (version, list, id, before, after, superseded_by)
    SELECT updating_version, 'facts', OLD.id, OLD.status, NULL, NULL FROM read_model WHERE TRUE
    ON CONFLICT DO UPDATE SET after = NULL, superseded_by = NULL;
END;
CREATE TRIGGER preferences_added AFTER INSERT ON preferences WHEN NEW.status IN ('active', 'stale') BEGIN
    INSERT INTO knowledge_changes (version, list, id, before, after, superseded_by)
    SELECT updating_version, 'preferences', NEW.id, NULL, NEW.status, NEW.superseded_by FROM read_model WHERE TRUE
    ON CONFLICT DO UPDATE SET after = excluded.after, superseded_by = excluded.superseded_by;
END;
CREATE TRIGGER preferences_changed AFTER UPDATE OF status ON preferences
WHEN (OLD.status IN ('active', 'stale')) <> (NEW.status IN ('active', 'stale')) OR (OLD.status <> 'forgotten' AND NEW.status = 'forgotten') BEGIN
    INSERT INTO knowledge_changes (version, list, id, before, after, superseded_by)
    SELECT updating_version, 'preferences', NEW.id, OLD.status, NEW.status, NEW.superseded_by FROM read_model WHERE TRUE
    ON CONFLICT DO UPDATE SET after = excluded.after, superseded_by = excluded.superseded_by;
END;
CREATE TRIGGER preferences_removed AFTER DELETE ON preferences WHEN OLD.status IN ('active', 'stale') BEGIN
    INSERT INTO knowledge_changes (version, list, id, before, after, superseded_by)
    SELECT updating_version, 'preferences', OLD.id, OLD.status, NULL, NULL FROM read_model WHERE TRUE
    ON CONFLICT DO UPDATE SET after = NULL, superseded_by = NULL;
END;

-- Procedures: the steps of a task, with the outcomes of their uses.
CREATE TABLE procedures (
    key           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT    NOT NULL UNIQUE,
    version       INTEGER NOT NULL,
    name          TEXT    NOT NULL,
    trigger       TEXT    NOT NULL,
    steps         TEXT    NOT NULL,      -- JSON list
    context       TEXT,
    prior         REAL    NOT NULL,      -- confidence before the first use
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

-- Relationships between two entities.
CREATE TABLE relationships (
    key            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL UNIQUE,
    version        INTEGER NOT NULL,
    source_id      INTEGER NOT NULL,
    type           TEXT    NOT NULL,
    target_id      INTEGER NOT NULL,
    weight         REAL    NOT NULL,     -- strength of the edge in graph walks: 0 to 1
    properties     TEXT,                 -- JSON object; NULL: none
    confidence     REAL    NOT NULL,
    status         TEXT    NOT NULL,
    pinned         INTEGER NOT NULL,
    superseded_by  TEXT,
    ended_by       TEXT,                 -- id of the ending in fact_endings
    evidence_count INTEGER NOT NULL,
    source_events  TEXT    NOT NULL,
    stale_at_us    INTEGER NOT NULL,
    created_at_us  INTEGER NOT NULL,
    updated_at_us  INTEGER NOT NULL,
    voice          TEXT    NOT NULL,     -- who says it of somebody else, normalised; empty: the source, or a producer
    is_inferred    INTEGER NOT NULL,     -- 1: no person stated it, such as a line of an imported note without a date
    UNIQUE (source_id, type, target_id, voice)
) STRICT;
CREATE INDEX relationships_by_target ON relationships (target_id);

-- Documents: curated texts with their chunks, and their relations to other documents and to entities.
CREATE TABLE documents (
    id          TEXT PRIMARY KEY,
    version     INTEGER NOT NULL,
    title       TEXT    NOT NULL,
    text        TEXT    NOT NULL,
    uri         TEXT,
    metadata    TEXT    NOT NULL,        -- JSON
    added_at_us INTEGER NOT NULL,
    edit_id     TEXT                     -- the event, when it replaced another text
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
    target      TEXT NOT NULL,           -- id of a document or name of an entity
    weight      REAL NOT NULL,
    PRIMARY KEY (document_id, type, target)
) STRICT, WITHOUT ROWID;

-- Observations: short lines about a running conversation.
CREATE TABLE observations (
    key            INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id       TEXT    NOT NULL,
    session_id     TEXT,
    text           TEXT    NOT NULL,
    token_count    INTEGER NOT NULL,
    occurred_at_us INTEGER NOT NULL,
    status         TEXT    NOT NULL,     -- active, superseded, forgotten
    source_events  TEXT                  -- JSON list of the ids of the events that it is derived from
) STRICT;
CREATE INDEX observations_by_session ON observations (session_id, status);
CREATE INDEX observations_by_event ON observations (event_id);

-- The last observed turn of each session.
CREATE TABLE observation_cursors (
    session_id TEXT PRIMARY KEY,
    through    INTEGER NOT NULL          -- version of that turn
) STRICT, WITHOUT ROWID;

-- Ratings of retrieved memories, summed up: 1 for useful, -0.5 for noise, -1 for misleading.
CREATE TABLE ratings (
    memory_id TEXT PRIMARY KEY,
    rating    REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- The dates that messages name, as time ranges with the probability that the words mean them, and the questions that
-- messages ask.
CREATE TABLE date_mentions (
    key      INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id TEXT    NOT NULL,
    text     TEXT    NOT NULL,
    start_us INTEGER NOT NULL,
    end_us   INTEGER NOT NULL,
    probability REAL NOT NULL
) STRICT;
CREATE INDEX date_mentions_by_time ON date_mentions (start_us);
CREATE INDEX date_mentions_by_event ON date_mentions (event_id);
CREATE TABLE questions (
    key      INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id TEXT    NOT NULL,
    text     TEXT    NOT NULL
) STRICT;

-- The rows that edits changed: corrections, endings, pins, and what was forgotten. An undo restores them.
CREATE TABLE edits (
    id           TEXT PRIMARY KEY,       -- of the event
    version      INTEGER NOT NULL,
    forgets      TEXT,                   -- id of the memory that it forgets; NULL: none
    is_undone    INTEGER NOT NULL,
    group_states TEXT    NOT NULL,       -- JSON: hashes of the statements of each group, before and after
    changes      TEXT    NOT NULL        -- JSON: table, key, and the values before and after, of each row
) STRICT, WITHOUT ROWID;
