-- SHOW RUNS: every run with its progress. A run that nobody conducts any more took the time that was worked on it.
SELECT r.run_id,
       r.task_id,
       s.status,
       r.policy,
       r.model,
       count(n.node_id) AS steps,
       r.steps_limit,
       count(n.node_id) FILTER (WHERE n.is_buggy) AS failed,
       coalesce(r.best_score, first_value(n.score ORDER BY n.signed_score DESC NULLS LAST, n.step)) AS best_score,
       r.stop_reason,
       CASE WHEN r.finished_at IS NULL AND s.status <> 'running' THEN b.spent
            ELSE (arrow_cast(arrow_cast(coalesce(r.finished_at, now()), 'Timestamp(Microsecond, Some("UTC"))'), 'Int64')
                  - arrow_cast(coalesce(r.started_at, r.created_at), 'Int64')) / 1e6 END AS seconds,
       r.created_at,
       r.finished_at
FROM evo.runs r
LEFT JOIN evo.nodes n ON n.run_id = r.run_id
JOIN evo.run_states s ON s.run_id = r.run_id
LEFT JOIN system.budgets b ON b.scope = r.run_id AND b.resource = 'wall_seconds'
GROUP BY r.run_id, r.task_id, s.status, r.policy, r.model, r.steps_limit, r.best_score, r.stop_reason, r.created_at, r.started_at, r.finished_at,
         b.spent
ORDER BY r.created_at DESC
