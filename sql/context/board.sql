-- Where the search stands, for an operator that goes on from a good program: one row a method family, the best first.
--
-- Parameters: $run_id (NULL for programs outside a run), $task_id.
SELECT method_family,
       count(*)                              AS nodes,
       count(*) FILTER (WHERE NOT is_buggy)  AS good,
       first_value(score ORDER BY signed_score DESC NULLS LAST, step) FILTER (WHERE NOT is_buggy) AS best_score,
       first_value(step ORDER BY signed_score DESC NULLS LAST, step) FILTER (WHERE NOT is_buggy)  AS best_step,
       max(step)                             AS last_step,
       -- As in evo.board_underexplored_families.
       method_family <> 'unknown' AND count(*) <= 2 AND count(*) FILTER (WHERE NOT is_buggy) > 0  AS is_underexplored
FROM evo.nodes
WHERE task_id = $task_id AND run_id IS NOT DISTINCT FROM $run_id
GROUP BY method_family
ORDER BY max(signed_score) DESC NULLS LAST, count(*) DESC, method_family
LIMIT 12
