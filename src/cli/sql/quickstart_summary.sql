-- One row: what a run found and spent, and how its final submission was graded.
SELECT t.metric, b.node_id AS best_node_id, b.step AS best_step, b.operator AS best_operator, b.score AS best_score,
       b.code AS best_code, f.node_id AS first_node_id, f.score AS first_score, t.higher_is_better,
       s.programs, s.failed, s.model_seconds, s.sandbox_seconds, s.tokens, s.cost_usd,
       (arrow_cast(r.finished_at, 'Int64') - arrow_cast(coalesce(r.started_at, r.created_at), 'Int64')) / 1e6 AS seconds,
       g.status AS grade_status, g.score AS test_score, $standing AS standing
FROM evo.runs r
JOIN gym.tasks t ON t.task_id = r.task_id
LEFT JOIN evo.nodes b ON b.node_id = r.best_node_id
LEFT JOIN (
    SELECT run_id, first_value(node_id ORDER BY step) AS node_id, first_value(score ORDER BY step) AS score
    FROM evo.nodes
    WHERE run_id = $run AND operator = 'draft' AND signed_score IS NOT NULL
    GROUP BY run_id
) f ON f.run_id = r.run_id
LEFT JOIN (
    SELECT run_id, count(*) AS programs, count(*) FILTER (WHERE is_buggy) AS failed,
           sum(model_seconds) AS model_seconds, sum(sandbox_seconds) AS sandbox_seconds, sum(tokens_prompt + tokens_completion) AS tokens, sum(cost_usd) AS cost_usd
    FROM evo.nodes
    WHERE run_id = $run
    GROUP BY run_id
) s ON s.run_id = r.run_id
LEFT JOIN bench.grades g ON g.run_id = r.run_id AND g.repeat = 1 AND g.role = 'final'
WHERE r.run_id = $run
