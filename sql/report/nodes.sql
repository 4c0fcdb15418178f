-- One row a program of a run in commit order, with its text and logs, the best score so far, and the sandbox time until its end.
--
-- All programs of a run of usual length; of a long one every $every-th, each that was the best so far, and the way to the best.
-- The best so far and the time count all; texts are read of those that are shown. They are cut where they are longer than anyone
-- reads.
-- Parameters: $run, $every.
WITH RECURSIVE history AS (
  SELECT node_id, parent_id, step, sum(coalesce(sandbox_seconds, 0)) OVER (ORDER BY step ROWS UNBOUNDED PRECEDING) AS sandbox_total
  FROM evo.nodes
  WHERE run_id = $run),
way AS (
  SELECT node_id, parent_id FROM history WHERE node_id = (SELECT node_id FROM evo.best WHERE run_id = $run)
  UNION ALL
  SELECT h.node_id, h.parent_id FROM way w JOIN history h ON h.node_id = w.parent_id),
shown AS (
  SELECT h.node_id, h.sandbox_total, b.is_incumbent
  FROM history h
  JOIN evo.board_score_history b ON b.node_id = h.node_id AND b.run_id = $run
  LEFT JOIN way w ON w.node_id = h.node_id
  WHERE h.step % $every = 0 OR b.is_incumbent OR w.node_id IS NOT NULL)
SELECT n.node_id, n.step, n.operator, n.parent_id, n.parent2_id, n.status, n.is_buggy, s.is_incumbent,
       CASE WHEN NOT n.is_buggy THEN n.score END       AS score,
       n.score_source, n.delta_vs_parent, n.method_family, n.duplicate_of, n.island, n.seed, n.model,
       n.tokens_prompt, n.tokens_completion, n.cost_usd, n.model_seconds, n.sandbox_seconds, s.sandbox_total,
       n.error_class, n.error_signature,
       truncate_middle(n.error, 4000, 1900)            AS error,
       truncate_middle(n.plan, 6000, 2900)             AS plan,
       truncate_middle(n.code, 200000, 99000)          AS code,
       CAST(octet_length(coalesce(n.code, '')) AS BIGINT) AS code_bytes,
       j.peak_memory_bytes, j.detail,
       j.stdout_bytes, j.stderr_bytes,
       right(CASE WHEN octet_length(j.stdout_head) + octet_length(j.stdout_tail) < j.stdout_bytes THEN j.stdout_tail
                  ELSE concat(j.stdout_head, j.stdout_tail) END, 3000) AS stdout,
       right(CASE WHEN octet_length(j.stderr_head) + octet_length(j.stderr_tail) < j.stderr_bytes THEN j.stderr_tail
                  ELSE concat(j.stderr_head, j.stderr_tail) END, 3000) AS stderr
FROM shown s
JOIN evo.nodes n ON n.node_id = s.node_id AND n.run_id = $run
LEFT JOIN sandbox.jobs j ON j.job_id = n.job_id AND j.run_id = $run
ORDER BY n.step
