-- One row a run, task and result state: how many nodes ended so, and since when.
SELECT run_id, task_id, status, count(*) AS nodes, min(step) AS first_step, max(step) AS last_step
FROM evo.nodes
GROUP BY run_id, task_id, status
