-- One row a run, task and method family that has a valid score: the best node of the family, the earliest of equals.
SELECT run_id, task_id, method_family, node_id, step, operator, score, signed_score
FROM (
  SELECT *, row_number() OVER (PARTITION BY run_id, task_id, method_family ORDER BY signed_score DESC, step) AS place
  FROM evo.nodes
  WHERE NOT is_buggy AND signed_score IS NOT NULL) ranked
WHERE place = 1
