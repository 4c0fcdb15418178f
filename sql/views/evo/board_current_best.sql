-- One row a run and task: its best node now, the earliest of equals, and how many nodes have come since.
SELECT run_id,
       task_id,
       node_id,
       step,
       operator,
       method_family,
       score,
       signed_score,
       last_step - step AS steps_since
FROM (
  SELECT *, max(step) OVER (PARTITION BY run_id, task_id) AS last_step,
         row_number() OVER (PARTITION BY run_id, task_id
                            ORDER BY CASE WHEN NOT is_buggy THEN signed_score END DESC NULLS LAST, step) AS place
  FROM evo.nodes) ranked
WHERE place = 1 AND NOT is_buggy AND signed_score IS NOT NULL
