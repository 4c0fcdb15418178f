-- One row a run and task: the mean gain over the parent of its last five nodes that have one, and how many those are.
SELECT run_id, task_id, avg(delta_vs_parent) AS mean_gain, count(*) AS nodes
FROM (
  SELECT run_id, task_id, delta_vs_parent, row_number() OVER (PARTITION BY run_id, task_id ORDER BY step DESC) AS age
  FROM evo.nodes
  WHERE delta_vs_parent IS NOT NULL) gains
WHERE age <= 5
GROUP BY run_id, task_id
