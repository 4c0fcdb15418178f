-- One row a node in commit order, with the best score of its run and task so far (board: score history).
--
-- is_incumbent: the node was better than everything before it. best_so_far is a signed score: higher is better.
SELECT run_id,
       task_id,
       step,
       node_id,
       operator,
       method_family,
       signed_score,
       best_so_far,
       COALESCE(signed_score > best_before OR (signed_score IS NOT NULL AND best_before IS NULL), FALSE) AS is_incumbent
FROM (
  SELECT *,
         max(valid_score) OVER (PARTITION BY run_id, task_id ORDER BY step ROWS UNBOUNDED PRECEDING) AS best_so_far,
         max(valid_score) OVER (PARTITION BY run_id, task_id ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
           AS best_before
  FROM (SELECT *, CASE WHEN NOT is_buggy THEN signed_score END AS valid_score FROM evo.nodes) scored) windowed
