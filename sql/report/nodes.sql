-- One row a program of a run in commit order, with its text and logs, the best score so far, and the sandbox time until its end.
--
-- All programs of a run of usual length; of a long one every $every-th, each that was the best so far, and the way to the best.
-- The best so far and the time count all. Texts are cut where they are longer than anyone reads.
-- Parameters: $run, $every.
WITH RECURSIVE history AS (
  SELECT n.*, h.is_incumbent,
         sum(coalesce(n.sandbox_seconds, 0)) OVER (ORDER BY n.step ROWS UNBOUNDED PRECEDING) AS sandbox_total
  FROM evo.nodes n
  JOIN evo.board_score_history h ON h.node_id = n.node_id AND h.run_id = $run
  WHERE n.run_id = $run),
way AS (
  SELECT node_id, parent_id FROM evo.nodes WHERE node_id = (SELECT node_id FROM evo.best WHERE run_id = $run)
  UNION ALL
  SELECT n.node_id, n.parent_id
  FROM way w JOIN (SELECT node_id, parent_id FROM evo.nodes WHERE run_id = $run) n ON n.node_id = w.parent_id)
SELECT n.node_id, n.step, n.operator, n.parent_id, n.parent2_id, n.status, n.is_buggy, n.is_incumbent,
       CASE WHEN NOT n.is_buggy THEN n.score END       AS score,
       n.score_source, n.delta_vs_parent, n.method_family, n.duplicate_of, n.island, n.seed, n.model,
       n.tokens_prompt, n.tokens_completion, n.cost_usd, n.model_seconds, n.sandbox_seconds, n.sandbox_total,
       n.error_class, n.error_signature,
       truncate_middle(n.error, 4000, 1900)            AS error,
       truncate_middle(n.plan, 6000, 2900)             AS plan,
       truncate_middle(n.code, 200000, 99000)          AS code,
       octet_length(coalesce(n.code, ''))              AS code_bytes,
       j.peak_memory_bytes, j.detail,
       j.stdout_bytes, j.stderr_bytes,
       right(CASE WHEN octet_length(j.stdout_head) + octet_length(j.stdout_tail) < j.stdout_bytes THEN j.stdout_tail
                  ELSE concat(j.stdout_head, j.stdout_tail) END, 3000) AS stdout,
       right(CASE WHEN octet_length(j.stderr_head) + octet_length(j.stderr_tail) < j.stderr_bytes THEN j.stderr_tail
                  ELSE concat(j.stderr_head, j.stderr_tail) END, 3000) AS stderr
FROM history n
LEFT JOIN way w ON w.node_id = n.node_id
LEFT JOIN (SELECT * FROM sandbox.jobs WHERE run_id = $run) j ON j.job_id = n.job_id
WHERE n.step % $every = 0 OR n.is_incumbent OR w.node_id IS NOT NULL
ORDER BY n.step
