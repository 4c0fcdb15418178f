-- The board of the current run: its nodes in the order of their steps.
SELECT h.step,
       h.node_id,
       n.score,
       CASE t.higher_is_better WHEN TRUE THEN h.signed_score WHEN FALSE THEN -h.signed_score END AS fitness,
       v.novelty,
       r.rank,
       COALESCE(r.rank = 1, FALSE) AS is_current_best,
       g.parents
FROM run.board_score_history h
JOIN run.nodes n ON n.node_id = h.node_id
JOIN run.board_novelty v ON v.node_id = h.node_id
JOIN run.board_parent_graph g ON g.node_id = h.node_id
LEFT JOIN gym.tasks t ON t.task_id = h.task_id
LEFT JOIN run.board_rank r ON r.node_id = h.node_id
ORDER BY h.step
