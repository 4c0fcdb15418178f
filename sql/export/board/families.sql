-- The board of the current run: its method families.
SELECT f.method_family,
       f.nodes,
       f.good,
       f.failed,
       f.fail_rate,
       CASE t.higher_is_better WHEN TRUE THEN f.best_score WHEN FALSE THEN -f.best_score END AS best_score,
       f.best_node_id,
       b.node_id              AS best_of_family,
       u.method_family IS NOT NULL AS is_underexplored
FROM run.board_family_coverage f
LEFT JOIN gym.tasks t ON t.task_id = f.task_id
LEFT JOIN run.board_family_best b ON b.method_family = f.method_family
LEFT JOIN run.board_underexplored_families u ON u.method_family = f.method_family
ORDER BY f.method_family
