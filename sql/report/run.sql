-- One row: a run with its task, what it found and spent, and how its submission was graded. tokens and cost_usd are those of all
-- requests, as in bench.spend; those of the memory model are a part of them.
-- Parameters: $run.
SELECT r.run_id, r.task_id, t.title, t.modality, t.task_type, t.metric, t.higher_is_better, t.validation,
       e.status, r.stop_reason, r.error, r.policy, r.policy_sql, r.model, r.sandbox, r.mode, r.seed, r.workers, r.steps_limit,
       r.engine_version, r.created_at,
       (arrow_cast(arrow_cast(coalesce(r.finished_at, now()), 'Timestamp(Microsecond, Some("UTC"))'), 'Int64')
        - arrow_cast(coalesce(r.started_at, r.created_at), 'Int64')) / 1e6 AS seconds,
       b.node_id AS best_node_id, b.step AS best_step, b.operator AS best_operator, b.method_family AS best_family, b.score AS best_score,
       f.step AS first_step, f.score AS first_score,
       coalesce(s.programs, 0) AS programs, coalesce(s.failed, 0) AS failed, coalesce(s.last_step, 0) AS last_step,
       s.model_seconds, s.sandbox_seconds, u.tokens, u.cost_usd,
       coalesce(u.unknown_tokens, 0) AS unknown_tokens, coalesce(u.unknown_costs, 0) AS unknown_costs,
       coalesce(u.summaries, 0) AS summaries, u.memory_tokens, u.memory_cost_usd, u.memory_seconds,
       g.status AS grade_status, g.valid AS grade_valid, g.detail AS grade_detail, g.score AS test_score,
       g.medal, g.rank, g.teams, c.step AS graded_step
FROM evo.runs r
JOIN gym.tasks t ON t.task_id = r.task_id
JOIN evo.run_states e ON e.run_id = r.run_id
LEFT JOIN evo.best b ON b.run_id = r.run_id AND b.task_id = r.task_id
LEFT JOIN (
  SELECT run_id, first_value(step ORDER BY step) AS step, first_value(score ORDER BY step) AS score
  FROM evo.nodes
  WHERE run_id = $run AND operator = 'draft' AND NOT is_buggy AND signed_score IS NOT NULL
  GROUP BY run_id) f ON f.run_id = r.run_id
LEFT JOIN (
  SELECT run_id,
         count(*)                           AS programs,
         count(*) FILTER (WHERE is_buggy)   AS failed,
         max(step)                          AS last_step,
         sum(model_seconds)                 AS model_seconds,
         sum(sandbox_seconds)               AS sandbox_seconds
  FROM evo.nodes
  WHERE run_id = $run
  GROUP BY run_id) s ON s.run_id = r.run_id
LEFT JOIN (
  SELECT run_id,
         sum(tokens)                                         AS tokens,
         sum(unknown_tokens)                                 AS unknown_tokens,
         sum(cost_usd)                                       AS cost_usd,
         sum(unknown_costs)                                  AS unknown_costs,
         count(*) FILTER (WHERE kind = 'memory')             AS summaries,
         sum(tokens) FILTER (WHERE kind = 'memory')          AS memory_tokens,
         sum(cost_usd) FILTER (WHERE kind = 'memory')        AS memory_cost_usd,
         sum(model_seconds) FILTER (WHERE kind = 'memory')   AS memory_seconds
  FROM bench.requests
  WHERE run_id = $run
  GROUP BY run_id) u ON u.run_id = r.run_id
LEFT JOIN (
  SELECT *, row_number() OVER (ORDER BY graded_at DESC, submission_id) AS place
  FROM bench.grades
  WHERE run_id = $run) g ON g.run_id = r.run_id AND g.place = 1
LEFT JOIN evo.nodes c ON c.node_id = g.node_id
WHERE r.run_id = $run
