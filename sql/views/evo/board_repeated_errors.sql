-- One row a fault of a run and task: how often programs failed with the same signature, and when last.
SELECT run_id,
       task_id,
       error_signature,
       min(error_class)                                              AS error_class,
       count(*)                                                      AS nodes,
       min(step)                                                     AS first_step,
       max(step)                                                     AS last_step,
       last_value(node_id ORDER BY step)                             AS last_node_id
FROM evo.nodes
WHERE is_buggy AND error_signature IS NOT NULL
GROUP BY run_id, task_id, error_signature
