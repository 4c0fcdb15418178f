-- The node of a run at a place, counted from 0, among those that have a program: where no node has a score, one is drawn.
-- Parameters: $run, $place.
SELECT node_id, code, seed
FROM (SELECT node_id, code, seed, row_number() OVER (ORDER BY step) - 1 AS place
      FROM evo.nodes
      WHERE run_id = $run AND code IS NOT NULL) programs
WHERE place = $place
