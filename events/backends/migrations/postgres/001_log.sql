-- The log in PostgreSQL, in a schema of its own. Numbered migrations change it; log.migration is the last one applied.

-- One row: what this log is. log_id names it for ever, so that a read model of another log is recognised.
CREATE TABLE log (
    log_id    text    NOT NULL,
    migration integer NOT NULL
);

-- The heads: one row a namespace, changed in the transaction of every append, and its lock while that runs.
CREATE TABLE heads (
    namespace      text COLLATE "C" PRIMARY KEY,
    version        bigint NOT NULL,  -- of its newest event
    hash           bytea  NOT NULL,  -- of its newest event
    recorded_at_us bigint NOT NULL   -- of its newest event; the next one is never earlier
) WITH (fillfactor = 70);            -- room on the page, so that a head moves without touching the index

-- The events. The key is all that is needed to read a namespace in order; there is no sequence over namespaces. Hash
-- partitions keep indexes small and are how the table spreads over machines.
CREATE TABLE events (
    namespace      text COLLATE "C" NOT NULL,
    version        bigint  NOT NULL,
    id             text COLLATE "C" NOT NULL,
    type           text    NOT NULL,
    schema_version integer NOT NULL,
    occurred_at_us bigint  NOT NULL,
    recorded_at_us bigint  NOT NULL,
    session_id     text,
    actor          text,
    causation_id   text,
    correlation_id text,
    encoding       text    NOT NULL,
    payload        bytea   NOT NULL,
    leaf           bytea   NOT NULL,  -- sha256 over header and payload
    hash           bytea   NOT NULL,  -- sha256 over the previous hash and the leaf
    PRIMARY KEY (namespace, version),
    UNIQUE (namespace, id)
) PARTITION BY HASH (namespace);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'events are immutable: % is refused', TG_OP; END $$;

-- Row triggers of the parent are those of every partition too; TRUNCATE has none of these, so each gets its own.
CREATE TRIGGER events_refuse_change BEFORE UPDATE OR DELETE ON events
FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER events_refuse_truncate BEFORE TRUNCATE ON events
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

DO $$
BEGIN
    FOR part IN 0 .. 15 LOOP
        EXECUTE format('CREATE TABLE events_%s PARTITION OF events FOR VALUES WITH (MODULUS 16, REMAINDER %s)', part, part);
        EXECUTE format('CREATE TRIGGER events_refuse_truncate BEFORE TRUNCATE ON events_%s '
            'FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', part);
        EXECUTE format('REVOKE UPDATE, DELETE, TRUNCATE ON events_%s FROM PUBLIC, CURRENT_USER', part);
    END LOOP;
END $$;

REVOKE UPDATE, DELETE, TRUNCATE ON events FROM PUBLIC, CURRENT_USER;
