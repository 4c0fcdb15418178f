-- One row: how many nodes of a run have a program.
-- Parameters: $run.
SELECT count(*) AS programs FROM evo.nodes WHERE run_id = $run AND code IS NOT NULL
