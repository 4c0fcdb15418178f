-- Requests to the process that conducts a run, whichever it is.
CREATE TABLE run_requests (
    run_id  TEXT PRIMARY KEY,
    request TEXT NOT NULL
) STRICT;
