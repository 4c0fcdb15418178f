-- How far a suite is, in searches and in steps of those that have begun.
SELECT count(*) AS searches,
       count(*) FILTER (WHERE status IN ('finished', 'failed', 'cancelled', 'task_missing', 'not_started')) AS ended,
       count(*) FILTER (WHERE status = 'running') AS running,
       CAST(coalesce(sum(steps), 0) AS BIGINT) AS steps,
       CAST(coalesce(sum(steps_limit), 0) AS BIGINT) AS steps_limit
FROM bench.suite_progress
WHERE suite_id = $suite
