-- One row a run, task and method family: how often it was tried, how it did, and its best node.
SELECT run_id,
       task_id,
       method_family,
       count(*)                             AS nodes,
       count(*) FILTER (WHERE NOT is_buggy) AS good,
       count(*) FILTER (WHERE is_buggy)     AS failed,
       avg(CAST(is_buggy AS DOUBLE))        AS fail_rate,
       avg(signed_score)                    AS mean_score,
       max(signed_score)                    AS best_score,
       first_value(node_id ORDER BY signed_score DESC NULLS LAST, step) FILTER (WHERE NOT is_buggy) AS best_node_id,
       min(step)                            AS first_step,
       max(step)                            AS last_step
FROM evo.nodes
GROUP BY run_id, task_id, method_family
