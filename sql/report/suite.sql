-- One row: a suite with the states of its searches, its rates as mean and standard deviation over the repeats, and what its programs
-- took.
-- Parameters: $suite.
SELECT r.suite_id, r.definition, r.policy, r.model, r.tasks, r.repeats, r.searches, r.finished, r.failed, r.missing,
       e.status, q.policy_sql, q.seed, q.sandbox, q.runs_at_once, q.engine_version, q.created_at,
       coalesce(p.running, 0) AS running, coalesce(p.planned, 0) AS planned,
       coalesce(p.interrupted, 0) AS interrupted, coalesce(p.cancelled, 0) AS cancelled,
       (arrow_cast(arrow_cast(coalesce(q.finished_at, now()), 'Timestamp(Microsecond, Some("UTC"))'), 'Int64')
        - arrow_cast(q.created_at, 'Int64')) / 1e6 AS seconds,
       r.mean_valid_rate, r.std_valid_rate, r.mean_medal_rate, r.std_medal_rate, r.mean_human_rank, r.std_human_rank,
       coalesce(r.gold, 0) AS gold, coalesce(r.silver, 0) AS silver, coalesce(r.bronze, 0) AS bronze,
       CAST(round(r.tokens_per_medal) AS BIGINT) AS tokens_per_medal, r.usd_per_medal, r.sandbox_seconds_per_medal,
       coalesce(n.programs, 0) AS programs, coalesce(n.failed, 0) AS failed_programs, n.sandbox_seconds
FROM bench.suites q
JOIN bench.suite_report r ON r.suite_id = q.suite_id
JOIN bench.suite_states e ON e.suite_id = q.suite_id
LEFT JOIN (
  SELECT suite_id,
         count(*) FILTER (WHERE status = 'running')     AS running,
         count(*) FILTER (WHERE status = 'planned')     AS planned,
         count(*) FILTER (WHERE status = 'interrupted') AS interrupted,
         count(*) FILTER (WHERE status = 'cancelled')   AS cancelled
  FROM bench.suite_progress
  GROUP BY suite_id) p ON p.suite_id = q.suite_id
LEFT JOIN (
  SELECT s.suite_id, count(*) AS programs, count(*) FILTER (WHERE n.is_buggy) AS failed, sum(n.sandbox_seconds) AS sandbox_seconds
  FROM bench.suite_runs s
  JOIN evo.nodes n ON n.run_id = s.run_id
  GROUP BY s.suite_id) n ON n.suite_id = q.suite_id
WHERE q.suite_id = $suite
