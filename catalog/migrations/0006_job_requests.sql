-- Requests to the job service: the queue, what it answers about each job, and the keys that make a request idempotent.
CREATE TABLE job_requests (
    job_id           TEXT PRIMARY KEY,  -- UUIDv7: in the order in which they came
    user             TEXT NOT NULL,
    name             TEXT NOT NULL,
    state            TEXT NOT NULL,
    class            TEXT NOT NULL,
    priority         INTEGER NOT NULL,
    idempotency_key  TEXT,
    request_hash     TEXT NOT NULL,
    owner            TEXT,
    worker           TEXT,
    lease_until      INTEGER,
    attempts         INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    queued_at        INTEGER NOT NULL,
    started_at       INTEGER,
    finished_at      INTEGER,
    request          TEXT NOT NULL,     -- JSON, without the program
    code             TEXT,              -- the program, until the job ended
    result           TEXT               -- JSON, without the logs
) STRICT;
CREATE UNIQUE INDEX job_requests_key ON job_requests (user, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX job_requests_state ON job_requests (state, class);
CREATE INDEX job_requests_user ON job_requests (user, state);
CREATE INDEX job_requests_finished ON job_requests (finished_at) WHERE finished_at IS NOT NULL;
