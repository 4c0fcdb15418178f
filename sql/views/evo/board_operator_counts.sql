-- One row a run, task and operator: how many nodes it made, how many of them are good and how many gained on their parent.
-- What an operator cost is in evo.operator_statistics.
SELECT run_id,
       task_id,
       operator,
       count(*)                                    AS nodes,
       count(*) FILTER (WHERE NOT is_buggy)        AS good,
       count(*) FILTER (WHERE delta_vs_parent > 0) AS improved,
       min(step)                                   AS first_step,
       max(step)                                   AS last_step
FROM evo.nodes
GROUP BY run_id, task_id, operator
