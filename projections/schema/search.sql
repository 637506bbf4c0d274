-- Keyword index: one row for each active episode, with the text of the previous episode, since a single turn often
-- has too few words to match. `caption` includes the search terms of languages other than English (segments.py).
CREATE VIEW episodes_search AS
SELECT
    episode.version, episode.text, concat_ws(' ', episode.caption, episode.terms) AS caption,
    -- Of a message of 1 MiB, the text is not indexed a second time.
    concat_ws(' ', substr(previous.text, 1, 32768), previous.caption, previous.terms) AS previous
FROM episodes AS episode LEFT JOIN episodes AS previous ON previous.version = episode.previous
WHERE episode.status = 'active';

-- An external-content table over the view. The projector writes its rows in batches; triggers cost 4 times as much.
CREATE VIRTUAL TABLE episodes_fts USING fts5 (
    text, caption, previous,
    content = 'episodes_search', content_rowid = 'version', tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Deleted rows leave no words in the index.
INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('secure-delete', 1);
