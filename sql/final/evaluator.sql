-- The node that a run ends with: the best validation score that the search went by, the earliest of equals.
-- Parameter: $run.
SELECT node_id, code, seed
FROM evo.nodes
WHERE run_id = $run AND code IS NOT NULL AND signed_score IS NOT NULL
ORDER BY signed_score DESC, step
LIMIT 1
