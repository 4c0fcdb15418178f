-- One row a run and task: its best node by validation score, the earliest of equals.
SELECT run_id,
       task_id,
       node_id,
       step,
       operator,
       method_family,
       score,
       signed_score,
       score_source,
       model,
       finished_at
FROM (
  SELECT *, row_number() OVER (PARTITION BY run_id, task_id ORDER BY signed_score DESC, step) AS place
  FROM evo.nodes
  WHERE NOT is_buggy AND signed_score IS NOT NULL) ranked
WHERE place = 1
