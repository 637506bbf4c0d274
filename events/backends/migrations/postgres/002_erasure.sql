-- Encryption and erasure. An erased event keeps its version, leaf and hash; its other columns are emptied.

ALTER TABLE log ADD COLUMN encrypted boolean NOT NULL DEFAULT false;        -- true: new events are encrypted
ALTER TABLE heads ADD COLUMN erasure_version bigint NOT NULL DEFAULT 0;     -- of its newest erasure event; 0: none

-- The events that record erasures.
CREATE TABLE erasures (
    namespace text COLLATE "C" NOT NULL,
    version   bigint NOT NULL,
    PRIMARY KEY (namespace, version)
);

-- An erasure, which names itself in its transaction, may empty an event and change nothing else.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF current_setting('recollect.erasing', true) = 'on'
            AND NEW.encoding = 'erased' AND length(NEW.payload) = 0
            AND NEW.session_id IS NULL AND NEW.actor IS NULL AND NEW.causation_id IS NULL AND NEW.correlation_id IS NULL
            AND (NEW.namespace, NEW.version, NEW.recorded_at_us, NEW.leaf, NEW.hash)
                = (OLD.namespace, OLD.version, OLD.recorded_at_us, OLD.leaf, OLD.hash)
        THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'events are immutable: % is refused', TG_OP;
END $$;
