-- One row a program that a prompt of a run showed: to the making of which program, which one, in which role; in the order of the
-- prompt.
-- Parameters: $run.
SELECT c.node_id AS child_id, p.node_id, min(p.role) AS role, min(p.position) AS position
FROM evo.prompts_used p
JOIN evo.nodes c ON c.attempt_id = p.attempt_id AND c.run_id = $run
WHERE p.run_id = $run
GROUP BY c.node_id, p.node_id
ORDER BY child_id, position
