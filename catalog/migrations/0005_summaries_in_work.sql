-- Which process is asking the memory model about which node, so that no two ask at once.
CREATE TABLE summaries_in_work (
    node_id TEXT PRIMARY KEY,
    owner   TEXT NOT NULL,
    until   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
