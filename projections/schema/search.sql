-- Keyword search over an episode and the one before it: a turn alone is often too little to be found by.
-- With the terms that other languages than English are found by (segments.py).
CREATE VIEW episodes_search AS
SELECT
    episode.version, episode.text, concat_ws(' ', episode.caption, episode.terms) AS caption,
    concat_ws(' ', previous.text, previous.caption, previous.terms) AS previous
FROM episodes AS episode LEFT JOIN episodes AS previous ON previous.version = episode.previous
WHERE episode.status = 'active';

-- Its text is the view's; rows are written in batches by the projector. Triggers would cost 4 times as much.
CREATE VIRTUAL TABLE episodes_fts USING fts5 (
    text, caption, previous,
    content = 'episodes_search', content_rowid = 'version', tokenize = 'porter unicode61 remove_diacritics 2'
);

-- What is deleted leaves no trace in the index.
INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('secure-delete', 1);

-- How many episodes hold a term.
CREATE VIRTUAL TABLE episodes_terms USING fts5vocab ('episodes_fts', 'row');
