-- State of the store: one row.
CREATE TABLE store_state (
    id                INTEGER PRIMARY KEY CHECK (id = 1),
    last_seq          INTEGER NOT NULL,
    last_committed_at INTEGER NOT NULL,
    cold_version      INTEGER NOT NULL
) STRICT;
INSERT INTO store_state VALUES (1, 0, 0, 0);

-- Tables that were ever written here. table_no is part of the id of hot rows.
CREATE TABLE tables (
    table_no      INTEGER PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE,
    flushed_seq   INTEGER NOT NULL DEFAULT 0,  -- commits up to here are in the cold tier
    cold_version  INTEGER NOT NULL DEFAULT 0,  -- store_state.cold_version of the last change to the cold files
    delta_version INTEGER,                     -- version of the Delta log this index agrees with
    checkpointed  INTEGER,                     -- version of the last Delta checkpoint
    unsettled     INTEGER NOT NULL DEFAULT 0   -- a Delta commit was begun that this index does not know yet
) STRICT;

-- Which columns the hot rows of a table hold, one line a column.
CREATE TABLE layouts (
    layout_id INTEGER PRIMARY KEY,
    table_no  INTEGER NOT NULL REFERENCES tables,
    columns   TEXT NOT NULL,
    UNIQUE (table_no, columns)
) STRICT;

-- Hot rows: one row a commit and table. id = seq * 4096 + table_no keeps a commit's rows on neighbouring pages.
CREATE TABLE hot (
    id           INTEGER PRIMARY KEY,
    layout_id    INTEGER NOT NULL,
    rows         INTEGER NOT NULL,
    committed_at INTEGER NOT NULL,
    data         BLOB NOT NULL
) STRICT;

-- Index of the cold files; statements read it instead of the Delta log.
CREATE TABLE cold_files (
    table_no   INTEGER NOT NULL REFERENCES tables,
    path       TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    rows       INTEGER NOT NULL,
    min_seq    INTEGER NOT NULL,
    max_seq    INTEGER NOT NULL,
    stats      TEXT NOT NULL,      -- statistics as in the Delta log
    added_at   INTEGER NOT NULL,
    removed_at INTEGER,            -- replaced by a compaction; the file stays for a while for running statements
    PRIMARY KEY (table_no, path)
) STRICT, WITHOUT ROWID;

-- Problems that have been noted, so that each is noted once.
CREATE TABLE known_problems (
    problem_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Control tables of the scheduler.
CREATE TABLE attempt_queue (
    attempt_id   TEXT PRIMARY KEY,
    run_id       TEXT,
    statement_id TEXT NOT NULL,
    ordinal      INTEGER NOT NULL,
    sample       INTEGER NOT NULL,
    state        TEXT NOT NULL,
    owner        TEXT,
    lease_until  INTEGER,
    tries        INTEGER NOT NULL DEFAULT 0,
    not_before   INTEGER NOT NULL DEFAULT 0,
    priority     REAL NOT NULL DEFAULT 0,
    payload      TEXT NOT NULL
) STRICT;
CREATE INDEX attempt_queue_claim ON attempt_queue (state, not_before);
CREATE INDEX attempt_queue_statement ON attempt_queue (statement_id, ordinal, sample);
CREATE INDEX attempt_queue_run ON attempt_queue (run_id, state);

CREATE TABLE budgets (
    scope    TEXT NOT NULL,
    resource TEXT NOT NULL,
    "limit"  REAL,
    spent    REAL NOT NULL DEFAULT 0,
    reserved REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, resource)
) STRICT, WITHOUT ROWID;

CREATE TABLE reservations (
    attempt_id TEXT NOT NULL,
    scope      TEXT NOT NULL,
    resource   TEXT NOT NULL,
    amount     REAL NOT NULL,
    PRIMARY KEY (attempt_id, scope, resource)
) STRICT, WITHOUT ROWID;

CREATE TABLE policies (
    name       TEXT PRIMARY KEY,
    sql        TEXT NOT NULL,
    comment    TEXT,
    sha256     TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- Every version a policy ever had; a policy is superseded, never changed.
CREATE TABLE policy_versions (
    name          TEXT NOT NULL,
    version       INTEGER NOT NULL,
    sql           TEXT NOT NULL,
    comment       TEXT,
    sha256        TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    superseded_at INTEGER,
    PRIMARY KEY (name, version)
) STRICT;

CREATE TABLE run_leases (
    run_id      TEXT PRIMARY KEY,
    owner       TEXT NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;

CREATE TABLE settings (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE models (
    name    TEXT PRIMARY KEY,
    options TEXT NOT NULL
) STRICT;

CREATE TABLE response_cache (
    request_hash  TEXT PRIMARY KEY,
    generation_id TEXT NOT NULL,
    text          TEXT
) STRICT;
