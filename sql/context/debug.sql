-- Nodes a repair is shown: the failing node, then failures with the same signature, then other failures; the newest first.
--
-- Parameters: $run_id, $parent_id, $parent2_id, and the most of each kind: $ancestors (up to 3), $siblings, $children, $failures.
WITH failing AS (
  SELECT node_id, run_id, task_id, error_signature
  FROM evo.nodes
  WHERE node_id = $parent_id),
related AS (
  SELECT n.node_id, n.step, COALESCE(n.error_signature = f.error_signature, FALSE) AS is_same
  FROM evo.nodes n
  JOIN failing f ON n.task_id = f.task_id AND n.run_id IS NOT DISTINCT FROM f.run_id
  WHERE n.is_buggy AND n.node_id <> f.node_id),
ranked AS (
  SELECT node_id, is_same, row_number() OVER (ORDER BY is_same DESC, step DESC) AS place FROM related)
SELECT 'parent' AS role, node_id, 0 AS place FROM failing
UNION ALL
SELECT CASE WHEN is_same THEN 'same_error' ELSE 'recent_error' END, node_id, place
FROM ranked
WHERE place <= $failures
