-- The board of the current run: the parents that were drawn for its nodes, in the order of their steps.
SELECT a.step, a.parent_id, a.parent2_id
FROM run.attempts a
JOIN run.nodes n ON n.node_id = a.node_id
WHERE a.draw IS NOT NULL AND a.parent_id IS NOT NULL
ORDER BY a.step
