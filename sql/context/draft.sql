-- Nodes a draft is shown: none. A draft inherits nothing.
--
-- Parameters: $run_id, $parent_id, $parent2_id, and the most of each kind: $ancestors (up to 3), $siblings, $children, $failures.
SELECT 'parent' AS role, node_id, 0 AS place
FROM evo.nodes
WHERE false
