"""Content hash: hashes all rows of a read model, to compare a live read model with one built by replay."""

from __future__ import annotations

from hashlib import sha256

import apsw
import orjson

#: Every table in a fixed order. The attempts and parking of `read_model` are excluded: replay does not repeat them.
_TABLES = (
    "SELECT schema_version, log_id, namespace, checkpoint, last_removal_version, knowledge_version FROM read_model",
    "SELECT * FROM episodes ORDER BY version",
    "SELECT * FROM sessions ORDER BY id",
    "SELECT * FROM entities ORDER BY id",
    "SELECT * FROM entity_names ORDER BY name",
    "SELECT * FROM mentions ORDER BY entity_id, version",
    "SELECT * FROM episode_sources ORDER BY version, source",
    "SELECT * FROM entity_evidence ORDER BY entity_id, type, source",
    "SELECT * FROM entity_links ORDER BY entity_id, other_id, source",
    "SELECT * FROM entity_separations ORDER BY first, second",
    "SELECT * FROM entity_merges ORDER BY entity_id",
    "SELECT * FROM facts ORDER BY key",
    "SELECT * FROM fact_statements ORDER BY key",
    "SELECT * FROM fact_endings ORDER BY key",
    "SELECT * FROM preferences ORDER BY key",
    "SELECT * FROM procedures ORDER BY key",
    "SELECT * FROM relationships ORDER BY key",
    "SELECT * FROM documents ORDER BY id",
    "SELECT * FROM chunks ORDER BY document_id, number",
    "SELECT * FROM document_relations ORDER BY document_id, type, target",
    "SELECT * FROM observations ORDER BY key",
    "SELECT * FROM observation_cursors ORDER BY session_id",
    "SELECT * FROM ratings ORDER BY memory_id",
    "SELECT * FROM date_mentions ORDER BY key",
    "SELECT * FROM questions ORDER BY key",
    "SELECT * FROM job_cursors ORDER BY job",
)


def content_hash(connection: apsw.Connection) -> str:
    """Return the SHA-256 of all rows in hex; `keyword_index_matches` checks the keyword index."""
    total = sha256()
    for query in _TABLES:
        total.update(query.encode())
        for row in connection.execute(query):
            total.update(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
    return total.hexdigest()


def keyword_index_matches(connection: apsw.Connection) -> bool:
    """Return whether the keyword index agrees with the episodes. FTS5 needs a writable `connection` for the check."""
    try:
        connection.execute("INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('integrity-check', 1)")
    except apsw.CorruptError:
        return False
    return True
