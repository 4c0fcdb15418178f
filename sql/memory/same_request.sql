-- An earlier answer to the same request: a run that is repeated asks nothing twice.
--
-- Parameter: $request_hash.
SELECT method_overview, parent_comparison_experience
FROM evo.summaries
WHERE request_hash = $request_hash AND source = 'model'
ORDER BY created_at, node_id
LIMIT 1
