-- Nodes a draft is shown: none. A draft inherits nothing.
-- Parameters: $run_id, $parent_id, $parent2_id.
SELECT 'parent' AS role, node_id
FROM evo.nodes
WHERE false
