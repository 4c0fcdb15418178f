-- How far a run is.
SELECT r.run_id, r.task_id, r.policy, r.model, r.stop_reason, r.steps_limit,
       s.status,
       coalesce(n.steps, 0) AS steps, coalesce(n.failed, 0) AS failed,
       n.best_score, n.best_step, n.last_operator, n.last_status, n.tokens, n.cost_usd,
       t.metric, b.wall_left, b.tokens_left, b.cost_left, b.sandbox_left, b.active_left, b.jobs_left,
       CASE WHEN m.paused_until > now()
            THEN concat('model paused until ', to_char(m.paused_until, '%H:%M:%S'), ' UTC: ', m.pause_reason) END AS paused,
       CASE WHEN r.finished_at IS NULL AND s.status <> 'running' THEN b.wall_spent
            ELSE (arrow_cast(arrow_cast(coalesce(r.finished_at, now()), 'Timestamp(Microsecond, Some("UTC"))'), 'Int64')
                  - arrow_cast(coalesce(r.started_at, r.created_at), 'Int64')) / 1e6 END AS seconds
FROM evo.runs r
LEFT JOIN gym.tasks t ON t.task_id = r.task_id
LEFT JOIN system.models m ON m.name = r.model
JOIN evo.run_states s ON s.run_id = r.run_id
LEFT JOIN (
    SELECT run_id,
           count(*) AS steps,
           count(*) FILTER (WHERE is_buggy) AS failed,
           first_value(score ORDER BY signed_score DESC NULLS LAST, step) FILTER (WHERE signed_score IS NOT NULL) AS best_score,
           first_value(step ORDER BY signed_score DESC NULLS LAST, step) FILTER (WHERE signed_score IS NOT NULL) AS best_step,
           last_value(operator ORDER BY step) AS last_operator,
           last_value(status ORDER BY step) AS last_status,
           sum(tokens_prompt + tokens_completion) AS tokens,
           sum(cost_usd) AS cost_usd
    FROM evo.nodes
    WHERE run_id = $run
    GROUP BY run_id
) n ON n.run_id = r.run_id
LEFT JOIN (
    SELECT scope,
           max("limit" - spent) FILTER (WHERE resource = 'wall_seconds') AS wall_left,
           max(spent) FILTER (WHERE resource = 'wall_seconds') AS wall_spent,
           max("limit" - spent) FILTER (WHERE resource = 'tokens') AS tokens_left,
           max("limit" - spent) FILTER (WHERE resource = 'cost_usd') AS cost_left,
           max("limit" - spent) FILTER (WHERE resource = 'sandbox_seconds') AS sandbox_left,
           max("limit" - spent) FILTER (WHERE resource = 'active_seconds') AS active_left,
           max("limit" - spent) FILTER (WHERE resource = 'jobs') AS jobs_left
    FROM system.budgets
    WHERE scope = $run
    GROUP BY scope
) b ON b.scope = r.run_id
WHERE r.run_id = $run
