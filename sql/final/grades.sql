-- What a run was graded for, in the order it was done. Parameter: $run.
SELECT submission_id, node_id, role, selection
FROM bench.grades
WHERE run_id = $run AND node_id IS NOT NULL
ORDER BY graded_at, submission_id
