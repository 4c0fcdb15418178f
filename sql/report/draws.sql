-- One row a draw of a run: what the policy offered and what was taken, with what became of it. Of a long run every $every-th step.
-- Parameters: $run, $every.
SELECT a.step, a.operator, a.parent_id, a.parent2_id, a.draw, a.status, a.node_id, a.policy
FROM evo.attempts a
WHERE a.run_id = $run AND a.draw IS NOT NULL AND NOT a.late AND a.step % $every = 0
ORDER BY a.step
