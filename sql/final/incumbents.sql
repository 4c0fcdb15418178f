-- Nodes of a run that were better than everything before them, in their order.
-- Parameter: $run.
SELECT n.node_id, n.code, n.seed
FROM evo.board_score_history h
JOIN evo.nodes n ON n.node_id = h.node_id
WHERE h.run_id = $run AND n.run_id = $run AND h.is_incumbent AND n.code IS NOT NULL
ORDER BY n.step
