-- One row a run and task: the seconds its nodes took in the sandbox and in the model, together and on average. Nodes whose seconds
-- are not known are left out of the average.
SELECT run_id,
       task_id,
       count(*)                          AS nodes,
       COALESCE(sum(sandbox_seconds), 0) AS sandbox_seconds,
       COALESCE(avg(sandbox_seconds), 0) AS mean_sandbox_seconds,
       max(sandbox_seconds)              AS longest_sandbox_seconds,
       COALESCE(sum(model_seconds), 0)   AS model_seconds,
       COALESCE(avg(model_seconds), 0)   AS mean_model_seconds,
       max(model_seconds)                AS longest_model_seconds
FROM evo.nodes
GROUP BY run_id, task_id
