-- One row a fault of a suite, the $most most frequent: programs that failed with one signature, in how many searches and tasks, how many
-- were repaired, and what the last one said. signatures counts all.
-- Parameters: $suite, $most.
SELECT *
FROM (
  SELECT *, CAST(row_number() OVER (ORDER BY programs DESC, signature, status) AS BIGINT) AS place, count(*) OVER () AS signatures
  FROM (
    SELECT coalesce(n.error_signature, n.status)          AS signature,
           n.status,
           min(n.error_class)                             AS error_class,
           count(*)                                       AS programs,
           count(DISTINCT n.run_id)                       AS searches,
           count(DISTINCT n.task_id)                      AS tasks,
           count(r.parent_id)                             AS repaired,
           last_value(truncate_middle(n.error, 600, 280) ORDER BY n.finished_at, n.step) AS message,
           sum(n.sandbox_seconds)                         AS sandbox_seconds
    FROM evo.nodes n
    JOIN bench.suite_runs s ON s.run_id = n.run_id AND s.suite_id = $suite
    LEFT JOIN (
      SELECT DISTINCT run_id, parent_id FROM evo.nodes WHERE operator = 'debug' AND NOT is_buggy) r
      ON r.parent_id = n.node_id AND r.run_id = n.run_id
    WHERE n.is_buggy
    GROUP BY coalesce(n.error_signature, n.status), n.status) faults) places
WHERE place <= $most
ORDER BY place
