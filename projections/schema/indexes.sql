-- Indexes of the episodes. A bulk build creates them after the rows, or as soon as an update must look episodes up;
-- any other build creates them before the rows.
CREATE INDEX IF NOT EXISTS episodes_by_id ON episodes (id);
CREATE INDEX IF NOT EXISTS episodes_by_session ON episodes (session_id, version);
CREATE INDEX IF NOT EXISTS episodes_by_time ON episodes (occurred_at_us);
CREATE INDEX IF NOT EXISTS mentions_by_version ON mentions (version);
CREATE INDEX IF NOT EXISTS episode_metadata_by_version ON episode_metadata (version);
CREATE INDEX IF NOT EXISTS entities_participants ON entities (id) WHERE spoken_count > 0;
CREATE INDEX IF NOT EXISTS entity_names_by_entity ON entity_names (entity_id);
CREATE INDEX IF NOT EXISTS episode_sources_by_source ON episode_sources (source);
CREATE INDEX IF NOT EXISTS episode_sources_by_id ON episode_sources (id);
CREATE INDEX IF NOT EXISTS episodes_pinned ON episodes (version) WHERE pinned = 1;
CREATE INDEX IF NOT EXISTS entities_described ON entities (id) WHERE description IS NOT NULL;
CREATE INDEX IF NOT EXISTS episodes_long ON episodes (token_count)
WHERE tier = 'raw' AND type = 'conversation' AND short IS NULL AND token_count > 100;
