-- One row a search that a suite wants: where it stands, what came of it, and why where nothing did.
--
-- status is that of its run (evo.run_states), or planned, task_missing or not_started where it has none. A run that could not be gone on with
-- has failed.
SELECT s.suite_id,
       s.task_id,
       s.repeat,
       s.run_id,
       s.seed,
       CASE WHEN s.status = 'planned' THEN coalesce(e.status, s.status)
            WHEN s.status = 'not_started' AND r.run_id IS NOT NULL THEN 'failed'
            ELSE s.status END                                                             AS status,
       coalesce(n.steps, 0)                                                               AS steps,
       r.steps_limit,
       p.validation_score,
       p.valid,
       p.test_score,
       p.medal,
       p.rank,
       p.teams,
       p.human_rank,
       p.tokens,
       p.cost_usd,
       p.sandbox_seconds,
       r.stop_reason,
       coalesce(s.error, r.error)                                                         AS error,
       r.started_at,
       r.finished_at
FROM bench.suite_runs s
LEFT JOIN evo.runs r ON r.run_id = s.run_id
LEFT JOIN evo.run_states e ON e.run_id = s.run_id
LEFT JOIN bench.report p ON p.run_id = s.run_id
LEFT JOIN (SELECT run_id, count(*) AS steps FROM evo.nodes WHERE run_id IS NOT NULL GROUP BY run_id) n ON n.run_id = s.run_id
