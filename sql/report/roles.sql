-- One row an operator and a role: how many of the operator's prompts showed programs in that role, and how many of them each.
-- Parameters: $run.
SELECT a.operator,
       p.role,
       count(DISTINCT p.generation_id)                                AS prompts,
       count(DISTINCT p.node_id)                                      AS programs,
       CAST(count(*) AS DOUBLE) / count(DISTINCT p.generation_id)     AS a_prompt
FROM evo.prompts_used p
JOIN (SELECT attempt_id, operator FROM evo.attempts WHERE run_id = $run) a ON a.attempt_id = p.attempt_id
WHERE p.run_id = $run
GROUP BY a.operator, p.role
ORDER BY a.operator, min(p.position), p.role
