-- Counts the changes of `policies`, so that a process sees with its snapshot whether another one has changed them.
ALTER TABLE store_state ADD COLUMN policies_version INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER policies_inserted AFTER INSERT ON policies
BEGIN UPDATE store_state SET policies_version = policies_version + 1 WHERE id = 1; END;
CREATE TRIGGER policies_updated AFTER UPDATE ON policies
BEGIN UPDATE store_state SET policies_version = policies_version + 1 WHERE id = 1; END;
CREATE TRIGGER policies_deleted AFTER DELETE ON policies
BEGIN UPDATE store_state SET policies_version = policies_version + 1 WHERE id = 1; END;
