-- Made after the rows when a model is built in bulk, before them otherwise.
CREATE INDEX episodes_by_id ON episodes (id);
CREATE INDEX episodes_by_session ON episodes (session_id, version);
CREATE INDEX episodes_by_time ON episodes (occurred_at_us);
CREATE INDEX mentions_by_version ON mentions (version);
CREATE INDEX entities_participants ON entities (id) WHERE spoken_count > 0;
