-- When a model was made, and which models send nothing until when.
ALTER TABLE models ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;

CREATE TABLE model_pauses (
    model        TEXT PRIMARY KEY,
    paused_until INTEGER NOT NULL,
    reason       TEXT NOT NULL
) STRICT;
