-- One row a program that prompts of a run showed, those shown most first: in how many prompts, and what came of them.
-- Parameters: $run.
SELECT t.step,
       t.operator,
       t.method_family,
       t.status,
       CASE WHEN NOT t.is_buggy THEN t.score END                         AS score,
       count(DISTINCT c.node_id)                                         AS children,
       count(DISTINCT c.node_id) FILTER (WHERE c.delta_vs_parent > 0)    AS gains,
       count(DISTINCT c.node_id) FILTER (WHERE h.is_incumbent)           AS new_bests
FROM evo.prompts_used p
JOIN evo.nodes t ON t.node_id = p.node_id
JOIN evo.nodes c ON c.attempt_id = p.attempt_id AND c.run_id = $run
JOIN evo.board_score_history h ON h.node_id = c.node_id AND h.run_id = $run
WHERE p.run_id = $run
GROUP BY t.node_id, t.step, t.operator, t.method_family, t.status, t.is_buggy, t.score
ORDER BY children DESC, t.step
LIMIT 12
