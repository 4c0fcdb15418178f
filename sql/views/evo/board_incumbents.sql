-- One row a node that was better than everything before it in its run and task: the way to the best score.
SELECT run_id, task_id, step, node_id, operator, method_family, signed_score
FROM evo.board_score_history
WHERE is_incumbent
