-- One row a fault of a run: programs that failed with one signature, how many of them were repaired, and what the last one said.
-- Parameters: $run.
SELECT coalesce(n.error_signature, n.status)          AS signature,
       n.status,
       min(n.error_class)                             AS error_class,
       count(*)                                       AS programs,
       count(r.parent_id)                             AS repaired,
       min(n.step)                                    AS first_step,
       max(n.step)                                    AS last_step,
       last_value(truncate_middle(n.error, 600, 280) ORDER BY n.step) AS message,
       sum(n.sandbox_seconds)                         AS sandbox_seconds
FROM evo.nodes n
LEFT JOIN (
  SELECT DISTINCT parent_id FROM evo.nodes WHERE run_id = $run AND operator = 'debug' AND NOT is_buggy) r ON r.parent_id = n.node_id
WHERE n.run_id = $run AND n.is_buggy
GROUP BY signature, n.status
ORDER BY programs DESC, signature, n.status
