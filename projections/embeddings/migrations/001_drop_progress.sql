-- Earlier releases kept the progress of each model in this table; `embedded` has replaced it.
DROP TABLE IF EXISTS progress;
