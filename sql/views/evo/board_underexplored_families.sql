-- One row a run, task and method family that deserves another look: tried twice at the most, and not only with failures.
SELECT run_id, task_id, method_family, nodes, good, best_score, best_node_id, last_step
FROM evo.board_family_coverage
WHERE method_family <> 'unknown' AND nodes <= 2 AND good > 0
