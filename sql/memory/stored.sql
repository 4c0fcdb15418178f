-- The summaries that nodes have.
--
-- Parameter: $node_ids, a list.
SELECT node_id, method_overview, parent_comparison_experience
FROM evo.summaries
WHERE array_has($node_ids, node_id)
