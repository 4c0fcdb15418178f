-- One row a node with a valid score: its place in its run and task, 1 for the best, the earliest of equals first.
SELECT run_id, task_id, node_id, step, signed_score,
       row_number() OVER (PARTITION BY run_id, task_id ORDER BY signed_score DESC, step) AS rank
FROM evo.nodes
WHERE NOT is_buggy AND signed_score IS NOT NULL
