-- Nodes a repair is shown: the failing node, then failures with the same signature, then recent failures, eight in all.
-- Parameters: $run_id, $parent_id, $parent2_id.
WITH failing AS (
  SELECT node_id, run_id, task_id, error_signature, step
  FROM evo.nodes
  WHERE node_id = $parent_id
)
SELECT role, node_id, row_number() OVER (ORDER BY place, age) AS place
FROM (
  SELECT 'parent' AS role, node_id, 0 AS place, 0 AS age FROM failing
  UNION ALL
  SELECT CASE WHEN n.error_signature = f.error_signature THEN 'same_error' ELSE 'recent_error' END,
         n.node_id,
         CASE WHEN n.error_signature = f.error_signature THEN 1 ELSE 2 END,
         -n.step
  FROM evo.nodes n
  JOIN failing f ON n.task_id = f.task_id AND n.run_id IS NOT DISTINCT FROM f.run_id
  WHERE n.is_buggy AND n.node_id <> f.node_id AND n.step < f.step
) AS shown
ORDER BY place
LIMIT 9
